#include "log/read/scan.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "log/read/scan_literals.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "log/read/scan.cpp"  // compiled once per instruction set
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace trapline::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// As wide as the machine has them, up to 64 bytes: a fifth less time than with 32 where AVX-512 is there.
using Bytes = hn::CappedTag<std::uint8_t, 64>;
constexpr std::size_t kSlack = 64 + scan::kWindow + 2;  // what Sweep may read past its end

// Calls candidate(position, buckets) for every position of [0, n) that may start a window, in order, and
// returns the line feeds of [0, n). Reads up to kWindow - 1 bytes past a vector; data[n, n + kSlack) must
// be readable. `skip` is where the search goes on: candidate() may move it forward, never over a line feed.
#if HWY_TARGET == HWY_SCALAR  // vectors of one byte look nothing up: a machine without SSSE3
template <class Candidate>
std::size_t Sweep(const scan::Tables& tables, const std::uint8_t* data, std::size_t n, std::size_t& skip,
                  Candidate&& candidate) {
  std::size_t feeds = 0;
  for (std::size_t i = 0; i < n; i = std::max(i + 1, skip)) {
    feeds += data[i] == '\n' ? 1 : 0;
    unsigned set = 0xff;
    for (std::size_t k = 0; k < scan::kWindow && set != 0; ++k)
      set &= tables.low[k][data[i + k] & 15U] & tables.high[k][data[i + k] >> 4U];
    if (set != 0 && scan::may_start(tables, reinterpret_cast<const char*>(data) + i)) candidate(i, set);
  }
  return feeds;
}
#else
template <class Candidate>
std::size_t Sweep(const scan::Tables& tables, const std::uint8_t* data, std::size_t n, std::size_t& skip,
                  Candidate&& candidate) {
  const Bytes d;
  const std::size_t lanes = hn::Lanes(d);
  const auto nibble = hn::Set(d, std::uint8_t{15});
  const auto feed = hn::Set(d, std::uint8_t{'\n'});
  const auto table = [&](const std::array<std::uint8_t, 16>& row) { return hn::LoadDup128(d, row.data()); };
  const auto low0 = table(tables.low[0]), high0 = table(tables.high[0]);
  const auto low1 = table(tables.low[1]), high1 = table(tables.high[1]);
  const auto low2 = table(tables.low[2]), high2 = table(tables.high[2]);
  const auto low3 = table(tables.low[3]), high3 = table(tables.high[3]);
  const auto low4 = table(tables.low[4]), high4 = table(tables.high[4]);
  const auto low5 = table(tables.low[5]), high5 = table(tables.high[5]);
  static_assert(scan::kWindow == 6);
  const auto buckets = [&](auto low, auto high, auto bytes) {
    return hn::And(hn::TableLookupBytes(low, hn::And(bytes, nibble)),
                   hn::TableLookupBytes(high, hn::ShiftRight<4>(bytes)));
  };
  alignas(64) std::uint8_t found[64];
  std::size_t feeds = 0;
  std::size_t i = 0;
  while (i < n) {
    const auto bytes = hn::LoadU(d, data + i);
    const auto feed_mask = hn::Eq(bytes, feed);
    if (n - i >= lanes) {
      feeds += hn::CountTrue(d, feed_mask);
    } else {
      feeds += hn::CountTrue(d, hn::And(feed_mask, hn::FirstN(d, n - i)));
    }
    auto set = hn::And(buckets(low0, high0, bytes), buckets(low1, high1, hn::LoadU(d, data + i + 1)));
    set = hn::And(set, buckets(low2, high2, hn::LoadU(d, data + i + 2)));
    set = hn::And(set, buckets(low3, high3, hn::LoadU(d, data + i + 3)));
    set = hn::And(set, buckets(low4, high4, hn::LoadU(d, data + i + 4)));
    set = hn::And(set, buckets(low5, high5, hn::LoadU(d, data + i + 5)));
    const auto any = hn::Ne(set, hn::Zero(d));
    if (HWY_UNLIKELY(!hn::AllFalse(d, any))) {
      std::uint8_t bits[8] = {};
      hn::StoreMaskBits(d, any, bits);
      std::uint64_t mask = 0;
      std::memcpy(&mask, bits, sizeof mask);
      if (lanes < 64) mask &= (std::uint64_t{1} << lanes) - 1;
      hn::Store(set, d, found);
      for (; mask != 0; mask &= mask - 1) {
        const auto k = static_cast<std::size_t>(__builtin_ctzll(mask));
        if (i + k >= n) break;
        if (i + k < skip || !scan::may_start(tables, reinterpret_cast<const char*>(data) + i + k)) continue;
        candidate(i + k, found[k]);
      }
    }
    i += lanes;
    if (skip > i) i = skip;
  }
  return feeds;
}
#endif

