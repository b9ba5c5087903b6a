#include "inputs/sqlite/statement.hpp"

#include <algorithm>

namespace trapline::inputs {
namespace {

constexpr int kOperationsBetweenAsking = 100'000;

struct Limit {
  int which, most;
};
constexpr Limit kLimits[] = {
    {SQLITE_LIMIT_LENGTH, 64 << 20},       {SQLITE_LIMIT_SQL_LENGTH, 4 << 20},
    {SQLITE_LIMIT_EXPR_DEPTH, 100},        {SQLITE_LIMIT_COMPOUND_SELECT, 2},
    {SQLITE_LIMIT_VDBE_OP, 1'000'000},     {SQLITE_LIMIT_ATTACHED, 0},
    {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1}, {SQLITE_LIMIT_VARIABLE_NUMBER, 0},
    {SQLITE_LIMIT_TRIGGER_DEPTH, 0},       {SQLITE_LIMIT_WORKER_THREADS, 0},
};

struct Switch {
  int which, on;
};
constexpr Switch kSwitches[] = {
    {SQLITE_DBCONFIG_DEFENSIVE, 1},      {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
    {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, {SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1},
#ifdef SQLITE_DBCONFIG_TRUSTED_SCHEMA  // 3.31
    {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
#endif
#ifdef SQLITE_DBCONFIG_ENABLE_VIEW  // 3.30
    {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
#endif
#ifdef SQLITE_DBCONFIG_DQS_DML  // 3.29
    {SQLITE_DBCONFIG_DQS_DML, 0},
#endif
};

// The log is read without shared memory, hence alone. What is sorted or held is held in memory, and little.
constexpr char kSettings[] =
    "PRAGMA locking_mode=EXCLUSIVE; PRAGMA query_only=1; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-8192; "
    "PRAGMA mmap_size=0; PRAGMA cell_size_check=1";

int stop_asked(void* sink) { return static_cast<const Sink*>(sink)->stopped() ? 1 : 0; }

// What Trapline's own statements need, and nothing else: a database's text is never more than data.
int authorize(void*, int action, const char* first, const char* second, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
      return SQLITE_OK;
    case SQLITE_PRAGMA:
      return std::string_view(first == nullptr ? "" : first) == "table_xinfo" ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_FUNCTION: {
      const std::string_view name = second == nullptr ? "" : second;
      return name == "typeof" || name == "substr" ? SQLITE_OK : SQLITE_DENY;
    }
    default:
      return SQLITE_DENY;
  }
}

}  // namespace

Database::Database(const MemoryFiles& files, const Sink& sink) {
  if (files.name() == nullptr) return;
  if (sqlite3_open_v2("database", &handle_, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, files.name()) !=
      SQLITE_OK) {
    return;
  }
  for (const Limit& limit : kLimits) sqlite3_limit(handle_, limit.which, limit.most);
  // A switch that this library does not know is none it has.
  for (const Switch& one : kSwitches) sqlite3_db_config(handle_, one.which, one.on, nullptr);
  if (sqlite3_exec(handle_, kSettings, nullptr, nullptr, nullptr) != SQLITE_OK) return;
  sqlite3_set_authorizer(handle_, authorize, nullptr);
  sqlite3_progress_handler(handle_, kOperationsBetweenAsking, stop_asked, const_cast<Sink*>(&sink));
  open_ = true;
}

Database::~Database() { sqlite3_close(handle_); }

std::string Database::problem() const {
  return handle_ == nullptr ? "no memory" : std::string(sqlite3_errmsg(handle_));
}

Statement::Statement(const Database& database, const std::string& text) {
  failed_ = sqlite3_prepare_v2(database.handle(), text.c_str(), -1, &handle_, nullptr) != SQLITE_OK;
}

bool Statement::next() {
  if (failed_ || handle_ == nullptr) return false;
  const int code = sqlite3_step(handle_);
  failed_ = code != SQLITE_ROW && code != SQLITE_DONE;
  return code == SQLITE_ROW;
}

std::string_view Statement::text(int column) {
  // A blob is no text, and would be converted.
  const void* data = type(column) == SQLITE_BLOB ? sqlite3_column_blob(handle_, column)
                                                 : sqlite3_column_text(handle_, column);
  if (data == nullptr) return {};
  return {static_cast<const char*>(data), static_cast<std::size_t>(sqlite3_column_bytes(handle_, column))};
}

std::string quoted_name(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

}  // namespace trapline::inputs
