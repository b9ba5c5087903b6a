#include "run/collect.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/folder.hpp"

namespace trapline {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFiles = 4096;  // a job of that many processes has told enough

// Of those with the same name the last: a process writes its end anew when it knows more.
void keep_last(std::vector<HandedFile>& files) {
  std::map<std::string, HandedFile> last;
  for (HandedFile& file : files) {
    if (is_report_file(file.name)) last[file.name] = std::move(file);
  }
  files.clear();
  for (auto& [name, file] : last) files.push_back(std::move(file));
}

// As the process would have. False: it cannot be written by this process either.
bool put(const ReportFolder& folder, const HandedFile& file) {
  const auto path = write_into_folder(folder.path().string(), file.name, file.text);
  if (!path) return false;
  const timespec written{static_cast<time_t>(file.written / 1'000'000'000),
                         static_cast<long>(file.written % 1'000'000'000)};
  ::utimensat(AT_FDCWD, path->c_str(), std::array{written, written}.data(), AT_SYMLINK_NOFOLLOW);
  return true;
}

}  // namespace

Collected collect(const ReportFolder& folder, Handed handed) {
  Collected out;
  if (handed.is_full)
    out.omissions.push_back(
        "other processes of this machine have filled the socket by which findings are handed over that "
        "cannot "
        "be written: whether there were any is not known");
  keep_last(handed.files);
  std::erase_if(handed.files, [&](const HandedFile& file) { return put(folder, file); });
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator file(folder.path(), error), end; !error && file != end; file.increment(error)) {
    const std::string name = file->path().filename().string();
    if (is_report_file(name) && folder.is_new(file->path())) {
      files.push_back(file->path());
    }
  }
  if (error)
    out.omissions.push_back(
        "the report folder could not be read, and what this run's processes wrote there is lost: " +
        error.message());
  std::ranges::sort(files);
  if (files.size() > kMaxFiles) {
    out.omissions.push_back("of " + std::to_string(files.size()) + " report files the first " +
                            std::to_string(kMaxFiles) + " were read");
    files.resize(kMaxFiles);
  }
  // A private folder is closed to others; in a shared one anybody may leave a finding.
  const auto owner = folder.is_private() ? std::nullopt : std::optional(folder.owner());
  for (const fs::path& file : files) read_report_file(file, out, owner);
  for (const HandedFile& file : handed.files) read_handed_file(file, out);
  std::ranges::stable_sort(out.findings, {}, &CollectedFinding::written);
  return out;
}

}  // namespace trapline
