#include "catalogue/statuses.hpp"

#include <algorithm>
#include <deque>

#include "catalogue/wordings.hpp"

namespace trapline {
namespace {

using enum Library;
using enum Meaning;
constexpr auto kAlone = TextStands::kAlone;

constexpr StatusRow kRows[] = {
#define TRAPLINE_STATUS(...) StatusRow{__VA_ARGS__},
#include "catalogue/statuses_cuda.def"
#include "catalogue/statuses_libraries.def"
#include "catalogue/statuses_other.def"
#undef TRAPLINE_STATUS
};

}  // namespace

std::span<const StatusRow> status_rows() { return kRows; }

const StatusRow* find_status(Library library, std::int64_t number) {
  const auto* const found = std::ranges::find_if(kRows, [&](const StatusRow& row) {
    return row.library == library && row.number == number && number != kNoNumber;
  });
  return found == std::end(kRows) ? nullptr : found;
}

std::vector<WordingRow> status_wordings() {
  static std::deque<std::string> samples;  // rows point at them
  std::vector<WordingRow> all;
  for (const StatusRow& row : kRows) {
    const auto add = [&](std::string_view text) {
      samples.push_back("error: " + std::string(text));
      all.push_back(wording_of(text, row.meaning, text, samples.back()));
    };
    if (!row.name.empty()) add(row.name);
    if (!row.text.empty() && row.stands == kAlone) add(row.text);
  }
  return all;
}

}  // namespace trapline
