// The file of -o: a report that lies there already is replaced by a whole new one, or stays.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace trapline::cli {

class ReportFile {
 public:
  // Made when it does not exist, so that a mistyped path is known before hours of training. What it holds
  // stays until write() or append().
  static Result<std::unique_ptr<ReportFile>> open(const std::string& path);
  // A file that was made and never written is removed.
  ~ReportFile();
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;

  int descriptor() const { return descriptor_; }
  // The whole report: beside the file, then renamed, with the file's rights. In place where that cannot be:
  // pipes, devices, files with several names, folders that take no new file, and behind append(). Why it
  // could not be written; the old report is there then, unless it was written in place.
  std::optional<Error> write(std::string_view text);
  // A part of a report that grows, at once; the first one empties the file.
  void append(std::string_view text);

 private:
  ReportFile(std::string path, int descriptor, bool is_made);
  std::optional<Error> failed(int problem) const;
  bool may_be_replaced(const struct stat& state) const;
  std::optional<int> replace(std::string_view text, const struct stat& state);
  void begin_in_place();

  std::string path_;
  int descriptor_;
  bool is_made_;  // by open(), and nothing was written so far
  bool is_appended_ = false;
};

}  // namespace trapline::cli
