#include "inputs/json_lines.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "inputs/damage.hpp"
#include "inputs/json_records.hpp"
#include "inputs/json_text.hpp"
#include "inputs/mapped_file.hpp"

namespace trapline::inputs {
namespace {

constexpr std::int64_t kRowsBetweenAsking = 4096;
// So many stretches of text are read at a time, once the keys are known and as long as they stay the same.
constexpr std::size_t kStretches = 16;
constexpr std::size_t kMaxKeys = 4096;  // of stretches; records with more are read one after the other
constexpr std::size_t kMaxAlone = 64;   // stretches read one after the other, before it is tried again

// One reading of a file.
class Lines {
 public:
  Lines(const Source& source, Sink& sink, std::size_t stretch_bytes)
      : source_(source),
        sink_(sink),
        stretch_bytes_(stretch_bytes),
        text_(as_text(source.bytes)),
        records_(sink) {
    next_ = text_.starts_with("\xef\xbb\xbf") ? 3 : 0;
  }

  Result<bool> read() {
    // Keys are learned from the first records, and from those behind one that has other keys.
    std::size_t alone = 1, again = 1, together = 1;
    while (next_ < text_.size() && !problem_ && !ended_) {
      const std::size_t before = next_;
      if (alone > 0 || records_.keys() > kMaxKeys) {
        one_by_one(end_of_stretch(next_));
        alone -= alone > 0 ? 1 : 0;
      } else if (stretches(together)) {
        together = std::min(together * 2, kStretches);
        again = 1;
      } else {
        alone = again;
        again = std::min(again * 2, kMaxAlone);
        together = 1;
      }
      release_pages(source_.bytes.subspan(before, next_ - before));
    }
    if (problem_) {  // what stands before the damage is handed over all the same
      records_.flush();
      return *problem_;
    }
    records_.finish();
    return !sink_.stopped();
  }

 private:
  std::size_t end_of_stretch(std::size_t from) const {
    if (text_.size() - from <= stretch_bytes_) return text_.size();
    const std::size_t newline = text_.find('\n', from + stretch_bytes_);
    return newline == text_.npos ? text_.size() : newline + 1;
  }

  // The lines before `end`, each with all that it may add to what is known.
  void one_by_one(std::size_t end) {
    while (next_ < end && !problem_ && !ended_) {
      const std::size_t newline = text_.find('\n', next_);
      const std::size_t stop = newline == text_.npos ? text_.size() : newline;
      const std::size_t start = next_;
      next_ = newline == text_.npos ? text_.size() : newline + 1;
      ++line_;
      const std::string_view line = text_.substr(start, stop - start);
      if (!is_blank_line(line)) record(line, line_);
    }
  }

  // False: something turned up that changes what the records behind it mean, or a stretch was not for this.
  bool stretches(std::size_t most) {
    std::size_t count = 0;
    for (std::size_t at = next_; count < most && at < text_.size(); ++count) {
      const std::size_t end = end_of_stretch(at);
      stretches_[count].text = text_.substr(at, end - at);
      at = end;
    }
    sink_.parallel(static_cast<std::int64_t>(count), [&](std::int64_t i) {
      read_stretch(records_.root(), records_.keys(), records_.full(),
                   stretches_[static_cast<std::size_t>(i)]);
    });
    const std::uint64_t known = records_.changes();
    for (std::size_t i = 0; i < count && !ended_; ++i) {
      const JsonStretch& stretch = stretches_[i];
      const std::size_t begin = next_;
      const std::int64_t line = line_ + 1;  // of the stretch's line 0
      for (const JsonStretch::Run& run : stretch.runs) {
        records_.taken(stretch, run, row_, line);
        count_rows(run.last - run.first);
        if (!run.put_aside) continue;
        line_ = line + run.aside_line;
        next_ = static_cast<std::size_t>(run.aside.data() - text_.data()) + run.aside.size();
        next_ += next_ < text_.size() ? 1 : 0;  // the newline
        record(run.aside, line_);
        if (problem_ || ended_) return true;
        if (records_.changes() != known) return false;
      }
      next_ = begin + stretch.end;
      line_ = line + stretch.lines - 1;
      if (stretch.end < stretch.text.size()) return false;
    }
    return true;
  }

  void record(std::string_view line, std::int64_t number) {
    const auto start = static_cast<std::size_t>(line.data() - text_.data());
    if (line.size() > kMaxJsonLine) return fail(start, number, "longer than 64 MiB");
    ondemand::document document;
    const auto status = parser_.iterate(copy_.of(line)).get(document);
    if (status != simdjson::SUCCESS) return fail(start, number, json_problem(status));
    const std::string problem = records_.record(document, row_, number);
    if (!problem.empty()) return fail(start + copy_.offset(document), number, problem);
    count_rows(1);
  }

  void count_rows(std::int64_t count) {
    const std::int64_t before = row_ / kRowsBetweenAsking;
    row_ += count;
    if (row_ / kRowsBetweenAsking != before) ended_ = sink_.stopped() || !records_.wanted();
  }

  void fail(std::size_t offset, std::int64_t line, const std::string& why) {
    problem_ =
        damaged(source_.path, offset, "line " + std::to_string(line) + ": " + why, "mend or remove the line");
  }

  const Source& source_;
  Sink& sink_;
  std::size_t stretch_bytes_;
  std::string_view text_;
  JsonText copy_;
  ondemand::parser parser_;
  JsonRecords records_;
  std::vector<JsonStretch> stretches_{kStretches};
  std::size_t next_ = 0;   // where the next line begins
  std::int64_t line_ = 0;  // of the one before it
  std::int64_t row_ = 0;   // of the next record
  bool ended_ = false;     // nobody wants more
  std::optional<Error> problem_;
};

}  // namespace

Result<bool> read_json_lines(const Source& source, Sink& sink, std::size_t stretch_bytes) {
  return Lines(source, sink, stretch_bytes).read();
}

}  // namespace trapline::inputs
