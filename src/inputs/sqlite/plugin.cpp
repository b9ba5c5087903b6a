// libtrapline_sqlite.so: reads the tables of a database through libsqlite3. Views, triggers, virtual tables
// and computed columns are not evaluated: of what a database says only stored values are looked at.
#include <algorithm>
#include <string_view>
#include <vector>

#include "inputs/damage.hpp"
#include "inputs/sqlite/memory_file.hpp"
#include "inputs/sqlite/statement.hpp"
#include "inputs/sqlite/table.hpp"
#include "inputs/sqlite_plugin.hpp"

namespace trapline::inputs {
namespace {

constexpr std::size_t kMaxTables = 4096;
// The least that a row takes: two bytes in its page's list, four of its own (sqlite.org/fileformat.html).
constexpr std::int64_t kLeastRow = 6;
constexpr std::string_view kRecover = "mend it: sqlite3 FILE .recover | sqlite3 mended.db";

Error problem_of(const SqliteFile& file, const std::string& where, const Database& database) {
  const int code = database.handle() == nullptr ? SQLITE_NOMEM : sqlite3_errcode(database.handle());
  const std::string_view fix = code == SQLITE_TOOBIG ? "a value of more than 64 MiB is not read" : kRecover;
  return unreadable(file.path, where + "SQLite says: " + in_quotes(database.problem(), 120), fix);
}

struct Tables {
  std::vector<std::string> tables, views, computed;  // computed: virtual tables
  bool more = false;
};

bool list(const Database& database, Tables& found) {
  Statement rows(database, "SELECT type, name, rootpage FROM main.sqlite_master");
  while (rows.next()) {
    const std::string_view type = rows.text(0);
    std::string name(rows.text(1));
    if (type != "table" && type != "view") continue;
    if (name.starts_with("sqlite_")) continue;  // SQLite's own
    if (found.tables.size() + found.views.size() + found.computed.size() == kMaxTables) {
      found.more = true;
      return true;
    }
    std::vector<std::string>& kind = type == "view"         ? found.views
                                     : rows.integer(2) == 0 ? found.computed
                                                            : found.tables;
    kind.push_back(std::move(name));
  }
  // What a virtual table keeps its data in is for it alone.
  std::erase_if(found.tables, [&](const std::string& name) {
    return std::ranges::any_of(found.computed,
                               [&](const std::string& owner) { return name.starts_with(owner + "_"); });
  });
  return !rows.failed();
}

std::optional<Error> read(const SqliteFile& file, Sink& sink) {
  const MemoryFiles files(file.bytes, file.log);
  const Database database(files, sink);
  if (!database.is_open()) return problem_of(file, "", database);
  Tables found;
  const bool listed = list(database, found);
  if (sink.stopped()) return std::nullopt;
  std::optional<Error> first;
  if (!listed) first = problem_of(file, "", database);
  const auto size = static_cast<std::int64_t>(file.bytes.size() + file.log.size());
  Budget budget{size / kLeastRow, size};
  for (const std::string& table : found.tables) {
    const std::string prefix = found.tables.size() == 1 ? "" : table + ".";
    const TableRead done = read_table(database, table, prefix, sink, budget);
    if (sink.stopped()) return std::nullopt;
    const std::string where = "the table " + in_quotes(table) + ": ";
    if (done == TableRead::kFailed && !first) first = problem_of(file, where, database);
    if (done == TableRead::kCircle)
      return unreadable(file.path, where + "it has more rows than the file has room for", kRecover);
  }
  for (const std::string& view : found.views) sink.skipped(view, "a view, which is not evaluated");
  for (const std::string& table : found.computed)
    sink.skipped(table, "a virtual table, which is not evaluated");
  if (found.more && !first)
    first =
        unreadable(file.path, "more than 4096 tables: the others were not read", "check its tables in parts");
  return first;
}

}  // namespace
}  // namespace trapline::inputs

extern "C" __attribute__((visibility("default"))) void trapline_sqlite_read(
    const trapline::inputs::SqliteFile& file, trapline::inputs::Sink& sink,
    std::optional<trapline::Error>& problem) {
  problem = trapline::inputs::read(file, sink);
}
