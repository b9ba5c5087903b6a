#include "doctor/cache.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "run/environment.hpp"

namespace trapline::doctor {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = ".build.lock";
constexpr const char* kOwner = ".build.owner";
constexpr std::string_view kWork = ".building-";  // a folder that a build works in

// A file that Trapline makes in such a folder: trapline_guard-torch2.13.0-...so, its log, its marks.
bool is_ours(std::string_view name) {
  if (name == "background.log" || name == kOwner || name.starts_with(kWork)) return true;
  if (!name.starts_with("trapline_")) return false;
  for (const std::string_view mark : {".begun", ".activating"}) {
    if (name.ends_with(mark)) name.remove_suffix(mark.size());
  }
  return name.ends_with(".so") || name.ends_with(".log");
}

fs::path home(std::span<const std::string> environment) {
  if (const auto named = find_variable(environment, "HOME"); named && !named->empty()) return *named;
  const passwd* user = ::getpwuid(::getuid());
  return user != nullptr && user->pw_dir != nullptr ? user->pw_dir : "/";
}

// As Python's tempfile chooses it.
fs::path temporary_folder(std::span<const std::string> environment) {
  std::vector<std::string> candidates;
  for (const char* name : {"TMPDIR", "TEMP", "TMP"}) {
    if (auto value = find_variable(environment, name); value && !value->empty())
      candidates.push_back(std::move(*value));
  }
  candidates.insert(candidates.end(), {"/tmp", "/var/tmp", "/usr/tmp"});
  for (const std::string& folder : candidates) {
    std::error_code ignored;
    if (fs::is_directory(folder, ignored) && ::access(folder.c_str(), W_OK | X_OK) == 0) return folder;
  }
  return "/tmp";
}

class Folder {
 public:
  explicit Folder(const fs::path& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {}
  ~Folder() {
    if (lock_ >= 0) ::close(lock_);
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

  // Why it is not touched; empty: it is this user's.
  std::string refused() const {
    struct stat state {};
    if (::fstat(descriptor_, &state) != 0) return std::strerror(errno);
    if (state.st_uid != ::geteuid()) return "it belongs to another user";
    // In a folder that others may write to nothing is certainly ours.
    return (state.st_mode & 0022U) != 0 ? "others may write to it" : "";
  }

  // Keeps builders out as long as this object lives; false: one is at work.
  bool claim() {
    lock_ = ::openat(descriptor_, kLock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (lock_ < 0) return true;  // nobody has ever built here
    return ::flock(lock_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    const int copy = ::openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(copy < 0 ? nullptr : ::fdopendir(copy), ::closedir);
    while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
      const std::string name = entry->d_name;
      if (name != "." && name != ".." && name != kLock) all.push_back(name);
    }
    return all;
  }

 private:
  int descriptor_;
  int lock_ = -1;
};

CacheFolder read_folder(const fs::path& path) {
  CacheFolder out;
  out.path = path;
  struct stat state {};
  if (::lstat(path.c_str(), &state) != 0) return out;
  out.is_there = true;
  Folder folder(path);
  if (!folder.is_open()) {
    out.refused = S_ISLNK(state.st_mode) ? "it is a link" : std::strerror(errno);
    return out;
  }
  out.refused = folder.refused();
  if (!out.refused.empty()) return out;
  out.is_busy = !folder.claim();
  for (const std::string& name : folder.names()) {
    const bool known = ::fstatat(folder.descriptor(), name.c_str(), &state, AT_SYMLINK_NOFOLLOW) == 0;
    const bool is_work = known && S_ISDIR(state.st_mode) && name.starts_with(kWork);
    if (!known || !is_ours(name) || !(S_ISREG(state.st_mode) || is_work)) {
      ++out.foreign;
      continue;
    }
    out.entries.push_back({path / name, static_cast<std::uint64_t>(state.st_size), state.st_mtime});
  }
  std::ranges::sort(out.entries, {}, &CacheEntry::changed);
  return out;
}

}  // namespace

std::uint64_t CacheFolder::bytes() const {
  std::uint64_t sum = 0;
  for (const CacheEntry& entry : entries) sum += entry.bytes;
  return sum;
}

std::vector<CacheFolder> cache_folders(std::span<const std::string> environment) {
  fs::path base = find_variable(environment, "XDG_CACHE_HOME").value_or("");
  if (!base.is_absolute()) base = home(environment) / ".cache";
  const std::string private_name = "trapline-adapters-" + std::to_string(::getuid());
  return {read_folder(base / "trapline" / "adapters"),
          read_folder(temporary_folder(environment) / private_name)};
}

Cleaned clean(const CacheFolder& wanted) {
  Cleaned done;
  if (!wanted.is_there) return done;
  Folder folder(wanted.path);
  const std::string why = !folder.is_open() ? "it is not a folder" : folder.refused();
  if (!why.empty()) {
    done.problems.push_back(wanted.path.string() + " is left as it is: " + why);
    return done;
  }
  if (!folder.claim()) {
    done.problems.push_back(wanted.path.string() + " is left as it is: a guard is being built in it");
    return done;
  }
  for (const CacheEntry& entry : wanted.entries) {
    const std::string name = entry.path.filename().string();
    struct stat state {};
    if (::fstatat(folder.descriptor(), name.c_str(), &state, AT_SYMLINK_NOFOLLOW) != 0) continue;
    std::error_code error;
    if (S_ISDIR(state.st_mode)) {
      fs::remove_all(entry.path, error);  // links in it are removed, not followed
    } else if (!S_ISREG(state.st_mode) || ::unlinkat(folder.descriptor(), name.c_str(), 0) != 0) {
      error = std::error_code(errno, std::generic_category());
    }
    if (error) {
      done.problems.push_back(entry.path.string() + ": " + error.message());
      continue;
    }
    ++done.files;
    done.bytes += entry.bytes;
  }
  if (folder.names().empty()) {
    ::unlinkat(folder.descriptor(), kLock, 0);
    ::rmdir(wanted.path.c_str());
    if (wanted.path.filename() == "adapters") ::rmdir(wanted.path.parent_path().c_str());
  }
  return done;
}

}  // namespace trapline::doctor
