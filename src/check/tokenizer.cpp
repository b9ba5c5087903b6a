#include "check/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <string_view>

#include "check/bounded_json.hpp"
#include "check/sentencepiece.hpp"
#include "check/token_ranks.hpp"
#include "inputs/mapped_file.hpp"
#include "jsonio/access.hpp"

namespace trapline::check {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The special tokens that special_tokens_map.json and tokenizer_config.json give by their text.
constexpr std::array kSpecial{"bos_token", "eos_token", "unk_token", "sep_token",
                              "pad_token", "cls_token", "mask_token"};
constexpr std::int64_t kNoLimit = 1'000'000'000;  // transformers writes 1e30 for "no limit"

constexpr std::int64_t kMaxId = std::numeric_limits<std::int64_t>::max() - 1;  // a size is one more

std::string id_of(const std::string& token) { return fmt::format("the id of '{}'", token); }

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

class TokenizerFiles {
 public:
  TokenizerFiles(const std::string& folder, std::vector<Error>& problems)
      : folder_(folder), problems_(problems) {}

  Tokenizer read() {
    if (!read_whole() && !read_map("vocab.json") && !read_lines() && !read_tekken()) read_pieces();
    if (last_) out_.ids.insert(out_.ids.begin(), *last_);
    if (const auto added = open("added_tokens.json")) {
      for (const auto& [token, id] : added->items()) add(token, id, "added_tokens.json");
    }
    read_settings();
    return std::move(out_);
  }

 private:
  std::string path(std::string_view name) const { return (fs::path(folder_) / name).string(); }

  std::optional<json> open(const char* name, std::string_view leave_out = {}) {
    if (!exists(path(name))) return std::nullopt;
    Result<json> read = read_json_object(path(name), leave_out);
    if (read) return std::move(read).value();
    problems_.push_back(read.error());
    return std::nullopt;
  }

  void see(const std::string& token, std::int64_t id, const std::string& file) {
    id = std::min(id, kMaxId);
    out_.vocabulary.emplace(token, id);
    if (id >= out_.size) {
      out_.size = id + 1;
      last_ = NamedId{file, id_of(token), id};
    }
  }

  void add(const std::string& token, const json& id, const char* file) {
    if (!id.is_number_integer()) return;
    add(token, saturated(id), file);
  }

  void add(const std::string& token, std::int64_t number, const char* file) {
    number = std::min(number, kMaxId);
    out_.vocabulary.emplace(token, number);
    out_.size = std::max(out_.size, number + 1);
    const bool known = std::ranges::any_of(out_.ids, [&](const NamedId& one) { return one.id == number; });
    if (!known) out_.ids.push_back({file, id_of(token), number});
  }

  bool read_whole() {
    const auto file = open("tokenizer.json", "merges");
    if (!file) return false;
    out_.file = "tokenizer.json";
    const auto model = file->find("model");
    if (model != file->end() && model->is_object()) read_vocabulary(*model);
    const auto added = file->find("added_tokens");
    if (added != file->end() && added->is_array()) {
      for (const json& token : *added) {
        const auto id = jsonio::integer(token, "id");
        if (id) add(jsonio::text(token, "content"), *id, "tokenizer.json");
      }
    }
    return true;
  }

  void read_vocabulary(const json& model) {
    const auto vocabulary = model.find("vocab");
    if (vocabulary == model.end()) return;
    if (vocabulary->is_object()) {
      for (const auto& [token, id] : vocabulary->items()) {
        if (id.is_number_integer()) see(token, saturated(id), out_.file);
      }
    } else if (vocabulary->is_array()) {  // Unigram: pairs of token and score, in the order of the ids
      std::int64_t id = 0;
      for (const json& pair : *vocabulary) {
        const bool named = pair.is_array() && !pair.empty() && pair[0].is_string();
        see(named ? pair[0].get<std::string>() : std::string(), id++, out_.file);
      }
    }
  }

  bool read_map(const char* name) {
    const auto file = open(name);
    if (!file) return false;
    out_.file = name;
    for (const auto& [token, id] : file->items()) {
      if (id.is_number_integer()) see(token, saturated(id), name);
    }
    return true;
  }

