// An input of a fuzzer as files: one after the other, each behind a line "=== NAME".
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace trapline::fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

// One folder for all inputs of a process.
class Folder {
 public:
  Folder() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base != nullptr ? base : "/tmp") + "/trapline-fuzz-XXXXXX";
    require(::mkdtemp(path_.data()) != nullptr);
  }
  ~Folder() {
    clear();
    ::rmdir(path_.c_str());
  }
  void put(std::string_view name, std::string_view contents) {
    names_.push_back(path_ + "/" + std::string(name));
    std::FILE* file = std::fopen(names_.back().c_str(), "wb");
    require(file != nullptr);
    require(std::fwrite(contents.data(), 1, contents.size(), file) == contents.size());
    require(std::fclose(file) == 0);
  }
  void clear() {
    for (const std::string& name : names_) ::unlink(name.c_str());
    names_.clear();
  }
  const std::string& path() const { return path_; }
  const std::vector<std::string>& files() const { return names_; }

 private:
  std::string path_;
  std::vector<std::string> names_;
};

// The files whose names are accepted.
template <class Accept>
void unpack(std::string_view input, Folder& folder, Accept accept) {
  constexpr std::string_view kMark = "=== ";
  while (input.starts_with(kMark)) {
    const std::size_t end = std::min(input.find('\n'), input.size());
    const std::string_view name = input.substr(kMark.size(), end - std::min(end, kMark.size()));
    input.remove_prefix(std::min(end + 1, input.size()));
    // The next mark stands at the start, or behind a line's end that is not part of the file.
    std::size_t next = input.starts_with(kMark) ? 0 : input.find("\n=== ");
    const std::string_view contents = input.substr(0, next);
    if (next != 0) next = next == input.npos ? input.size() : next + 1;
    if (accept(name)) folder.put(name, contents);
    input.remove_prefix(next);
  }
}

}  // namespace trapline::fuzz
