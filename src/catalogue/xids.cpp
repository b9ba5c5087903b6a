#include "catalogue/xids.hpp"

#include <re2/re2.h>

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

const XidRow* xid_in(std::string_view line) {
  static const RE2* const own = new RE2(R"re(Xid \([^)]*\):\s*(\d{1,4}))re", RE2::Latin1);
  static const RE2* const before = new RE2(R"re(caused by previous Xid (\d{1,4}))re", RE2::Latin1);
  const re2::StringPiece text(line.data(), line.size());
  int number = 0;
  if (!RE2::PartialMatch(text, *before, &number) && !RE2::PartialMatch(text, *own, &number)) return nullptr;
  return find_xid(number);
}

}  // namespace trapline
