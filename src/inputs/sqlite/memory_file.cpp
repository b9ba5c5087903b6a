#include "inputs/sqlite/memory_file.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <new>
#include <string_view>

namespace trapline::inputs {
namespace {

struct File {
  sqlite3_file base;
  std::span<const std::byte> bytes;
  bool alone;  // no log beside it
};

File& file_of(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }
const MemoryFiles& files_of(sqlite3_vfs* vfs) { return *static_cast<const MemoryFiles*>(vfs->pAppData); }

int do_nothing(sqlite3_file*) { return SQLITE_OK; }
int do_nothing_with(sqlite3_file*, int) { return SQLITE_OK; }

int read(sqlite3_file* file, void* to, int count, sqlite3_int64 offset) {
  const std::span<const std::byte> bytes = file_of(file).bytes;
  const auto size = static_cast<std::size_t>(count);
  const std::size_t from = std::min(static_cast<std::size_t>(offset), bytes.size());
  const std::size_t there = std::min(size, bytes.size() - from);
  if (there > 0) std::memcpy(to, bytes.data() + from, there);
  if (there == size) return SQLITE_OK;
  std::memset(static_cast<char*>(to) + there, 0, size - there);  // as SQLite demands
  return SQLITE_IOERR_SHORT_READ;
}
int write(sqlite3_file*, const void*, int, sqlite3_int64) { return SQLITE_READONLY; }
int truncate(sqlite3_file*, sqlite3_int64) { return SQLITE_READONLY; }
int size_of_file(sqlite3_file* file, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>(file_of(file).bytes.size());
  return SQLITE_OK;
}
int is_reserved(sqlite3_file*, int* result) {
  *result = 0;
  return SQLITE_OK;
}
int control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int sector(sqlite3_file*) { return 4096; }
// Immutable: no journal and no log is looked for, whatever the header says.
int characteristics(sqlite3_file* file) { return file_of(file).alone ? SQLITE_IOCAP_IMMUTABLE : 0; }

constexpr sqlite3_io_methods methods() {
  sqlite3_io_methods made{};
  made.iVersion = 1;  // no shared memory: the log's index is in this process alone
  made.xClose = do_nothing;
  made.xRead = read;
  made.xWrite = write;
  made.xTruncate = truncate;
  made.xSync = do_nothing_with;
  made.xFileSize = size_of_file;
  made.xLock = do_nothing_with;  // nobody else has this memory
  made.xUnlock = do_nothing_with;
  made.xCheckReservedLock = is_reserved;
  made.xFileControl = control;
  made.xSectorSize = sector;
  made.xDeviceCharacteristics = characteristics;
  return made;
}
constexpr sqlite3_io_methods kMethods = methods();

bool is_log(const char* name) { return name != nullptr && std::string_view(name).ends_with("-wal"); }

int open(sqlite3_vfs* vfs, sqlite3_filename name, sqlite3_file* out, int flags, int* out_flags) {
  out->pMethods = nullptr;
  const MemoryFiles& files = files_of(vfs);
  const bool log = (flags & SQLITE_OPEN_WAL) != 0 && is_log(name) && !files.log().empty();
  if (!log && (flags & SQLITE_OPEN_MAIN_DB) == 0) return SQLITE_CANTOPEN;
  auto* file = new (out) File{};
  file->base.pMethods = &kMethods;
  file->bytes = log ? files.log() : files.database();
  file->alone = files.log().empty();
  if (out_flags != nullptr)
    *out_flags = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
  return SQLITE_OK;
}
int remove(sqlite3_vfs*, const char*, int) { return SQLITE_READONLY; }
int access(sqlite3_vfs* vfs, const char* name, int flags, int* result) {
  *result = flags != SQLITE_ACCESS_READWRITE && is_log(name) && !files_of(vfs).log().empty() ? 1 : 0;
  return SQLITE_OK;
}
int full_name(sqlite3_vfs*, const char* name, int room, char* out) {
  sqlite3_snprintf(room, out, "%s", name);
  return SQLITE_OK;
}
int randomness(sqlite3_vfs*, int count, char* out) {
  std::memset(out, 1, static_cast<std::size_t>(count));
  return count;
}
int sleep(sqlite3_vfs*, int microseconds) { return microseconds; }
int time(sqlite3_vfs*, double* days) {
  constexpr double kEpoch = 2440587.5, kSecondsOfDay = 86400.0;
  *days = kEpoch + static_cast<double>(std::time(nullptr)) / kSecondsOfDay;
  return SQLITE_OK;
}

}  // namespace

MemoryFiles::MemoryFiles(std::span<const std::byte> database, std::span<const std::byte> log)
    : database_(database),
      log_(log),
      name_("trapline-" + std::to_string(reinterpret_cast<std::uintptr_t>(this))) {
  vfs_.iVersion = 1;
  vfs_.szOsFile = sizeof(File);
  vfs_.mxPathname = 512;
  vfs_.zName = name_.c_str();
  vfs_.pAppData = this;
  vfs_.xOpen = open;
  vfs_.xDelete = remove;
  vfs_.xAccess = access;
  vfs_.xFullPathname = full_name;
  vfs_.xRandomness = randomness;  // xDlOpen stays null: no extension is ever loaded
  vfs_.xSleep = sleep;
  vfs_.xCurrentTime = time;
  registered_ = sqlite3_vfs_register(&vfs_, 0) == SQLITE_OK;
}

MemoryFiles::~MemoryFiles() {
  if (registered_) sqlite3_vfs_unregister(&vfs_);
}

}  // namespace trapline::inputs
