#include "run/report_folder.hpp"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

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

}  // namespace

Result<ReportFolder> ReportFolder::open(const fs::path& folder) {
  std::error_code error;
  const fs::path path = fs::absolute(folder, error);
  if (error) return unusable(folder, error.message());
  fs::create_directories(path, error);
  if (error) return unusable(folder, error.message());
  // Asking by writing is the only question whose answer holds for read-only mounts and quotas too.
  std::string probe = (path / "probe-XXXXXX.tmp").string();
  const int descriptor = ::mkstemps(probe.data(), 4);
  if (descriptor < 0) return unusable(folder, std::strerror(errno));
  struct stat state {};
  const bool is_known = ::fstat(descriptor, &state) == 0;
  ::close(descriptor);
  ::unlink(probe.c_str());

  ReportFolder result(path, false);
  result.owner_ = is_known ? state.st_uid : ::geteuid();
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
  if (temporary != nullptr && *temporary != '\0') {
    auto folder = make_private(temporary);
    if (folder) return folder;
  }
  return make_private("/tmp");
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
