// .csv, .tsv and .tab: a column per header field. Only wanted columns are decoded.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "inputs/csv_cells.hpp"
#include "inputs/csv_head.hpp"
#include "inputs/csv_rows.hpp"
#include "inputs/damage.hpp"
#include "inputs/formats.hpp"
#include "inputs/mapped_file.hpp"
#include "inputs/value_column.hpp"

namespace trapline::inputs {
namespace {

constexpr std::size_t kMaxColumns = 65536;
constexpr std::size_t kSampleRows = 1000, kSampleBytes = std::size_t{1} << 20U;
constexpr std::size_t kValuesHeld = std::size_t{4} << 20U;  // of all columns together
constexpr std::size_t kValuesPerPiece = std::size_t{1} << 16U;
// So many stretches of text are read at a time.
constexpr std::size_t kStretchBytes = std::size_t{1} << 20U, kStretches = 8;
constexpr int kMaxWrongGuesses = 4;

// ',' unless the first line has more of another one; quotes are rare enough there not to matter.
char delimiter_of(const Source& source, std::string_view first_line) {
  if (source.path.ends_with(".tsv") || source.path.ends_with(".tab")) return '\t';
  char best = ',';
  auto most = std::count(first_line.begin(), first_line.end(), ',');
  for (const char candidate : {'\t', ';', '|'}) {
    const auto count = std::count(first_line.begin(), first_line.end(), candidate);
    if (count > most) most = count, best = candidate;
  }
  return best;
}

struct Sampled {
  bool any = false, numbers = false, floats = false;
  std::size_t texts = 0;
};

class CsvReader final : public Reader {
 public:
  std::string_view name() const override { return "csv"; }
  bool knows(const Source& source) const override {
    return source.path.ends_with(".csv") || source.path.ends_with(".tsv") || source.path.ends_with(".tab");
  }

  bool is_table(const Source&) const override { return true; }
  Result<bool> read(const Source& source, Sink& sink) const override {
    std::string_view text = as_text(source.bytes);
    if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
      return unreadable(source.path, "the text is UTF-16", "write it as UTF-8");
    }
    const std::size_t zero = text.substr(0, 4096).find('\0');
    if (zero != text.npos) return damaged(source.path, zero, "no text: it has a zero byte");
    std::size_t start = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
    std::int64_t lines = 0;                        // before `start`
    while (text.substr(start).starts_with('#')) {  // as numpy.savetxt writes its header
      const std::size_t end = text.find('\n', start);
      start = end == text.npos ? text.size() : end + 1;
      ++lines;
    }
    text.remove_prefix(start);
    const char delimiter = delimiter_of(source, text.substr(0, std::min(text.find('\n'), kSampleBytes)));

    CsvRows rows(text, delimiter);
    std::vector<std::string_view> fields;
    const bool some = rows.next(fields, kMaxColumns + 1);
    if (!rows.problem().empty())
      return damaged(source.path, start + rows.problem_offset(), std::string(rows.problem()));
    if (!some) return !sink.stopped();  // nothing in it
    if (fields.size() > kMaxColumns) return damaged(source.path, start, "more than 65536 columns");
    bool header = is_header(fields);
    const std::vector<std::string> first(fields.begin(), fields.end());
    std::vector<std::string> names;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      names.push_back(header ? first[i] : std::to_string(i));
    }
    if (names.size() == 1 && !header) names[0].clear();

