#include "log/reason/doubts.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "catalogue/patterns.hpp"

namespace trapline {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

// Whether a status was known by its number alone: another enumeration, or the program's own, may have it,
// too.
bool is_bare_number(const Event& event) {
  const WordingRow& row = *event.wording;
  if (!row.phrase.empty() || row.id != row.sample || contains(event.text, row.id)) return false;
  const auto rows = status_rows();
  // A status that has no name goes by its text (src/catalogue/patterns.cpp).
  const auto status = std::ranges::find_if(
      rows, [&](const StatusRow& s) { return (s.name.empty() ? s.text : s.name) == row.id; });
  if (status == rows.end()) return false;
  std::string low = event.text;
  for (char& c : low) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c;
  std::string_view words = status->text;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    if (end - at > 3 && contains(low, words.substr(at, end - at))) return false;  // some of its text is there
    at = end;
  }
  return true;
}

// Whether an illegal access is told by the words of a program of its own ("Illegal address in cuMemcpyDtoH"),
// which stand for more than CUDA's sentence does.
bool is_short_text(const Event& event) {
  static const RE2* const bare = new RE2(R"re((?i)(?:^|[\s:(])illegal[ _]address\b)re", RE2::Latin1);
  return event.wording->cause == Cause::kIllegalMemoryAccess && RE2::PartialMatch(event.text, *bare) &&
         !contains(event.text, "an illegal");
}

// Whether Metal refused next to nothing while next to nothing was held: not for want of memory.
bool is_tiny_refusal(const Event& event) {
  static const RE2* const tiny = new RE2(
      R"re(MPS allocated: [\d.]+ (?:bytes|[KM]B), .*Tried to allocate [\d.]+ (?:bytes|KB)\b)re", RE2::Latin1);
  return RE2::PartialMatch(event.text, *tiny);
}

bool asserts_of_host(std::string_view code) {
  static const RE2* const host = new RE2(
      R"re(^assert\b.*(?:\.(?:shape|ndim|dtype|device|is_cuda)\b|\.(?:size|dim)\(|\blen\(|\bisinstance\(|\bis (?:not )?None\b))re",
      RE2::Latin1);
  // Any other call, and a comparison of values, may wait for the device.
  static const RE2* const other = new RE2(
      R"re(\.(?:item|any|all|max|min|sum|cpu|tolist|numpy)\(|\b(?:all|any|max|min)\()re", RE2::Latin1);
  const re2::StringPiece text(code.data(), code.size());
  return RE2::PartialMatch(text, *host) && !RE2::PartialMatch(text, *other);
}

}  // namespace trapline
