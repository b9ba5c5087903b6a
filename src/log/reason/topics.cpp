#include "log/reason/topics.hpp"

#include <algorithm>
#include <cctype>
#include <string>

namespace trapline {
namespace {

constexpr unsigned kCode = 1, kFunction = 2, kFile = 4;
enum class Match : std::uint8_t { kPart, kWord };

struct TopicRow {  // NOLINT(clang-analyzer-optin.performance.Padding): in the order of a row
  Topic topic;
  unsigned places;
  Match match;
  std::string_view text;
};

using enum Topic;
using enum Match;
constexpr TopicRow kRows[] = {
#define TRAPLINE_TOPIC(...) TopicRow{__VA_ARGS__},
#include "log/reason/topics.def"
#undef TRAPLINE_TOPIC
};

constexpr std::size_t kDeepest = 3;  // frames that say what is looked up

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// `text` in lower case.
bool matches(std::string_view text, unsigned place, Topic topic) {
  return std::ranges::any_of(kRows, [&](const TopicRow& row) {
    return row.topic == topic && (row.places & place) != 0 &&
           (row.match == kWord ? has_word(text, row.text) : contains(text, row.text));
  });
}

bool is_torch_frame(const LogFrame& frame) {
  return contains(frame.frame.file, "/torch/") || contains(frame.frame.file, "\\torch\\");
}

bool in_deepest(const Traceback& traceback, Topic topic) {
  std::size_t looked = 0;
  for (auto at = traceback.frames.rbegin(); at != traceback.frames.rend() && looked < kDeepest; ++at) {
    if (is_torch_frame(*at)) continue;
    ++looked;
    // A sum of several embeddings names them all and tells none.
    const std::string_view code = at->frame.code;
    const bool is_sum = topic == kPositions && contains(code, " + ") && !contains(code, "[");
    if (!is_sum && speaks_of(*at, topic)) return true;
  }
  return false;
}

}  // namespace

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool has_word(std::string_view text, std::string_view word) {
  const auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !letter(text[at - 1])) && (end >= text.size() || !letter(text[end]))) return true;
  }
  return false;
}

bool speaks_of(std::string_view code, Topic topic) { return matches(lower(code), kCode, topic); }

bool speaks_of(const LogFrame& frame, Topic topic) {
  return matches(lower(frame.frame.code), kCode, topic) ||
         matches(lower(frame.frame.function), kFunction, topic) ||
         matches(lower(frame.frame.file), kFile, topic);
}

bool speaks_of(const Traceback& traceback, Topic topic) {
  const bool is_deep = topic == kPositions || topic == kEmbeddings;
  if (is_deep && in_deepest(traceback, topic)) return true;
  return std::ranges::any_of(traceback.frames, [&](const LogFrame& frame) {
    if (is_deep && topic == kEmbeddings)
      return frame.frame.function == "embedding" || contains(frame.frame.code, "embedding(") ||
             matches(lower(frame.frame.file), kFile, topic);
    return !is_deep && speaks_of(frame, topic);
  });
}

}  // namespace trapline