    if (header) {
      CsvHead head = read_head(CsvRows(text, delimiter), source.path.ends_with(".tab"));
      names = std::move(head.names);
      rows = head.below;
    }
    std::vector<Sampled> sampled(names.size());
    {
      CsvRows sample = header ? rows : CsvRows(text, delimiter);
      for (std::size_t n = 0; n < kSampleRows && sample.next(fields, names.size()); ++n) {
        if (sample.offset() > kSampleBytes) break;
        for (std::size_t i = 0; i < fields.size(); ++i) {
          const Number number = number_of(fields[i]);
          const Number::Kind kind = number.kind;
          sampled[i].texts += kind == Number::Kind::kText ? 1 : 0;
          sampled[i].any |= kind != Number::Kind::kMissing;
          sampled[i].numbers |= kind == Number::Kind::kInteger || kind == Number::Kind::kFloat;
          sampled[i].floats |= kind == Number::Kind::kFloat && !number.huge;
        }
      }
    }
    // Names among numbers ("150,4,setosa,virginica"): text in the first row alone, and in several columns.
    std::size_t names_above = 0;
    for (std::size_t i = 0; !header && i < first.size(); ++i) {
      names_above +=
          sampled[i].texts == 1 && sampled[i].numbers && number_of(first[i]).kind == Number::Kind::kText;
    }
    if (names_above > 1) {
      header = true;
      names = first;
    }
    if (!header) rows = CsvRows(text, delimiter);

    const std::size_t most = std::clamp<std::size_t>(kValuesHeld / names.size(), 64, kValuesPerPiece);
    std::vector<ValueColumn> columns;
    std::vector<std::size_t> wanted;  // ascending
    for (std::size_t i = 0; i < names.size(); ++i) {
      Column column{names[i], sampled[i].floats ? DType::kFloat64 : DType::kInt64, {-1}};
      column.text = sampled[i].any && !sampled[i].numbers;
      const bool is_text = column.text;
      ValueColumn values(sink, std::move(column), most);
      if (!values.begin()) {
        if (is_text) sink.skipped(names[i], "text");
        continue;
      }
      columns.push_back(std::move(values));
      wanted.push_back(i);
    }
    return read_rows(source, {text, delimiter, start, lines}, rows, wanted, columns, sink);
  }

 private:
  struct Text {
    std::string_view text;
    char delimiter = ',';
    std::size_t start = 0;   // of the text in the file
    std::int64_t lines = 0;  // before it
  };

  // From where `rows` stands to the end.
  static Result<bool> read_rows(const Source& source, const Text& file, const CsvRows& rows,
                                const std::vector<std::size_t>& wanted, std::vector<ValueColumn>& columns,
                                Sink& sink) {
    if (columns.empty()) return !sink.stopped();
    const std::string_view text = file.text;
    std::vector<CsvStretch> stretches(kStretches);
    std::size_t next = rows.position();
    std::int64_t row = 0, line = file.lines + rows.lines() + 1;
    int wrong = 0;
    std::string_view problem;
    while (next < text.size() && problem.empty() && !sink.stopped() &&
           std::any_of(columns.begin(), columns.end(), [](const ValueColumn& c) { return c.wanted(); })) {
      const std::size_t first = next;
      std::array<std::size_t, kStretches + 1> begin{next};
      std::size_t count = 0;
      while (count < (wrong < kMaxWrongGuesses ? kStretches : 1) && begin[count] < text.size()) {
        begin[count + 1] = guess_row(text, begin[count], begin[count] + kStretchBytes);
        ++count;
      }
      sink.parallel(static_cast<std::int64_t>(count), [&](std::int64_t i) {
        const auto at = static_cast<std::size_t>(i);
        stretches[at].begin = begin[at];
        read_stretch(text, file.delimiter, wanted, begin[at + 1], stretches[at]);
      });
      for (std::size_t i = 0; i < count && problem.empty(); ++i) {
        const CsvStretch& stretch = stretches[i];
        if (stretch.begin != next) {
          ++wrong;
          break;
        }
        deliver(stretch, row, line, columns, sink);
        row += static_cast<std::int64_t>(stretch.line_of.size());
        line += stretch.lines;
        next = stretch.end;
        problem = stretch.problem;
        if (!problem.empty()) next = stretch.problem_offset;
      }
      release_pages(source.bytes.subspan(file.start + first, next - first));
    }
    for (ValueColumn& column : columns) column.flush();
    if (!problem.empty()) return damaged(source.path, file.start + next, std::string(problem));
    return !sink.stopped();
  }
};

}  // namespace

const Reader& csv() {
  static const CsvReader reader;
  return reader;
}

}  // namespace trapline::inputs
