#include "diagnose/sample.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace trapline::diagnose {

bool is_not_its_own(const Sample& sample) {
  constexpr std::array kMade{"padding", "collate", "drawn", "replaced", "rounded"};
  return std::ranges::find(kMade, sample.by) != kMade.end();
}

std::string look_at(const Sample& sample) {
  if (sample.by == "inside") return {};  // the data set fails where it makes the sample
  if (is_not_its_own(sample)) return {};
  // Nothing says that a sample is at fault.
  if (sample.by == "hand" || sample.by == "place") return {};
  // loader.dataset[i] holds whatever the data set is called, and whatever lies below it.
  std::string holder = sample.loader.empty() ? std::string() : sample.loader + ".dataset";
  if (holder.empty() && sample.dataset) holder = sample.dataset->name;
  if (sample.dataset_index) {
    const std::int64_t index = *sample.dataset_index;
    if (!holder.empty()) return fmt::format("look at sample {}: print({}[{}])", index, holder, index);
    if (!sample.dataset || sample.dataset->type.empty())
      return fmt::format("look at sample {} of the data set", index);
    std::string set = sample.dataset->type;
    if (sample.dataset->length) set += fmt::format(" of {}", *sample.dataset->length);
    return fmt::format("look at sample {} of the {} that the DataLoader reads", index, set);
  }
  const bool all = !sample.of || *sample.of <= static_cast<std::int64_t>(sample.one_of.size());
  if (sample.one_of.empty() || !all || holder.empty()) return {};
  const std::string list = fmt::format("{}", fmt::join(sample.one_of, ", "));
  return fmt::format("look at samples {}: print([{}[i] for i in [{}]])", list, holder, list);
}

}  // namespace trapline::diagnose
