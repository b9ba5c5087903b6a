#include "run/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace trapline {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "in-use.lock";
constexpr std::size_t kMaxEntries = 100'000;
constexpr std::string_view kPrefix = "trapline-";  // and the six characters of mkdtemp
constexpr std::size_t kNameLength = kPrefix.size() + 6;

bool is_private_folder(const fs::path& path) {
  const std::string name = path.filename().string();
  struct stat state {};
  return name.size() == kNameLength && name.starts_with(kPrefix) && ::lstat(path.c_str(), &state) == 0 &&
         S_ISDIR(state.st_mode) && state.st_uid == ::geteuid() && (state.st_mode & 0077) == 0;
}

bool is_abandoned(const fs::path& folder) {
  const int file = ::open((folder / kName).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return false;
  struct stat state {};
  const bool is_free =
      ::fstat(file, &state) == 0 && S_ISREG(state.st_mode) && ::flock(file, LOCK_EX | LOCK_NB) == 0;
  ::close(file);
  return is_free;
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder) {
  // It gets its name when it is locked: nobody may find it free before.
  const std::string name = (folder / kName).string();
  const std::string early = name + ".tmp";
  file_ = ::open(early.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file_ < 0) return;
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0 || ::rename(early.c_str(), name.c_str()) != 0)
    ::unlink(early.c_str());
}

FolderLock::~FolderLock() {
  if (file_ >= 0) ::close(file_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

void remove_abandoned(const fs::path& parent) {
  std::error_code error;
  std::size_t entries = 0;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end && ++entries <= kMaxEntries;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    std::error_code ignored;
    if (is_private_folder(path) && is_abandoned(path)) fs::remove_all(path, ignored);
  }
}

}  // namespace trapline
