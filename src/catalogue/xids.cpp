#include "catalogue/xids.hpp"

#include <algorithm>
#include <iterator>

namespace trapline {
namespace {

using enum XidTells;

constexpr XidRow kRows[] = {
#define TRAPLINE_XID(...) XidRow{__VA_ARGS__},
#include "catalogue/xids.def"
#undef TRAPLINE_XID
};

}  // namespace

std::span<const XidRow> xid_rows() { return kRows; }

const XidRow* find_xid(int number) {
  const auto* const found = std::ranges::find(kRows, number, &XidRow::number);
  return found == std::end(kRows) ? nullptr : found;
}

}  // namespace trapline
