#include "run/collect.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

namespace trapline {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFiles = 4096;  // a job of that many processes has told enough

}  // namespace

Collected collect(const ReportFolder& folder) {
  Collected out;
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator file(folder.path(), error), end; !error && file != end; file.increment(error)) {
    const std::string name = file->path().filename().string();
    if (is_report_file(name) && folder.is_new(file->path())) {
      files.push_back(file->path());
    }
  }
  if (error)
    out.omissions.push_back("what this run's processes found is lost: the report folder could not be read: " +
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
  std::ranges::stable_sort(out.findings, {}, &CollectedFinding::written);
  return out;
}

}  // namespace trapline
