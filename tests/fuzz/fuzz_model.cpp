// Any bytes as the files of a model folder: config, tokenizer, index and weights. Whatever they hold, `check
// model` ends with a report that can be written, and its errors are one line each.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "check/model.hpp"
#include "folder.hpp"
#include "report/json.hpp"

namespace {

using namespace trapline;
using fuzz::require;

constexpr auto kNames = std::to_array<std::string_view>(
    {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
     "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt", "tokenizer.model",
     "spiece.model", "sentencepiece.bpe.model", "model.safetensors", "model.safetensors.index.json",
     "pytorch_model.bin.index.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"});

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::Folder folder;
  static check::Workers alone(1);
  fuzz::unpack({reinterpret_cast<const char*>(data), size}, folder,
               [](std::string_view name) { return std::ranges::find(kNames, name) != kNames.end(); });
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
