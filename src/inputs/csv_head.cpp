#include "inputs/csv_head.hpp"

#include <algorithm>

#include "inputs/value_column.hpp"

namespace trapline::inputs {

bool is_header(const std::vector<std::string_view>& fields) {
  return std::none_of(fields.begin(), fields.end(), [](std::string_view field) {
    const Number::Kind kind = number_of(field).kind;
    return kind == Number::Kind::kInteger || kind == Number::Kind::kFloat || field == "nan" || field == "NaN";
  });
}

namespace {

constexpr std::size_t kSampleRows = 1000, kSampleBytes = std::size_t{1} << 20U;
constexpr std::size_t kMaxHead = 64;  // rows
constexpr std::size_t kMaxColumns = 65536;

// As R's write.table() has it: each row begins with its name, for which the header has no field.
bool has_row_names(CsvRows rows, std::size_t fields_in_header) {
  std::vector<std::string_view> fields;
  std::size_t seen = 0;
  for (; seen < kSampleRows && rows.next(fields, fields_in_header + 2); ++seen) {
    if (fields.size() != fields_in_header + 1 || fields.back().empty()) return false;
  }
  return seen > 0 && rows.problem().empty();
}

// As Orange's .tab files have it: below the names a row of types, and one of what the columns are for
// (Orange.data.io, "three-line header").
bool is_orange_header(CsvRows& rows, std::size_t columns) {
  constexpr std::string_view kTypes[] = {"c",           "continuous", "numeric", "n",    "d",   "discrete",
                                         "categorical", "s",          "string",  "text", "time"};
  constexpr std::string_view kUses[] = {"", "class", "c", "meta", "m", "ignore", "i", "skip"};
  std::vector<std::string_view> fields;
  if (!rows.next(fields, columns + 1) || fields.size() > columns) return false;
  std::size_t types = 0;
  for (const std::string_view field : fields) {
    // A list of values stands for "discrete" with these.
    const bool type = std::find(std::begin(kTypes), std::end(kTypes), field) != std::end(kTypes);
    types += type ? 1 : 0;
    if (!type && field.find(' ') == field.npos) return false;
  }
  if (types == 0 || !rows.next(fields, columns + 1)) return false;
  return std::all_of(fields.begin(), fields.end(), [&](std::string_view field) {
    while (field.ends_with(' ')) field.remove_suffix(1);
    return field.find('=') != field.npos ||
           std::find(std::begin(kUses), std::end(kUses), field) != std::end(kUses);
  });
}

bool is_number(std::string_view field) {
  const Number::Kind kind = number_of(field).kind;
  return kind == Number::Kind::kInteger || kind == Number::Kind::kFloat;
}

// The columns that hold numbers in the rows from here on, but for one value in five.
std::vector<std::size_t> numeric_columns(CsvRows rows) {
  struct Seen {
    std::size_t numbers = 0, texts = 0;
  };
  std::vector<Seen> seen;
  std::vector<std::string_view> fields;
  for (std::size_t n = 0; n < kSampleRows && rows.next(fields, kMaxColumns); ++n) {
    if (rows.offset() > kSampleBytes) break;
    if (seen.size() < fields.size()) seen.resize(fields.size());
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const bool number = is_number(fields[i]);
      seen[i].numbers += number ? 1 : 0;
      seen[i].texts += !number && !is_missing(fields[i]) ? 1 : 0;
    }
  }
  std::vector<std::size_t> numeric;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i].numbers > 0 && seen[i].numbers >= 4 * seen[i].texts) numeric.push_back(i);
  }
  return numeric;
}

// How many of the columns have text in the row.
std::size_t texts_in(const std::vector<std::string>& row, const std::vector<std::size_t>& columns) {
  return static_cast<std::size_t>(std::ranges::count_if(columns, [&](std::size_t column) {
    return column < row.size() && !is_missing(row[column]) && !is_number(row[column]);
  }));
}

}  // namespace

CsvHead read_head(CsvRows rows, bool orange) {
  std::vector<std::string_view> fields;
  std::vector<std::vector<std::string>> head;  // rows without a number
  std::vector<CsvRows> behind;                 // where each ends
  while (head.size() < kMaxHead && rows.next(fields, kMaxColumns) && is_header(fields)) {
    head.emplace_back(fields.begin(), fields.end());
    behind.push_back(rows);
  }
  // A row of text belongs to the head when it has text where the numbers stand below it: in one column alone
  // that could be a mistake.
  std::size_t last = 0, names = 0;
  const std::vector<std::size_t> numeric =
      head.size() > 1 && head.size() < kMaxHead ? numeric_columns(behind.back()) : std::vector<std::size_t>();
  for (std::size_t row = 1; numeric.size() > 1 && row < head.size(); ++row) {
    const bool comment = head[row][0].starts_with('#');
    if (comment || 2 * texts_in(head[row], numeric) >= numeric.size()) last = row;
  }
  for (std::size_t row = 1; row <= last; ++row) {
    if (texts_in(head[row], numeric) > texts_in(head[names], numeric)) names = row;
  }
  CsvHead found{head[names], behind[last]};
  if (CsvRows below = behind[0]; orange && is_orange_header(below, head[0].size())) {
    found = {head[0], below};
  }
  if (has_row_names(found.below, found.names.size())) found.names.insert(found.names.begin(), "row.names");
  return found;
}

}  // namespace trapline::inputs
