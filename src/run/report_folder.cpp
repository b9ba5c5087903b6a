#include "run/report_folder.hpp"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "report/folder.hpp"

namespace trapline {
namespace {

namespace fs = std::filesystem;

std::optional<std::pair<unsigned long, long long>> stamp_of(const fs::path& file) {
  struct stat state {};
  if (::lstat(file.c_str(), &state) != 0) return std::nullopt;
  return std::pair(static_cast<unsigned long>(state.st_ino),
                   static_cast<long long>(state.st_mtim.tv_sec) * 1'000'000'000LL + state.st_mtim.tv_nsec);
}

Error unusable(const fs::path& folder, const std::string& why) {
  return {"cannot write reports to '" + folder.string() + "'", why,
          "choose another folder with --report DIR"};
}

// Whose a file is that this process writes there. Asking by writing a block is the only question whose answer
// holds for read-only mounts, quotas and full disks.
Result<uid_t> owner_of_new_file(const fs::path& folder) {
  const auto probe = write_into_folder(folder.string(), folder_file_name("probe"), std::string(4096, ' '));
  if (!probe) return probe.error();
  struct stat state {};
  const bool is_known = ::lstat(probe->c_str(), &state) == 0;
  ::unlink(probe->c_str());
  return is_known ? state.st_uid : ::geteuid();
}

}  // namespace

Result<ReportFolder> ReportFolder::open(const fs::path& folder) {
  std::error_code error;
  const fs::path path = fs::absolute(folder, error);
  if (error) return unusable(folder, error.message());
  fs::create_directories(path, error);
  if (error) return unusable(folder, error.message());
  const auto owner = owner_of_new_file(path);
  if (!owner) return unusable(folder, owner.error().why);

  ReportFolder result(path, false);
  result.owner_ = *owner;
  for (fs::directory_iterator file(path, error), end; !error && file != end; file.increment(error)) {
    if (const auto stamp = stamp_of(file->path())) result.before_[file->path().filename()] = *stamp;
  }
  if (error) return unusable(folder, error.message());
  return result;
}

Result<ReportFolder> ReportFolder::make_private(const fs::path& parent) {
  std::string path = (fs::absolute(parent) / "trapline-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) return unusable(parent, std::strerror(errno));
  return ReportFolder(path, true);
}

Result<ReportFolder> ReportFolder::make_private() {
  const char* temporary = std::getenv("TMPDIR");
  const bool is_set = temporary != nullptr && *temporary != '\0';
  for (const char* parent : {is_set ? temporary : "/tmp", "/tmp", "/var/tmp", "/dev/shm"}) {
    auto folder = make_private(parent);
    if (folder && folder->why_not_writable().empty()) return folder;
  }
  // The program is run all the same, and the report says why it knows nothing.
  auto folder = make_private(is_set ? temporary : "/tmp");
  return folder ? std::move(folder) : make_private("/tmp");
}

std::string ReportFolder::why_not_writable() const {
  const auto owner = owner_of_new_file(path_);
  return owner ? "" : owner.error().why;
}

ReportFolder::~ReportFolder() {
  std::error_code ignored;
  if (private_ && !path_.empty()) fs::remove_all(path_, ignored);
}

ReportFolder::ReportFolder(ReportFolder&& other) noexcept
    : path_(std::move(other.path_)),
      private_(std::exchange(other.private_, false)),
      owner_(other.owner_),
      before_(std::move(other.before_)) {}

bool ReportFolder::is_new(const fs::path& file) const {
  const auto stamp = stamp_of(file);
  if (!stamp) return false;
  const auto found = before_.find(file.filename());
  return found == before_.end() || found->second != *stamp;
}

}  // namespace trapline
