// From many partial results to one, and from that one to the host: a tree over the threads of a block, the
// last block over the others, and a report only when something is bad.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "checks/reason.hpp"
#include "cuda/kernels/block.hpp"

namespace trapline::cuda {

template <class Value>
struct Shared {
  Partial<Value> partial[kThreads];
  std::uint32_t is_last;
};

template <class Value>
TRAPLINE_DEVICE Partial<Value> no_elements() {
  Partial<Value> none;
  none.min = std::numeric_limits<Value>::max();
  none.max = std::numeric_limits<Value>::lowest();
  if constexpr (std::numeric_limits<Value>::has_infinity) {
    none.min = std::numeric_limits<Value>::infinity();
    none.max = -std::numeric_limits<Value>::infinity();
  }
  return none;
}

template <class Value>
TRAPLINE_DEVICE void add_bad(Partial<Value>& partial, std::int64_t position, Value value, Reason reason) {
  ++partial.bad;
  if (position >= partial.first) return;
  partial.first = position;
  partial.value = value;
  partial.reason = static_cast<std::uint64_t>(reason);
}

// Counts one element. NaN is no extreme: both comparisons are false.
template <class Value>
TRAPLINE_DEVICE void add(Partial<Value>& partial, std::int64_t position, Value value, Reason reason) {
  ++partial.total;
  if (value < partial.min) partial.min = value;
  if (value > partial.max) partial.max = value;
  if (reason != Reason::kNone) add_bad(partial, position, value, reason);
}

template <class Value>
TRAPLINE_DEVICE void merge(Partial<Value>& into, const Partial<Value>& from) {
  into.bad += from.bad;
  into.total += from.total;
  if (from.min < into.min) into.min = from.min;
  if (from.max > into.max) into.max = from.max;
  if (from.first >= into.first) return;
  into.first = from.first;
  into.value = from.value;
  into.reason = from.reason;
}

template <class Value>
TRAPLINE_DEVICE void reduce(const Block& block, Shared<Value>& shared) {
  TRAPLINE_LOOP
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    block.each([&](unsigned thread) {
      if (thread < half) merge(shared.partial[thread], shared.partial[thread + half]);
    });
  }
}

TRAPLINE_DEVICE std::uint64_t bits_of(std::int64_t value) { return static_cast<std::uint64_t>(value); }
TRAPLINE_DEVICE std::uint64_t bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }

// An extreme as the host's scan gives it: never -0.0, NaN when there is none.
TRAPLINE_DEVICE std::int64_t extreme(std::int64_t value, bool) { return value; }
TRAPLINE_DEVICE double extreme(double value, bool any) {
  return any ? value + 0.0 : std::numeric_limits<double>::quiet_NaN();
}

template <class Value>
TRAPLINE_DEVICE void publish(const CheckArgs& args, const Partial<Value>& all) {
  if (all.bad == 0) return;
  Slot* slot = args.slot;
  const bool any = all.min <= all.max;
  const std::uint32_t sequence = load_shared(&slot->sequence);
  store_shared(&slot->sequence, sequence + 1);
  fence_system();
  store_shared(&slot->launch, args.launch);
  store_shared(&slot->bad, all.bad);
  store_shared(&slot->total, all.total);
  store_shared(&slot->first, all.first);
  store_shared(&slot->value, bits_of(all.value));
  store_shared(&slot->min, bits_of(extreme(all.min, any)));
  store_shared(&slot->max, bits_of(extreme(all.max, any)));
  store_shared(&slot->reason, static_cast<std::uint32_t>(all.reason));
  fence_system();
  store_shared(&slot->sequence, sequence + 2);
  fence_system();
  store_shared(args.alarm, std::uint32_t{1});
}

struct Words {
  std::uint64_t word[kPartialWords];
};

// The end of every kernel: shared.partial of each thread becomes the launch's report. `settle` is run by all
// threads of the one block that holds the sum, in shared.partial[0], before it is published.
template <class Value, class Settle>
TRAPLINE_DEVICE void finish(const Block& block, const CheckArgs& args, Shared<Value>& shared,
                            Settle&& settle) {
  reduce(block, shared);
  if (block.count == 1) {
    settle();
    block.each([&](unsigned thread) {
      if (thread == 0) publish(args, shared.partial[0]);
    });
    return;
  }
  block.each([&](unsigned thread) {
    if (thread != 0) return;
    const auto words = std::bit_cast<Words>(shared.partial[0]);
    for (unsigned w = 0; w < kPartialWords; ++w) {
      store_shared(&args.scratch->parts[block.index][w], words.word[w]);
    }
    fence_device();
    shared.is_last = count_to(&args.scratch->done, block.count - 1) == block.count - 1 ? 1 : 0;
  });
  if (shared.is_last == 0) return;
  block.each([&](unsigned thread) {
    fence_device();
    Partial<Value> sum = no_elements<Value>();
    TRAPLINE_LOOP
    for (unsigned from = thread; from < block.count; from += kThreads) {
      Words words;
      for (unsigned w = 0; w < kPartialWords; ++w) {
        words.word[w] = load_shared(&args.scratch->parts[from][w]);
      }
      merge(sum, std::bit_cast<Partial<Value>>(words));
    }
    shared.partial[thread] = sum;
  });
  reduce(block, shared);
  settle();
  block.each([&](unsigned thread) {
    if (thread == 0) publish(args, shared.partial[0]);
  });
}

template <class Value>
TRAPLINE_DEVICE void finish(const Block& block, const CheckArgs& args, Shared<Value>& shared) {
  finish(block, args, shared, [] {});
}

}  // namespace trapline::cuda
