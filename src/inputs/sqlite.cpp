// SQLite databases: a column per column of a table. The reading itself is in libtrapline_sqlite.so
// (src/inputs/sqlite).
#include <algorithm>
#include <filesystem>

#include "inputs/damage.hpp"
#include "inputs/formats.hpp"
#include "inputs/mapped_file.hpp"
#include "inputs/plugin.hpp"
#include "inputs/sqlite_plugin.hpp"

namespace trapline::inputs {
namespace {

namespace fs = std::filesystem;

// From the file format (sqlite.org/fileformat.html): of a database, and of a journal that is not finished.
constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr std::string_view kJournalMagic("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8);
constexpr std::size_t kPageSizeAt = 16, kHeader = 100;

const Plugin& plugin() {
  static const Plugin loaded =
      load_plugin("libtrapline_sqlite.so", kSqliteReadName, "TRAPLINE_SQLITE_PLUGIN");
  return loaded;
}

// Such a file beside the database, when there is something in it.
Result<MappedFile> beside(const std::string& path) {
  std::error_code problem;
  if (!fs::is_regular_file(path, problem)) return MappedFile();
  return MappedFile::open(path);
}

class SqliteReader final : public Reader {
 public:
  std::string_view name() const override { return "sqlite"; }
  bool knows(const Source& source) const override {
    if (as_text(source.bytes).starts_with(kMagic)) return true;
    return std::ranges::any_of(std::initializer_list<std::string_view>{".sqlite", ".sqlite3", ".db3"},
                               [&](std::string_view end) { return source.path.ends_with(end); });
  }

  bool is_table(const Source&) const override { return true; }
  Result<bool> read(const Source& source, Sink& sink) const override {
    if (source.bytes.empty())
      return unreadable(source.path, "the file is empty: no database was ever written to it");
    if (!as_text(source.bytes).starts_with(kMagic)) {
      return unreadable(source.path,
                        "it does not begin as an SQLite database does: it is encrypted, or damaged",
                        "write it without encryption, or copy the file again");
    }
    if (plugin().symbol == nullptr) {
      return unreadable(source.path, "SQLite databases need libsqlite3 (" + plugin().problem + ")",
                        "write its table as CSV: sqlite3 -header -csv FILE 'SELECT * FROM t' > t.csv");
    }
    // A size of 1 stands for 65536, which is no 16-bit number; it is stored big-endian.
    const auto high = static_cast<std::size_t>(source.bytes[std::min(kPageSizeAt, source.bytes.size() - 1)]);
    if (source.bytes.size() < kHeader) return cut(source);
    const auto low = static_cast<std::size_t>(source.bytes[kPageSizeAt + 1]);
    const std::size_t page = high == 0 && low == 1 ? 65536 : high * 256 + low;
    if (page < 512 || (page & (page - 1)) != 0)
      return damaged(source.path, kPageSizeAt, "its pages cannot be of " + std::to_string(page) + " bytes");
    if (source.bytes.size() % page != 0) return cut(source);

    const Result<MappedFile> journal = beside(source.path + "-journal");
    if (!journal) return journal.error();
    if (as_text(journal->bytes()).starts_with(kJournalMagic)) {
      return unreadable(source.path,
                        "a change to it is not finished (" + name_of_journal(source.path) +
                            " lies beside it), so that its pages do not fit together",
                        "let the program that writes it end; if that has died: sqlite3 FILE .tables, which "
                        "takes the change back");
    }
    // What was committed may lie in the log alone.
    const Result<MappedFile> log = beside(source.path + "-wal");
    if (!log) return log.error();
    std::optional<Error> problem;
    reinterpret_cast<SqliteRead>(plugin().symbol)({source.path, source.bytes, log->bytes()}, sink, problem);
    if (problem) return *problem;
    return !sink.stopped();
  }

 private:
  static Error cut(const Source& source) {
    return damaged(source.path, source.bytes.size(), "the database ends within a page");
  }
  static std::string name_of_journal(const std::string& path) {
    return fs::path(path).filename().string() + "-journal";
  }
};

}  // namespace

const Reader& sqlite() {
  static const SqliteReader reader;
  return reader;
}

}  // namespace trapline::inputs
