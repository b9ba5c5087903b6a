#include "catalogue/statuses.hpp"

#include <algorithm>

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
  std::vector<WordingRow> all;
  for (const StatusRow& row : kRows) {
    if (!row.name.empty()) all.push_back(wording_of(row.name, row.meaning, row.name, row.name));
    if (!row.text.empty() && row.stands == kAlone)
      all.push_back(wording_of(row.text, row.meaning, row.text, row.text));
  }
  return all;
}

}  // namespace trapline
