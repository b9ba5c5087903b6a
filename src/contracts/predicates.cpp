#include <algorithm>

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
  static_assert(std::ranges::is_sorted(kRows, {}, &PredicateInfo::predicate), "in the order of the numbers");
  static_assert(kRows[kPredicates - 1].predicate == static_cast<Predicate>(kPredicates - 1),
                "none is left out");
  return kRows[static_cast<std::size_t>(predicate)];
}

}  // namespace trapline
