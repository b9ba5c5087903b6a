#include "inputs/sqlite/table.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "inputs/value_column.hpp"

namespace trapline::inputs {
namespace {

constexpr int kSampleRows = 1000;
constexpr std::size_t kSampleBytes = std::size_t{1} << 20U;
constexpr std::size_t kValuesHeld = std::size_t{1} << 20U;  // of all columns together
constexpr std::size_t kValuesPerPiece = std::size_t{1} << 16U;
constexpr std::int64_t kRowsBetweenAsking = 4096;

struct Field {
  std::string name;
  bool text_type = false;  // declared so: what an empty column says
  bool any = false, numbers = false, floats = false, blobs = false, texts = false;
};

bool contains_any_case(std::string_view text, std::string_view upper) {
  return std::ranges::search(text, upper, {}, [](char c) {
           return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
         }).begin() != text.end();
}

// SQLite's rules of affinity (sqlite.org/datatype3.html): INT goes before the others.
bool is_text_type(std::string_view type) {
  if (contains_any_case(type, "INT")) return false;
  for (const std::string_view word : {"CHAR", "CLOB", "TEXT", "BLOB"}) {
    if (contains_any_case(type, word)) return true;
  }
  return false;
}

// Rows in the order of the table itself: an index that holds all columns would give another.
std::string selection(const std::string& table, const std::string& columns) {
  return "SELECT " + columns + " FROM main." + quoted_name(table) + " NOT INDEXED";
}

bool read_fields(const Database& database, const std::string& table, const std::string& prefix, Sink& sink,
                 std::vector<Field>& fields) {
  constexpr int kName = 1, kType = 2, kHidden = 6, kComputed = 2;
  Statement columns(database, "PRAGMA main.table_xinfo(" + quoted_name(table) + ")");
  while (columns.next()) {
    Field field;
    field.name = std::string(columns.text(kName));
    field.text_type = is_text_type(columns.text(kType));
    if (columns.integer(kHidden) == kComputed) {
      sink.skipped(prefix + field.name, "computed, not stored");
    } else {
      fields.push_back(std::move(field));
    }
  }
  return !columns.failed();
}

void note(Field& field, Statement& row, int column, std::size_t& bytes) {
  switch (row.type(column)) {
    case SQLITE_INTEGER:
      field.any = field.numbers = true;
      break;
    case SQLITE_FLOAT:
      field.any = field.numbers = field.floats = true;
      break;
    case SQLITE_BLOB:
      field.any = field.blobs = true;
      break;
    case SQLITE_TEXT: {
      const std::string_view text = row.text(column);
      bytes += text.size();
      const Number number = number_of(text);
      field.any |= number.kind != Number::Kind::kMissing;
      field.texts |= number.kind == Number::Kind::kText;
      field.numbers |= number.kind == Number::Kind::kInteger || number.kind == Number::Kind::kFloat;
      field.floats |= number.kind == Number::Kind::kFloat && !number.huge;
      break;
    }
    default:
      break;
  }
}

// What the first rows show. Blobs, which are pictures as a rule, are not loaded for that.
bool sample(const Database& database, const std::string& table, std::vector<Field>& fields) {
  std::string columns;
  for (const Field& field : fields) {
    const std::string name = quoted_name(field.name);
    columns += (columns.empty() ? "" : ",") + ("CASE typeof(" + name +
                                               ") WHEN 'blob' THEN x'' WHEN 'text' THEN "
                                               "substr(" +
                                               name + ",1,64) ELSE " + name + " END");
  }
  Statement rows(database, selection(table, columns) + " LIMIT " + std::to_string(kSampleRows));
  std::size_t bytes = 0;
  while (bytes <= kSampleBytes && rows.next()) {
    for (std::size_t i = 0; i < fields.size(); ++i) note(fields[i], rows, static_cast<int>(i), bytes);
  }
  return !rows.failed();
}

// "x'0300000000000000'": an integer of NumPy's, which Python's sqlite3 stores as its bytes.
std::string in_hex(std::string_view bytes) {
  constexpr std::size_t kMost = 16;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "x'";
  for (const char c : bytes.substr(0, kMost)) {
    const auto byte = static_cast<unsigned char>(c);
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out + (bytes.size() > kMost ? "...'" : "'");
}

// Returns the bytes of text that the value has.
std::size_t add_value(ValueColumn& column, Statement& rows, int at, std::int64_t row) {
  switch (rows.type(at)) {
    case SQLITE_INTEGER:
      column.add(row, 0, rows.integer(at));
      return 0;
    case SQLITE_FLOAT:
      column.add(row, 0, rows.number(at));
      return 0;
    case SQLITE_NULL:
      column.malformed(row, 0, "");
      return 0;
    case SQLITE_BLOB: {
      const std::string_view bytes = rows.text(at);
      column.malformed(row, 0, in_hex(bytes));
      return bytes.size();
    }
    default: {
      const std::string_view text = rows.text(at);
      column.add(row, 0, number_of(text), text);
      return text.size();
    }
  }
}

}  // namespace

TableRead read_table(const Database& database, const std::string& table, const std::string& prefix,
                     Sink& sink, Budget& budget) {
  std::vector<Field> fields;
  if (!read_fields(database, table, prefix, sink, fields)) return TableRead::kFailed;
  if (fields.empty()) return TableRead::kDone;
  if (!sample(database, table, fields)) return TableRead::kFailed;

  const std::size_t most = std::clamp<std::size_t>(kValuesHeld / fields.size(), 64, kValuesPerPiece);
  std::vector<ValueColumn> columns;
  std::string wanted;
  for (const Field& field : fields) {
    if (field.any ? !field.numbers : field.text_type) {
      sink.skipped(prefix + field.name, field.blobs && !field.texts ? "binary" : "text");
      continue;
    }
    ValueColumn column(sink, {prefix + field.name, field.floats ? DType::kFloat64 : DType::kInt64, {-1}},
                       most);
    if (!column.begin()) continue;
    columns.push_back(std::move(column));
    wanted += (wanted.empty() ? "" : ",") + quoted_name(field.name);
  }
  if (columns.empty()) return TableRead::kDone;

  Statement rows(database, selection(table, wanted));
  TableRead read = TableRead::kDone;
  for (std::int64_t row = 0; rows.next(); ++row) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      budget.text -= static_cast<std::int64_t>(add_value(columns[i], rows, static_cast<int>(i), row));
    }
    if (--budget.rows < 0 || budget.text < 0) {
      read = TableRead::kCircle;
      break;
    }
    if (row % kRowsBetweenAsking == 0 &&
        (sink.stopped() || std::ranges::none_of(columns, [](const ValueColumn& c) { return c.wanted(); }))) {
      break;
    }
  }
  for (ValueColumn& column : columns) column.flush();  // what came before the damage, too
  return rows.failed() ? TableRead::kFailed : read;
}

}  // namespace trapline::inputs