std::size_t ScanBlock(const scan::Tables& tables, std::string_view block, std::vector<Hit>& hits) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(block.data());
  const auto literals = scan::literals();
  std::size_t skip = 0;
  std::size_t last = 0;  // one past the start of the last hit: a literal may be found through one window only
  const auto at = [&](std::size_t position, unsigned buckets, std::size_t& go_on) {
    std::size_t start = 0;
    const int row = scan::verify(tables, block, position, buckets, start);
    if (row < 0 || start < last) return;
    const HitKind kind = literals[static_cast<std::size_t>(row)].kind;
    hits.push_back({static_cast<std::uint32_t>(start), kind});
    last = start + 1;
    if (kind != HitKind::kWeak) go_on = last = scan::after_hit(block, start, kind);
  };
  const std::size_t body = block.size() > kSlack ? block.size() - kSlack : 0;
  std::size_t feeds = Sweep(tables, data, body, skip,
                            [&](std::size_t position, unsigned buckets) { at(position, buckets, skip); });
  // The end again from a copy with room behind it.
  std::array<std::uint8_t, 2 * kSlack + 64> rest{};
  const std::size_t from = std::max(body, std::min(skip, block.size()));
  const std::size_t size = block.size() - from;
  if (size > 0) std::memcpy(rest.data(), data + from, size);
  std::size_t rest_skip = 0;
  feeds += Sweep(tables, rest.data(), size, rest_skip, [&](std::size_t position, unsigned buckets) {
    std::size_t go_on = from + rest_skip;
    at(from + position, buckets, go_on);
    rest_skip = go_on - from;
  });
  return feeds;
}

std::size_t CountNewlines(std::string_view text) {
  const Bytes d;
  const std::size_t lanes = hn::Lanes(d);
  const auto* data = reinterpret_cast<const std::uint8_t*>(text.data());
  const auto feed = hn::Set(d, std::uint8_t{'\n'});
  std::size_t feeds = 0;
  std::size_t i = 0;
  for (; i + lanes <= text.size(); i += lanes)
    feeds += hn::CountTrue(d, hn::Eq(hn::LoadU(d, data + i), feed));
  for (; i < text.size(); ++i) feeds += text[i] == '\n' ? 1 : 0;
  return feeds;
}

}  // namespace trapline::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trapline {
namespace simd {
HWY_EXPORT(ScanBlock);
HWY_EXPORT(CountNewlines);
}  // namespace simd

std::size_t scan_block(std::string_view block, std::vector<Hit>& hits) {
  using namespace simd;
  return HWY_DYNAMIC_DISPATCH(ScanBlock)(scan::tables(), block, hits);
}

std::size_t count_newlines(std::string_view text) {
  using namespace simd;
  return HWY_DYNAMIC_DISPATCH(CountNewlines)(text);
}

std::size_t scan_block_reference(std::string_view block, std::vector<Hit>& hits) {
  std::size_t i = 0;
  while (i < block.size()) {
    const scan::Literal* best = nullptr;
    for (const scan::Literal& literal : scan::literals()) {
      if (scan::matches(block, i, literal.text) && (best == nullptr || literal.kind < best->kind))
        best = &literal;
    }
    if (best == nullptr) {
      ++i;
      continue;
    }
    hits.push_back({static_cast<std::uint32_t>(i), best->kind});
    i = scan::after_hit(block, i, best->kind);
  }
  return static_cast<std::size_t>(std::count(block.begin(), block.end(), '\n'));
}

}  // namespace trapline
#endif  // HWY_ONCE