  bool read_lines() {
    if (!exists(path("vocab.txt"))) return false;
    const Result<inputs::MappedFile> file = inputs::MappedFile::open(path("vocab.txt"));
    if (!file) {
      problems_.push_back(file.error());
      return false;
    }
    out_.file = "vocab.txt";
    std::string_view rest(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
    for (std::int64_t id = 0; !rest.empty(); ++id) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      std::string_view token = rest.substr(0, end);
      if (token.ends_with('\r')) token.remove_suffix(1);
      see(std::string(token), id, out_.file);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return true;
  }

  bool read_tekken() {
    const auto file = open("tekken.json");
    if (!file) return false;
    const auto size = tekken_size(*file);
    if (!size) {
      problems_.push_back({"cannot read " + path("tekken.json"),
                           "it has no vocab and config as Mistral writes them",
                           "save or download the file again"});
      return false;
    }
    take_count("tekken.json", *size, "token");
    return true;
  }

  // What is known of such a file is how many ids it gives.
  void take_count(const std::string& name, std::int64_t size, const char* unit) {
    out_.file = name;
    out_.size = size;
    last_ = NamedId{name, fmt::format("the id of its last {}", unit), size - 1};
  }

  bool read_pieces() {
    std::vector<std::string> names{"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"};
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".tiktoken") || name == "tiktoken.model") names.push_back(name);
    }
    std::sort(names.begin() + 3, names.end());
    for (const std::string& name : names) {
      if (!exists(path(name))) continue;
      const Result<inputs::MappedFile> file = inputs::MappedFile::open(path(name));
      if (!file) {
        problems_.push_back(file.error());
        return false;
      }
      if (const auto ranks = count_ranks(file->bytes())) {
        take_count(name, *ranks, "token");
        return true;
      }
      if (const auto pieces = count_pieces(file->bytes())) {
        take_count(name, *pieces, "piece");
        return true;
      }
      problems_.push_back({"cannot read " + path(name),
                           "it has neither the form of sentencepiece nor that of tiktoken, or ends too early",
                           "save or download the file again; its ids were not compared with the table"});
      return false;
    }
    return false;
  }

  void read_settings() {
    const auto settings = open("tokenizer_config.json");
    if (settings) {
      const auto added = settings->find("added_tokens_decoder");
      if (added != settings->end() && added->is_object()) {
        for (const auto& [id, token] : added->items()) {
          std::int64_t number = 0;
          const auto [stop, error] = std::from_chars(id.data(), id.data() + id.size(), number);
          if (error == std::errc{} && stop == id.data() + id.size()) {
            add(jsonio::text(token, "content"), number, "tokenizer_config.json");
          }
        }
      }
      const auto longest = jsonio::integer(*settings, "model_max_length");
      if (longest && *longest > 0 && *longest < kNoLimit) out_.longest = longest;
      read_special(*settings, "tokenizer_config.json");
    }
    if (const auto special = open("special_tokens_map.json"))
      read_special(*special, "special_tokens_map.json");
  }

  // A special token that no vocabulary has gets a new id behind all others.
  void read_special(const json& object, const char* file) {
    if (out_.vocabulary.empty()) return;
    for (const char* role : kSpecial) {
      const auto found = object.find(role);
      if (found == object.end()) continue;
      const std::string token =
          found->is_string() ? found->get<std::string>() : jsonio::text(*found, "content");
      if (token.empty() || out_.vocabulary.contains(token)) continue;
      const auto next = static_cast<std::int64_t>(out_.size);
      out_.absent.push_back(
          {file, fmt::format("{} '{}', which no vocabulary holds, gets a new id that", role, token), next});
      out_.vocabulary.emplace(token, next);
      out_.size = std::min(next, kMaxId) + 1;
    }
  }

  const std::string& folder_;
  std::vector<Error>& problems_;
  Tokenizer out_;
  std::optional<NamedId> last_;
};

}  // namespace

Tokenizer read_tokenizer(const std::string& folder, std::vector<Error>& problems) {
  return TokenizerFiles(folder, problems).read();
}

}  // namespace trapline::check
