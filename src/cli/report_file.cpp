#include "cli/report_file.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "cli/output.hpp"

namespace trapline::cli {
namespace {

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// The standard stream that is this very file, as with -o /dev/stdout and `> FILE`; -1: none. The program
// writes there, too.
int stream_of(const struct stat& state) {
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat other {};
    if (::fstat(stream, &other) == 0 && is_same(state, other)) return stream;
  }
  return -1;
}

}  // namespace

Result<std::unique_ptr<ReportFile>> ReportFile::open(const std::string& path) {
  const auto error = [&] {
    return Error{"cannot write '" + path + "'", std::strerror(errno), "choose another file with -o"};
  };
  int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  const bool is_made = descriptor >= 0;
  if (!is_made) {
    // The mode is for a link to a file that does not exist yet.
    descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0) return error();
    struct stat state {};
    const int stream = ::fstat(descriptor, &state) == 0 ? stream_of(state) : -1;
    if (stream >= 0) {  // with the stream's own position
      ::close(descriptor);
      descriptor = ::fcntl(stream, F_DUPFD_CLOEXEC, 0);
      if (descriptor < 0) return error();
    }
  }
  return std::unique_ptr<ReportFile>(new ReportFile(path, descriptor, is_made));
}

ReportFile::ReportFile(std::string path, int descriptor, bool is_made)
    : path_(std::move(path)), descriptor_(descriptor), is_made_(is_made) {}

ReportFile::~ReportFile() {
  struct stat ours {
  }, there{};
  if (is_made_ && ::fstat(descriptor_, &ours) == 0 && ::lstat(path_.c_str(), &there) == 0 &&
      is_same(ours, there) && there.st_size == 0)
    ::unlink(path_.c_str());
  ::close(descriptor_);
}

std::optional<Error> ReportFile::failed(int problem) const {
  return Error{"cannot write '" + path_ + "'", std::strerror(problem), "choose another file with -o"};
}

bool ReportFile::may_be_replaced(const struct stat& state) const {
  return !is_appended_ && S_ISREG(state.st_mode) && state.st_nlink == 1 && stream_of(state) < 0;
}

// nullopt: the folder takes no new file. Else 0 or errno.
std::optional<int> ReportFile::replace(std::string_view text, const struct stat& state) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path_, error);  // a link stays a link
  struct stat there {};
  if (error || ::stat(target.c_str(), &there) != 0 || !is_same(state, there)) return std::nullopt;
  std::string beside = (target.parent_path() / ".trapline-XXXXXX").string();
  const int descriptor = ::mkostemp(beside.data(), O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  int problem = 0;
  const bool keeps_rights = (state.st_uid == ::geteuid() && state.st_gid == ::getegid()) ||
                            ::fchown(descriptor, state.st_uid, state.st_gid) == 0;
  if (!keeps_rights || ::fchmod(descriptor, state.st_mode & 07777U) != 0) {
    ::close(descriptor);
    ::unlink(beside.c_str());
    return std::nullopt;
  }
  if (!write_all(descriptor, text)) problem = errno;
  // A file system on the network says only now that it is full.
  if (::close(descriptor) != 0 && problem == 0) problem = errno;
  if (problem == 0 && std::rename(beside.c_str(), target.c_str()) != 0) problem = errno;
  if (problem != 0) ::unlink(beside.c_str());
  return problem;
}

void ReportFile::begin_in_place() {
  struct stat state {};
  if (::fstat(descriptor_, &state) == 0 && S_ISREG(state.st_mode) && stream_of(state) < 0 &&
      ::ftruncate(descriptor_, 0) == 0)
    ::lseek(descriptor_, 0, SEEK_SET);
}

std::optional<Error> ReportFile::write(std::string_view text) {
  struct stat state {};
  if (::fstat(descriptor_, &state) == 0 && may_be_replaced(state)) {
    if (const auto problem = replace(text, state)) {
      if (*problem != 0) return failed(*problem);
      is_made_ = false;
      return std::nullopt;
    }
  }
  if (!is_appended_) begin_in_place();
  is_made_ = false;
  if (!write_all(descriptor_, text)) return failed(errno);
  return std::nullopt;
}

void ReportFile::append(std::string_view text) {
  if (text.empty()) return;
  if (!is_appended_) begin_in_place();
  is_appended_ = true;
  is_made_ = false;
  write_all(descriptor_, text);
}

}  // namespace trapline::cli
