// The folder into which the guarded processes write their findings.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "core/result.hpp"

namespace trapline {

class ReportFolder {
 public:
  // DIR of --report: made when it does not exist. It may hold findings of earlier runs, or receive those of
  // the same job's other machines: files that lie there now are remembered and not taken for this run's.
  static Result<ReportFolder> open(const std::filesystem::path& folder);
  // A private temporary folder (mode 0700) that is removed with this object.
  static Result<ReportFolder> make_private(const std::filesystem::path& parent);
  // The same in TMPDIR, or where that is not set, full or cannot be used, in /tmp, /var/tmp or /dev/shm.
  static Result<ReportFolder> make_private();

  ~ReportFolder();
  ReportFolder(ReportFolder&& other) noexcept;
  ReportFolder& operator=(ReportFolder&&) = delete;
  ReportFolder(const ReportFolder&) = delete;
  ReportFolder& operator=(const ReportFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }  // absolute
  bool exists() const { return std::filesystem::is_directory(path_); }
  bool is_private() const { return private_; }
  // Why no report can be written into it now ("No space left on device"); empty: it can.
  std::string why_not_writable() const;
  // True when the file was written after this object was made.
  bool is_new(const std::filesystem::path& file) const;
  // The user to whom files belong that this process makes there; on some file systems nobody's own number.
  uid_t owner() const { return owner_; }

 private:
  using Stamp = std::pair<unsigned long, long long>;  // inode and time of last change
  ReportFolder(std::filesystem::path path, bool is_private) : path_(std::move(path)), private_(is_private) {}

  std::filesystem::path path_;
  bool private_ = false;
  uid_t owner_ = 0;
  std::map<std::string, Stamp> before_;
};

}  // namespace trapline
