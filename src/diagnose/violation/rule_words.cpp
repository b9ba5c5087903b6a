#include "diagnose/violation/rule_words.hpp"

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>

namespace trapline::diagnose {
namespace {

constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

// {bound} and {also} are phrases for the arguments that the contract names; {hi} is the end of the range of
// one call, {last} the integer before it, {elements} that many elements. An empty `valid` is the range
// itself.
struct Words {
  Predicate predicate;
  std::string_view rule;
  std::string_view valid;
};

constexpr Words kWords[] = {
    {Predicate::kIndex, "in [0, {bound})", ""},
    {Predicate::kWrappedIndex, "in [-n, n), n = {bound}", ""},
    {Predicate::kIndexList, "each index in [-n, n), n = size of the dimension that it indexes", ""},
    {Predicate::kUnitInterval, "in [0, 1]; NaN is bad", "[0, 1]"},
    {Predicate::kNonNegative, "not negative", ">= 0"},
    {Predicate::kProbabilityRows, "each row finite, not negative, and with a sum above 0",
     "finite, >= 0, sum of each row > 0"},
    {Predicate::kOffsets, "start at 0, ascend, and stay within the {bound}",
     "0 first, ascending, at most {last}"},
    {Predicate::kFiniteToInteger, "finite", "finite"},
    {Predicate::kPaddedIndex, "in [0, {bound}) in the first {also} elements of each row", ""},
    {Predicate::kEndedIndex, "in [0, {bound}) up to the first -1 of each row",
     "[0, {hi}), up to the first -1 of a row"},
    {Predicate::kPivots, "in [1, {bound}]", "[1, {last}]"},
    {Predicate::kEnds, "in [0, {bound}], ascending in each row", "ascending, 0 to {last}"},
    {Predicate::kCounts, "not negative, with {bound} as their sum where that is given", ">= 0, sum {hi}"},
    {Predicate::kLengths, "not negative, with a sum of at most the {bound} in each row",
     ">= 0, sum at most {hi}"},
    {Predicate::kMaskCount, "set, when broadcast with {also}, in no more places than the {bound}",
     "at most {elements} set"},
    {Predicate::kCompressed, "from 0 to {bound} in each row, ascending by at most {also}",
     "0 first, ascending, {last} last"},
};

const Words& words_of(Predicate predicate) {
  static_assert(std::size(kWords) == kPredicates, "one row for each predicate");
  static_assert(std::ranges::is_sorted(kWords, {}, &Words::predicate), "in the order of their numbers");
  return kWords[static_cast<std::size_t>(predicate)];
}

std::string as_code(std::string_view argument) { return fmt::format("`{}`", argument); }

std::string bound_words(const Contract& contract) {
  std::string argument = as_code(contract.bound_arg);
  const std::string dim = as_code(contract.dim_arg);
  switch (contract.bound) {
    case Bound::kNone:
      return {};
    case Bound::kSizeOfDim:
      return contract.dim_arg.empty() ? "rows of " + argument
                                      : fmt::format("size of {} in {}", argument, dim);
    case Bound::kClasses:
      return "classes of " + argument;
    case Bound::kLastDim:
      return "size of the last dimension of " + argument;
    case Bound::kNumel:
      return "number of elements of " + argument;
    case Bound::kInteger:
      return argument;
    case Bound::kProduct:
      return "product of " + argument;
    case Bound::kMatrixRows:
      return "number of rows of " + argument;
    case Bound::kSpatial:
      return "elements of a plane of " + argument;
    case Bound::kGrouped:
      return fmt::format("size of the dimension of {} and {} that is cut", argument, dim);
  }
  return {};
}

std::string filled(std::string_view words, const fmt::dynamic_format_arg_store<fmt::format_context>& store) {
  return fmt::vformat(fmt::string_view(words.data(), words.size()), store);
}

}  // namespace

std::string rule_words(const Contract& contract) {
  const std::string bound = bound_words(contract), also = as_code(contract.also_arg);
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  store.push_back(fmt::arg("bound", bound));
  store.push_back(fmt::arg("also", also));
  std::string text = filled(words_of(contract.predicate).rule, store);
  if (contract.also == Also::kAllowed) text += fmt::format(", or equal to {}", also);
  return text;
}

std::string valid_words(const Contract& contract, const ScanFact& scan) {
  const std::string_view words = words_of(contract.predicate).valid;
  const bool integers = info(contract.predicate).judged != Judged::kNumber;
  if (integers && scan.hi == kUnbounded) return ">= 0";
  if (!words.empty()) {
    fmt::dynamic_format_arg_store<fmt::format_context> store;
    const std::string elements = fmt::format("{} element{}", scan.hi, scan.hi == 1 ? "" : "s");
    store.push_back(fmt::arg("hi", scan.hi));
    store.push_back(fmt::arg("last", scan.hi - 1));
    store.push_back(fmt::arg("elements", elements));
    return filled(words, store);
  }
  std::string text = scan.hi <= scan.lo ? "none: the size is 0" : fmt::format("[{}, {})", scan.lo, scan.hi);
  if (scan.also) text += fmt::format(" or {}", *scan.also);
  return text;
}

}  // namespace trapline::diagnose
