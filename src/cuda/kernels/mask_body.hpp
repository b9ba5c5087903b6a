// The check kernel of masks that may take only so many elements: the count first, by all blocks; the place of
// the first one too many only when there is one, by the block that holds the count.
#pragma once

#include <cstdint>

#include "cuda/kernels/check_body.hpp"

namespace trapline::cuda {

TRAPLINE_DEVICE bool is_repeated(const CheckArgs& args, int dimension) {
  return (args.repeated >> dimension & 1) != 0;
}

// 1 or 0. As offset_of, of a position in the mask's own shape; a mask is of bytes.
TRAPLINE_DEVICE std::int64_t marked(const CheckArgs& args, std::int64_t own) {
  std::int64_t offset = 0, rest = own;
  TRAPLINE_LOOP
  for (int d = args.dim - 1; d >= 0 && rest > 0; --d) {
    if (is_repeated(args, d)) continue;
    if (d == 0) {
      offset += rest * args.strides[0];
      break;
    }
    const std::int64_t outer = rest / args.sizes[d];
    offset += (rest - outer * args.sizes[d]) * args.strides[d];
    rest = outer;
  }
  return static_cast<const std::uint8_t*>(args.data)[offset] != 0 ? 1 : 0;
}

// The position in the mask's own shape of an element of the broadcast one.
TRAPLINE_DEVICE std::int64_t own_position(const CheckArgs& args, std::int64_t position) {
  if (args.repeated == 0) return position;
  std::int64_t own = 0, step = 1, rest = position;
  TRAPLINE_LOOP
  for (int d = args.dim - 1; d >= 0; --d) {
    const std::int64_t outer = rest / args.sizes[d];
    if (!is_repeated(args, d)) {
      own += (rest - outer * args.sizes[d]) * step;
      step *= args.sizes[d];
    }
    rest = outer;
  }
  return own;
}

// How often each element counts.
TRAPLINE_DEVICE std::int64_t times_repeated(const CheckArgs& args) {
  std::int64_t times = 1;
  TRAPLINE_LOOP
  for (int d = 0; d < args.dim; ++d) {
    if (is_repeated(args, d)) times *= args.sizes[d];
  }
  return times;
}

// Of the one thread that knows how many each thread's share of the broadcast mask takes: the first position
// that is one too many, in the mask's own shape.
TRAPLINE_DEVICE std::int64_t first_too_many(const CheckArgs& args, const Shared<std::int64_t>& shared,
                                            std::int64_t share) {
  std::int64_t left = args.hi, at = 0;
  TRAPLINE_LOOP
  for (unsigned thread = 0; thread < kThreads && shared.partial[thread].bad <= left; ++thread) {
    left -= shared.partial[thread].bad;
    at += share;
  }
  TRAPLINE_LOOP
  for (;; ++at) {
    const std::int64_t own = own_position(args, at);
    if (marked(args, own) != 0 && --left < 0) return own;
  }
}

// shared.partial[0].bad is how many elements of the mask are set, and becomes how many are too many.
TRAPLINE_DEVICE void settle_mask(const Block& block, const CheckArgs& args, Shared<std::int64_t>& shared) {
  const Partial<std::int64_t> all = shared.partial[0];
  block.each([](unsigned) {});  // all have read it before it is overwritten
  const std::int64_t times = times_repeated(args), taken = all.bad * times;
  if (taken <= args.hi) {
    block.each([&](unsigned thread) {
      if (thread == 0) shared.partial[0].bad = 0;
    });
    return;
  }
  const std::int64_t total = args.numel * times, share = (total - 1) / kThreads + 1;
  block.each([&](unsigned thread) {
    const std::int64_t start = thread * share, end = start + share < total ? start + share : total;
    std::int64_t count = 0;
    TRAPLINE_LOOP
    for (std::int64_t at = start; at < end; ++at) count += marked(args, own_position(args, at)) != 0 ? 1 : 0;
    shared.partial[thread].bad = count;
  });
  block.each([&](unsigned thread) {
    if (thread == 0) {
      Partial<std::int64_t> found = all;
      found.first = first_too_many(args, shared, share);
      found.bad = taken - args.hi;
      found.total = total;
      found.value = 1;
      shared.partial[0] = found;
    }
    if (args.healed == nullptr) return;
    TRAPLINE_LOOP
    for (std::int64_t own = thread; own < args.numel; own += kThreads)
      static_cast<std::uint8_t*>(args.healed)[own] = 0;
  });
}

TRAPLINE_DEVICE void check_mask(const Block& block, const CheckArgs& args, Shared<std::int64_t>& shared) {
  block.each([&](unsigned thread) {
    visit_positions(block, shared, thread, args.numel, [&](auto& partial, std::int64_t own) {
      const std::int64_t value = marked(args, own);
      add(partial, own, value, value != 0 ? Reason::kTooMany : Reason::kNone);
      if (args.healed != nullptr) {
        static_cast<std::uint8_t*>(args.healed)[own] = static_cast<std::uint8_t>(value);
      }
    });
  });
  finish(block, args, shared, [&] { settle_mask(block, args, shared); });
}

}  // namespace trapline::cuda
