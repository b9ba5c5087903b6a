#include "catalogue/meanings.hpp"

#include <algorithm>
#include <initializer_list>

namespace trapline {
namespace {

using enum Cause;
using enum Certainty;
using enum WordingKind;
constexpr auto kNo = Device::kNo;
constexpr auto kYes = Device::kYes;
constexpr auto kMaybe = Device::kUnknown;

constexpr MeaningRow row(Meaning meaning, WordingKind kind, Cause cause, Certainty certainty, Device device,
                         std::initializer_list<Cause> also, std::initializer_list<std::string_view> help) {
  MeaningRow made{
      .meaning = meaning, .kind = kind, .cause = cause, .certainty = certainty, .device_assert = device};
  for (const Cause other : also) made.also[made.also_count++] = other;
  std::ranges::copy(help, made.help.begin());
  return made;
}

constexpr MeaningRow kRows[] = {
#define ALSO(...) \
  { __VA_ARGS__ }
#define HELP(...) \
  { __VA_ARGS__ }
#define TRAPLINE_MEANING(name, ...) row(Meaning::name, __VA_ARGS__),
#include "catalogue/meanings.def"
#undef TRAPLINE_MEANING
#undef ALSO
#undef HELP
};

}  // namespace

const MeaningRow* find_meaning(Meaning meaning) {
  const auto* const found = std::ranges::find(kRows, meaning, &MeaningRow::meaning);
  return found == std::end(kRows) ? nullptr : found;
}

}  // namespace trapline
