// Any bytes as the files of a model folder: config, tokenizer, index and weights. An input is the files one
// after the other, each behind a line "=== NAME". Whatever they hold, `check model` ends with a report that
// can be written, and its errors are one line each.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "check/model.hpp"
#include "report/json.hpp"

namespace {

using namespace trapline;

constexpr std::string_view kMark = "=== ";
constexpr auto kNames = std::to_array<std::string_view>(
    {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
     "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt", "tokenizer.model",
     "spiece.model", "sentencepiece.bpe.model", "model.safetensors", "model.safetensors.index.json",
     "pytorch_model.bin.index.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"});

void require(bool holds) {
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

 private:
  std::string path_;
  std::vector<std::string> names_;
};

void unpack(std::string_view input, Folder& folder) {
  while (input.starts_with(kMark)) {
    const std::size_t end = std::min(input.find('\n'), input.size());
    const std::string_view name = input.substr(kMark.size(), end - std::min(end, kMark.size()));
    input.remove_prefix(std::min(end + 1, input.size()));
    // The next mark stands at the start, or behind a line's end that is not part of the file.
    std::size_t next = input.starts_with(kMark) ? 0 : input.find("\n=== ");
    const std::string_view contents = input.substr(0, next);
    if (next != 0) next = next == input.npos ? input.size() : next + 1;
    if (std::ranges::find(kNames, name) != kNames.end()) folder.put(name, contents);
    input.remove_prefix(next);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Folder folder;
  static check::Workers alone(1);
  unpack({reinterpret_cast<const char*>(data), size}, folder);
  const std::atomic<bool> stop = false;
  check::Progress progress;
  std::vector<Error> problems;
  const Report report = check::check_model(folder.path(), {alone, stop, progress}, problems);
  for (const Error& problem : problems) {
    require(!problem.what.empty() && problem.line().find('\n') == std::string::npos);
  }
  for (const Finding& finding : report.findings) {
    require(!finding.summary.empty() && finding.summary.find('\n') == std::string::npos);
    require(!to_json(finding).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).empty());
  }
  folder.clear();
  return 0;
}
