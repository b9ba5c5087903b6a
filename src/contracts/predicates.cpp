#include <algorithm>
#include <iterator>

#include "contracts/contract.hpp"

namespace trapline {
namespace {

constexpr PredicateInfo kRows[] = {
#define TRAPLINE_PREDICATE_ROW(name, NUMBER, judged, heal) {Predicate::k##name, Judged::judged, Heal::heal},
#include "contracts/predicates.def"
#undef TRAPLINE_PREDICATE_ROW
};

}  // namespace

const PredicateInfo& info(Predicate predicate) {
  static_assert(std::size(kRows) == TRAPLINE_PREDICATE_COMPRESSED + 1, "one row for each number");
  static_assert(std::ranges::is_sorted(kRows, {}, &PredicateInfo::predicate), "in the order of the numbers");
  return kRows[static_cast<std::size_t>(predicate)];
}

}  // namespace trapline
