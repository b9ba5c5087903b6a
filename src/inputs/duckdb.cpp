// DuckDB databases: a column per column of numbers of a table. The format is DuckDB's own affair and changes
// with its releases; a DuckDB that is on this machine writes each table as Parquet, which is then read as any
// other.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "inputs/damage.hpp"
#include "inputs/duckdb_program.hpp"
#include "inputs/formats.hpp"
#include "inputs/mapped_file.hpp"
#include "inputs/unnamed_file.hpp"

namespace trapline::inputs {
namespace {

namespace fs = std::filesystem;

// From DuckDB's main header, behind a checksum; the high bytes of its version.
constexpr std::string_view kMagic = "DUCK";
constexpr std::size_t kMagicAt = 8, kVersionAt = 14;
constexpr std::string_view kVersion("\0\0\0\0\0\0", 6);
constexpr std::size_t kMaxTables = 256;
constexpr std::string_view kInstead =
    "write its table as Parquet: COPY t TO 't.parquet' (FORMAT parquet); is the DuckDB here older than the "
    "file: "
    "pip install -U duckdb";

bool has_magic(std::string_view text) {
  return text.size() > kVersionAt && text.substr(kMagicAt).starts_with(kMagic) &&
         text.substr(kVersionAt).starts_with(kVersion);
}

// A line break would begin another statement, or a command of DuckDB's shell.
bool is_one_line(std::string_view text) {
  return std::ranges::none_of(text,
                              [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
}

std::string as_sql(std::string_view text, char quote) {
  std::string out(1, quote);
  for (const char c : text) out += c == quote ? std::string(2, c) : std::string(1, c);
  return out + quote;
}
std::string name_in_sql(std::string_view name) { return as_sql(name, '"'); }

// What DuckDB may do: read this file. Its macros and settings lie in `data`, where no name here is looked
// for.
std::string opening(const std::string& path) {
  return "SET autoinstall_known_extensions=false;\n"
         "SET autoload_known_extensions=false;\n"
         "SET threads=2;\n"
         "SET memory_limit='1GB';\n"
         "SET temp_directory='';\n"
         "SET allowed_paths=[" +
         as_sql(kDuckDbOutput, '\'') + "];\nATTACH " + as_sql(path, '\'') +
         " AS data (READ_ONLY);\n"
         "SET enable_external_access=false;\n"
         "SET lock_configuration=true;\n";
}

std::string writing(const std::string& query, std::string_view how) {
  return "COPY (" + query + ") TO " + as_sql(kDuckDbOutput, '\'') + " (" + std::string(how) +
         ", USE_TMP_FILE false);\n";
}

// In hexadecimal digits, since names may hold anything.
std::string listing() {
  return writing(
      "SELECT hex(c.schema_name), hex(c.table_name), hex(c.column_name), hex(c.data_type), v.view_name IS "
      "NULL "
      "FROM duckdb_columns() c LEFT JOIN (SELECT schema_name, view_name FROM duckdb_views() "
      "WHERE database_name = 'data') v ON c.schema_name = v.schema_name AND c.table_name = v.view_name "
      "WHERE c.database_name = 'data' AND NOT c.internal "
      "ORDER BY c.schema_name = 'main' DESC, c.schema_name, c.table_oid, c.column_index",
      "FORMAT csv, HEADER false");
}

struct Field {
  std::string name, type;
};
struct Table {
  std::string schema, name;
  std::vector<Field> fields;
  bool view = false;
};

std::optional<std::string> from_hex(std::string_view digits) {
  const auto value = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string out;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = value(digits[i]), low = value(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
  }
  return out;
}

// Empty: this is not what listing() asks for.
std::optional<std::vector<Table>> tables_of(std::string_view text) {
  std::vector<Table> tables;
  constexpr std::size_t kCells = 5;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    std::vector<std::string> cells;
    while (cells.size() + 1 < kCells) {
      const std::size_t end = line.find(',');
      const auto cell = end == line.npos ? std::nullopt : from_hex(line.substr(0, end));
      if (!cell) return std::nullopt;
      cells.push_back(*cell);
      line.remove_prefix(end + 1);
    }
    if (tables.empty() || tables.back().schema != cells[0] || tables.back().name != cells[1])
      tables.push_back({cells[0], cells[1], {}, line != "true"});
    tables.back().fields.push_back({cells[2], cells[3]});
  }
  return tables;
}

// How a column is selected: as it is, or as another type that Parquet and Trapline have.
// "INTEGER[]" for "INTEGER[3]": DuckDB 2.0 writes a missing array as Parquet that Arrow refuses.
std::string as_lists(std::string_view type) {
  std::string out;
  bool in_brackets = false;
  for (const char c : type) {
    if (c == ']') in_brackets = false;
    if (!in_brackets) out += c;
    if (c == '[') in_brackets = true;
  }
  return out;
}

// How a column is selected: as it is, or as another type that Parquet and Trapline have.
struct Selected {
  std::string expression;
  std::string_view skipped;  // why not
};

Selected select(const Field& field) {
  const std::string name = name_in_sql(field.name);
  std::string_view type = field.type;
  if (!is_one_line(field.name)) return {"", "a name with control characters"};
  if (type.starts_with("STRUCT(")) return {name, ""};
  const std::string_view element = type.substr(0, type.find_first_of("[("));
  for (const std::string_view number : {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT",
                                        "UINTEGER", "UBIGINT", "FLOAT", "DOUBLE", "BOOLEAN"}) {
    if (element != number) continue;
    const std::string lists = as_lists(type);
    return {lists == type ? name : "CAST(" + name + " AS " + lists + ") AS " + name, ""};
  }
  // What sum() makes of integers. Those that do not fit become the largest int64, as in other formats.
  if (type == "HUGEINT" || type == "UHUGEINT") {
    const std::string most = "9223372036854775807", least = "-9223372036854775808";
    return {"CAST(CASE WHEN " + name + " > " + most + " THEN " + most + " WHEN " + name + " < " + least +
                " THEN " + least + " ELSE " + name + " END AS BIGINT) AS " + name,
            ""};
  }
  if (element == "DECIMAL" && type.ends_with(')')) return {"CAST(" + name + " AS DOUBLE) AS " + name, ""};
  if (element == "VARCHAR" || element == "ENUM" || element == "UUID") return {"", "text"};
  if (element == "BLOB" || element == "BIT") return {"", "binary"};
  if (element.starts_with("TIME") || element == "DATE" || element == "INTERVAL") return {"", "times"};
  return {"", "no numbers that can be read"};
}

// Gives the columns the name of their table.
class TableSink final : public Sink {
 public:
  TableSink(Sink& sink, std::string prefix) : sink_(sink), prefix_(std::move(prefix)) {}
  bool begin(const Column& column) override { return sink_.begin(named(column)); }
  bool piece(const Piece& piece) override {
    Piece other = piece;
    other.column = &named(*piece.column);
    return sink_.piece(other);
  }
  void malformed(const Column& column, std::int64_t row, std::int64_t line, std::string_view text) override {
    sink_.malformed(named(column), row, line, text);
  }
  bool begin_text(const Column& column) override { return sink_.begin_text(named(column)); }
  bool text(const Column& column, std::int64_t row, std::int64_t line, std::string_view text) override {
    return sink_.text(named(column), row, line, text);
  }
  void skipped(std::string_view name, std::string_view why) override {
    sink_.skipped(prefix_ + std::string(name), why);
  }
  void class_names(const Column& column, std::span<const ClassName> names) override {
    sink_.class_names(named(column), names);
  }
  void parallel(std::int64_t count, const std::function<void(std::int64_t)>& body) override {
    sink_.parallel(count, body);
  }
  bool stopped() const override { return sink_.stopped(); }

 private:
  const Column& named(const Column& column) {
    Column& own = columns_[column.name];
    own = column;
    own.name = prefix_ + column.name;
    return own;
  }
  Sink& sink_;
  std::string prefix_;
  std::map<std::string, Column> columns_;  // at addresses that stay
};

class Database {
 public:
  Database(const Source& source, Sink& sink) : source_(source), sink_(sink), file_(open_unnamed(folder_)) {}

  std::optional<Error> read() {
    std::error_code problem;
    const std::string path = fs::absolute(source_.path, problem).string();
    if (problem || !is_one_line(path))
      return unreadable(source_.path, "DuckDB cannot be given a path like that", "rename the file");
    opening_ = opening(path);
    if (file_.number() < 0) return no_room();
    if (const std::optional<std::uint64_t> most = room_for(file_.number())) {
      most_ = *most;
    } else {
      return no_room();
    }
    if (std::optional<Error> error = find_program()) return error;
    if (sink_.stopped()) return std::nullopt;
    const Result<MappedFile> list = written();
    if (!list) return list.error();
    const auto tables = tables_of(as_text(list->bytes()));
    if (!tables) return failed("", "was led astray by it");
    return read_tables(*tables);
  }

 private:
  // Another DuckDB may be newer than the first one.
  std::optional<Error> find_program() {
    std::optional<Error> first;
    for (const DuckDb& program : duckdb_programs()) {
      const DuckDbRun run = run_duckdb(program, opening_ + listing(), file_.number(), most_, sink_);
      program_ = program;
      if (run.end == DuckDbRun::End::kDone || run.end == DuckDbRun::End::kStopped) return std::nullopt;
      if (run.end == DuckDbRun::End::kFailed && !first) first = failed("", run.problem);
    }
    if (first) return first;
    return unreadable(
        source_.path, "DuckDB databases need DuckDB, and neither `duckdb` nor a Python with it is here",
        "pip install duckdb, or write its table as Parquet: COPY t TO 't.parquet' (FORMAT parquet)");
  }

  std::optional<Error> read_tables(const std::vector<Table>& tables) {
    const auto count = std::ranges::count_if(tables, [](const Table& table) { return !table.view; });
    std::optional<Error> first;
    std::size_t seen = 0;
    for (const Table& table : tables) {
      if (sink_.stopped()) return std::nullopt;
      if (table.view) {
        sink_.skipped(table.name, "a view, which is not evaluated");
        continue;
      }
      if (++seen > kMaxTables) {
        if (!first)
          first = unreadable(source_.path, "more than 256 tables: the others were not read",
                             "check its tables in parts");
        break;
      }
      const std::string name = (table.schema == "main" ? "" : table.schema + ".") + table.name;
      TableSink sink(sink_, count == 1 ? "" : name + ".");
      std::optional<Error> problem = read_table(table, sink);
      if (problem && !first) first = std::move(problem);
    }
    return first;
  }

  std::optional<Error> read_table(const Table& table, Sink& sink) {
    const std::string where = "the table " + in_quotes(table.name) + ": ";
    if (!is_one_line(table.name + table.schema))
      return unreadable(source_.path, where + "its name has control characters", "rename it");
    std::string columns;
    for (const Field& field : table.fields) {
      const Selected selected = select(field);
      if (selected.expression.empty()) {
        sink.skipped(field.name, selected.skipped);
      } else {
        columns += (columns.empty() ? "" : ", ") + selected.expression;
      }
    }
    if (columns.empty()) return std::nullopt;
    const std::string query =
        "SELECT " + columns + " FROM data." + name_in_sql(table.schema) + "." + name_in_sql(table.name);
    const DuckDbRun run =
        run_duckdb(program_, opening_ + writing(query, "FORMAT parquet"), file_.number(), most_, sink_);
    if (run.end == DuckDbRun::End::kStopped) return std::nullopt;
    if (run.end != DuckDbRun::End::kDone) return failed(where, run.problem);
    const Result<MappedFile> parquet = written();
    if (!parquet) return parquet.error();
    const Result<bool> whole = arrow().read({source_.path, parquet->bytes()}, sink);
    return whole ? std::nullopt : std::optional(whole.error());
  }

  Result<MappedFile> written() const {
    struct stat status {};
    if (::fstat(file_.number(), &status) != 0) return no_room();
    Result<MappedFile> file = MappedFile::of(file_.number(), static_cast<std::uint64_t>(status.st_size));
    if (!file) return unreadable(source_.path, file.error().why, file.error().fix);
    return file;
  }
  Error no_room() const {
    return unreadable(
        source_.path,
        "its tables cannot be written to " + folder_ + ": " + std::generic_category().message(errno),
        "set TMPDIR to a folder with room");
  }
  Error failed(const std::string& where, const std::string& problem) const {
    return unreadable(source_.path, where + "DuckDB " + problem, kInstead);
  }

  const Source& source_;
  Sink& sink_;
  const std::string folder_ = temporary_folder();
  const Descriptor file_;
  std::uint64_t most_ = 0;
  std::string opening_;
  DuckDb program_;
};

class DuckDbReader final : public Reader {
 public:
  std::string_view name() const override { return "duckdb"; }
  bool knows(const Source& source) const override { return has_magic(as_text(source.bytes)); }
  bool is_table(const Source&) const override { return true; }
  Result<bool> read(const Source& source, Sink& sink) const override {
    Database database(source, sink);
    if (std::optional<Error> problem = database.read()) return *std::move(problem);
    return !sink.stopped();
  }
};

}  // namespace

const Reader& duckdb() {
  static const DuckDbReader reader;
  return reader;
}

}  // namespace trapline::inputs
