// One of several data sets is the odd one out: what is wrong is there, not in the size of the model.
#include <fmt/format.h>

#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {
namespace {

// Counted from 1 there, from 0 in the others.
bool is_shifted(const PartFact& part, std::int64_t places) {
  const auto end = static_cast<double>(places);
  return part.min == 1 && part.max == end && part.others_min == 0 && part.others_max < end;
}

}  // namespace

bool ViolationWriter::write_part() {
  if (!facts.part) return false;
  const PartFact& part = *facts.part;
  const bool joined = part.position.has_value();
  const bool target = facts.scan.is_float;  // of a loss that takes [0, 1]
  const std::string things = target ? "targets" : nouns();
  constexpr std::int64_t kFew = 8;
  if (target && kFew * part.bad <= part.count) return false;  // records of it, and not all that it makes
  const std::string who = joined ? fmt::format("`datasets[{}]` of the ConcatDataset", *part.position)
                                 : std::string("this data set");
  const char* others = joined ? "the others" : "the program's other data sets";
  finding_.summary +=
      fmt::format("; only {} has such {} ({} of its {}, from {} to {}; in {} from {} to {})", who, things,
                  part.bad, part.count, part.min, part.max, others, part.others_min, part.others_max);
  const std::string there = joined ? fmt::format("`datasets[{}]`", *part.position) : who;
  if (target) {
    constexpr double kPercent = 100;
    const bool percent = part.min >= 0 && part.max > 2 && part.max <= kPercent;
    fix(fmt::format("compare how {} makes its targets with the others: all have to lie in [0, 1]{}", there,
                    percent ? "; if its are percentages, divide them by 100 there, and only there" : ""));
    return true;
  }
  if (is_shifted(part, hi())) {
    fix(fmt::format("if {} counts its {} from 1, subtract 1 there, and only there", there, nouns()));
    return true;
  }
  // Rarer than half of what an average class has: one that the others happen to lack, not another list.
  if (noun() == "label" && part.min == part.others_min && 2 * part.bad * hi() < part.count) return false;
  fix(
      fmt::format("see whether {} makes its {} as the others do, by the same {}, or the size was taken of "
                  "the others alone",
                  there, nouns(), noun() == "label" ? "list of classes" : "numbering"));
  return true;
}

bool ViolationWriter::write_trained() {
  constexpr std::int64_t kSome = 4;  // fewer may be wrong themselves
  if (!facts.trained || facts.counted || kSome * facts.scan.bad < facts.scan.total) return false;
  finding_.summary +=
      fmt::format("; in training they went up to {} (the last {})", facts.trained->max, facts.trained->count);
  fix(fmt::format(
      "compare how {} is made with the labels of the training: both need the same list of classes, and {} as "
      "many outputs as it is long: {}",
      users(), layer().empty() ? "the model" : layer(), outside()));
  return true;
}

}  // namespace trapline::diagnose
