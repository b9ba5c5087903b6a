// A sink that keeps what a reader delivers, and small helpers of the reader's tests.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "log/read/reader.hpp"

namespace trapline {

struct KeptLine {
  std::string text, source;
  std::int64_t number;
  int rank;
  std::int64_t pid;
  std::string host;
  bool shortened;
  int progress;
};

struct Kept : LineSink {
  void line(const Line& line) override {
    lines.push_back({std::string(line.text), std::string(line.source), line.number, line.rank, line.pid,
                     std::string(line.host), line.shortened, line.progress});
  }
  void end_of_source(std::string_view source, const SourceEnd& end) override {
    sources.emplace_back(source);
    ends.push_back(end);
  }
  void quiet() override { ++quiets; }
  std::vector<std::string> texts() const {
    std::vector<std::string> all;
    for (const KeptLine& line : lines) all.push_back(line.text);
    return all;
  }
  std::vector<KeptLine> lines;
  std::vector<std::string> sources;
  std::vector<SourceEnd> ends;
  int quiets = 0;
};

// "what: why: what to do"; empty where nothing was wrong.
inline std::string problem_of(const SourceEnd& end) {
  return end.problem ? end.problem->line() : std::string();
}

// A folder that goes away with the test.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "trapline-reader-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path(const std::string& name = "") const { return name.empty() ? path_ : path_ + "/" + name; }
  std::string write(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

 private:
  std::string path_;
};

// The lines of `text` read as a file.
inline Kept read_text(std::string_view text, ReadOptions options = {}) {
  const Folder folder;
  Kept kept;
  LogReader reader(kept, std::move(options));
  reader.read_path(folder.write("job.log", text));
  return kept;
}

}  // namespace trapline
