// The bodies of the check kernels. What they find is what the scans of checks/scan.hpp find for the same
// elements; tests/cuda compares the two.
#pragma once

#include <cstdint>

#include "checks/element.hpp"
#include "cuda/kernels/elements.hpp"
#include "cuda/kernels/partials.hpp"

namespace trapline::cuda {

// Calls visit(partial, position) for the positions of one thread, and keeps the partial.
template <class Value, class Visit>
TRAPLINE_DEVICE void visit_positions(const Block& block, Shared<Value>& shared, unsigned thread,
                                     std::int64_t count, Visit&& visit) {
  Partial<Value> partial = no_elements<Value>();
  const std::int64_t step = static_cast<std::int64_t>(block.count) * kThreads;
  TRAPLINE_LOOP
  for (std::int64_t at = static_cast<std::int64_t>(block.index) * kThreads + thread; at < count; at += step) {
    visit(partial, at);
  }
  shared.partial[thread] = partial;
}

TRAPLINE_DEVICE void judge_index(const CheckArgs& args, Partial<std::int64_t>& partial,
                                 std::int64_t position) {
  const std::int64_t value = load_integer(args, offset_of(args, position));
  const bool exempt = args.has_also != 0 && value == args.also;
  const Reason reason = exempt ? Reason::kNone : element::index(value, args.lo, args.hi);
  add(partial, position, value, reason);
  if (args.healed == nullptr) return;
  std::int64_t healed = value;
  if (reason != Reason::kNone) healed = reason == Reason::kBelow ? args.lo : args.hi - 1;
  if (reason != Reason::kNone && args.hi <= args.lo) healed = args.also;  // nothing else is allowed
  store_integer(args, position, healed);
}

TRAPLINE_DEVICE void check_index(const Block& block, const CheckArgs& args, Shared<std::int64_t>& shared) {
  block.each([&](unsigned thread) {
    visit_positions(block, shared, thread, args.numel,
                    [&](auto& partial, std::int64_t position) { judge_index(args, partial, position); });
  });
  finish(block, args, shared);
}

// Lengths that do not fit the labels are the operation's matter: then nothing is bad.
TRAPLINE_DEVICE bool lengths_fit(const Block& block, const CheckArgs& args, Shared<std::int64_t>& shared) {
  const unsigned negative = block.each_or([&](unsigned thread) -> unsigned {
    Partial<std::int64_t> sum;
    unsigned wrong = 0;
    TRAPLINE_LOOP
    for (std::int64_t row = thread; row < args.lengths_count; row += kThreads) {
      const std::int64_t length = args.lengths[row];
      if (length < 0 || (args.last_dim != 0 && length > args.last_dim)) wrong = 1;
      sum.total += length;
    }
    shared.partial[thread] = sum;
    return wrong;
  });
  if (negative != 0) return false;
  if (args.last_dim != 0) return true;
  reduce(block, shared);
  const bool fit = shared.partial[0].total == args.numel;
  block.each([](unsigned) {});  // all have read the sum before it is overwritten
  return fit;
}

TRAPLINE_DEVICE void check_padded(const Block& block, const CheckArgs& args, Shared<std::int64_t>& shared) {
  const bool fit = lengths_fit(block, args, shared);
  block.each([&](unsigned thread) {
    visit_positions(block, shared, thread, args.numel, [&](auto& partial, std::int64_t position) {
      bool looked_at = fit;
      if (fit && args.last_dim != 0) {
        const std::int64_t row = position / args.last_dim;
        looked_at = position - row * args.last_dim < args.lengths[row];
      }
      if (looked_at) {
        judge_index(args, partial, position);
      } else if (args.healed != nullptr) {
        store_integer(args, position, load_integer(args, offset_of(args, position)));
      }
    });
  });
  finish(block, args, shared);
}

// One block: whether the list is copied or zeroed is known only when all of it was seen.
TRAPLINE_DEVICE void check_offsets(const Block& block, const CheckArgs& args, Shared<std::int64_t>& shared) {
  const std::int64_t limit = args.hi == std::numeric_limits<std::int64_t>::max() ? args.hi : args.hi - 1;
  const unsigned bad = block.each_or([&](unsigned thread) -> unsigned {
    visit_positions(block, shared, thread, args.numel, [&](auto& partial, std::int64_t position) {
      const std::int64_t value = load_integer(args, offset_of(args, position));
      const std::int64_t previous = position == 0 ? 0 : load_integer(args, offset_of(args, position - 1));
      add(partial, position, value, element::offset(value, position == 0, previous, limit));
    });
    return shared.partial[thread].bad != 0 ? 1 : 0;
  });
  if (args.healed != nullptr) {
    block.each([&](unsigned thread) {
      TRAPLINE_LOOP
      for (std::int64_t position = thread; position < args.numel; position += kThreads) {
        store_integer(args, position, bad != 0 ? 0 : load_integer(args, offset_of(args, position)));
      }
    });
  }
  finish(block, args, shared);
}

// An element and the one before it tell everything, so that rows may be of any length.
TRAPLINE_DEVICE void check_compressed(const Block& block, const CheckArgs& args,
                                      Shared<std::int64_t>& shared) {
  block.each([&](unsigned thread) {
    visit_positions(block, shared, thread, args.numel, [&](auto& partial, std::int64_t position) {
      const std::int64_t in_row = position % args.last_dim;
      const std::int64_t value = load_integer(args, offset_of(args, position));
      const std::int64_t previous = in_row == 0 ? 0 : load_integer(args, offset_of(args, position - 1));
      add(partial, position, value,
          element::compressed(value, in_row == 0, in_row == args.last_dim - 1, previous, args.hi - 1,
                              args.also));
    });
  });
  finish(block, args, shared);
}

TRAPLINE_DEVICE Reason judge_number(const CheckArgs& args, double value) {
  switch (static_cast<Judge>(args.judge)) {
    case Judge::kUnitInterval:
      return element::interval(value, 0.0, 1.0);
    case Judge::kNonNegative:
      return element::non_negative(value);
    default:
      return element::finite(value);
  }
}

TRAPLINE_DEVICE void check_numbers(const Block& block, const CheckArgs& args, Shared<double>& shared) {
  block.each([&](unsigned thread) {
    visit_positions(block, shared, thread, args.numel, [&](auto& partial, std::int64_t position) {
      const std::uint64_t bits = load_bits(args, offset_of(args, position));
      const double value = number_of(args, bits);
      const Reason reason = judge_number(args, value);
      add(partial, position, value, reason);
      if (args.healed == nullptr) return;
      const std::uint64_t end = reason == Reason::kAbove ? one_of(args) : 0;
      store_bits(args, position, reason == Reason::kNone ? bits : end);
    });
  });
  finish(block, args, shared);
}

// What makes a row of probabilities good: nothing bad in it, and something positive.
inline constexpr unsigned kRowBad = 1;
inline constexpr unsigned kRowPositive = 2;

TRAPLINE_DEVICE unsigned judge_probability(const CheckArgs& args, Partial<double>& partial,
                                           std::int64_t position) {
  const double value = number_of(args, load_bits(args, offset_of(args, position)));
  const Reason reason = element::probability(value);
  add(partial, position, value, reason);
  return (reason != Reason::kNone ? kRowBad : 0u) | (value > 0 ? kRowPositive : 0u);
}

TRAPLINE_DEVICE void copy_probability(const CheckArgs& args, std::int64_t position, unsigned flags) {
  const bool good = flags == kRowPositive;
  store_bits(args, position, good ? load_bits(args, offset_of(args, position)) : one_of(args));
}

TRAPLINE_DEVICE void add_row(const CheckArgs& args, Partial<double>& partial, std::int64_t start,
                             unsigned flags) {
  if (flags != 0) return;  // something bad was counted already, or the row has a sum
  add_bad(partial, start, number_of(args, load_bits(args, offset_of(args, start))), Reason::kZeroSum);
}

TRAPLINE_DEVICE void check_narrow_rows(const Block& block, const CheckArgs& args, Shared<double>& shared) {
  block.each([&](unsigned thread) {
    visit_positions(block, shared, thread, args.numel / args.last_dim, [&](auto& partial, std::int64_t row) {
      const std::int64_t start = row * args.last_dim;
      unsigned flags = 0;
      TRAPLINE_LOOP
      for (std::int64_t at = start; at < start + args.last_dim; ++at) {
        flags |= judge_probability(args, partial, at);
      }
      add_row(args, partial, start, flags);
      if (args.healed == nullptr) return;
      TRAPLINE_LOOP
      for (std::int64_t at = start; at < start + args.last_dim; ++at) copy_probability(args, at, flags);
    });
  });
}

TRAPLINE_DEVICE void check_wide_rows(const Block& block, const CheckArgs& args, Shared<double>& shared) {
  block.each([&](unsigned thread) { shared.partial[thread] = no_elements<double>(); });
  TRAPLINE_LOOP
  for (std::int64_t start = block.index * args.last_dim; start < args.numel;
       start += block.count * args.last_dim) {
    const unsigned flags = block.each_or([&](unsigned thread) -> unsigned {
      Partial<double> partial = shared.partial[thread];
      unsigned seen = 0;
      TRAPLINE_LOOP
      for (std::int64_t at = start + thread; at < start + args.last_dim; at += kThreads) {
        seen |= judge_probability(args, partial, at);
      }
      shared.partial[thread] = partial;
      return seen;
    });
    block.each([&](unsigned thread) {
      if (thread == 0) add_row(args, shared.partial[0], start, flags);
      if (args.healed == nullptr) return;
      TRAPLINE_LOOP
      for (std::int64_t at = start + thread; at < start + args.last_dim; at += kThreads) {
        copy_probability(args, at, flags);
      }
    });
  }
}

TRAPLINE_DEVICE void check_rows(const Block& block, const CheckArgs& args, Shared<double>& shared) {
  if (args.last_dim <= kNarrowRow) {
    check_narrow_rows(block, args, shared);
  } else {
    check_wide_rows(block, args, shared);
  }
  finish(block, args, shared);
}

// What the elements of a row before this one say about it.
struct RowState {
  std::int64_t previous = 0;
  std::int64_t left = 0;  // of the sum
  bool is_first = true;
  bool judged = false;  // one word about the sum of a row is enough
};

TRAPLINE_DEVICE Reason judge_count(const CheckArgs& args, RowState& state, std::int64_t value, bool is_last) {
  const Reason reason = element::count(value, state.left);
  if (reason == Reason::kBelow) {
    state.judged = true;
    return reason;
  }
  if (state.judged) return Reason::kNone;
  if (reason != Reason::kNone) {
    state.judged = true;
    return reason;
  }
  state.left -= value;
  const bool exactly = static_cast<Sequence>(args.judge) == Sequence::kCountsExactly;
  return is_last && exactly && state.left > 0 ? Reason::kTooFew : Reason::kNone;
}

TRAPLINE_DEVICE Reason judge_in_row(const CheckArgs& args, RowState& state, std::int64_t value,
                                    bool is_last) {
  Reason reason = Reason::kNone;
  switch (static_cast<Sequence>(args.judge)) {
    case Sequence::kEnds:
      reason = element::end(value, state.is_first, state.previous, args.hi - 1);
      break;
    case Sequence::kEndedIndex:
      reason = element::index(value, 0, args.hi);
      break;
    default:
      reason = judge_count(args, state, value, is_last);
      break;
  }
  state.previous = value;
  state.is_first = false;
  return reason;
}

// One thread per row: each element is judged together with those before it.
TRAPLINE_DEVICE void check_row_in_order(const CheckArgs& args, Partial<std::int64_t>& partial,
                                        std::int64_t start) {
  const auto sequence = static_cast<Sequence>(args.judge);
  const std::int64_t end = start + args.last_dim;
  RowState state;
  state.left = args.hi;
  bool ended = false, any = false;
  TRAPLINE_LOOP
  for (std::int64_t at = start; at < end; ++at) {
    const std::int64_t value = load_integer(args, offset_of(args, at));
    ended = ended || (sequence == Sequence::kEndedIndex && value == -1);
    Reason reason = Reason::kNone;
    if (!ended) {
      reason = judge_in_row(args, state, value, at == end - 1);
      add(partial, at, value, reason);
      any = any || reason != Reason::kNone;
    }
    if (args.healed == nullptr) continue;
    std::int64_t healed = value;
    if (reason != Reason::kNone) healed = reason == Reason::kBelow ? 0 : args.hi - 1;
    // Padding that nothing reads, but an operation may look at the range of the whole row.
    if (ended && element::index(value, 0, args.hi) != Reason::kNone) healed = -1;
    store_integer(args, at, healed);
  }
  if (args.healed == nullptr || !any || sequence != Sequence::kEnds) return;
  TRAPLINE_LOOP
  for (std::int64_t at = start; at < end; ++at) store_integer(args, at, 0);  // no group holds anything
}

TRAPLINE_DEVICE void check_sequences(const Block& block, const CheckArgs& args,
                                     Shared<std::int64_t>& shared) {
  block.each([&](unsigned thread) {
    visit_positions(block, shared, thread, args.numel / args.last_dim, [&](auto& partial, std::int64_t row) {
      check_row_in_order(args, partial, row * args.last_dim);
    });
  });
  finish(block, args, shared);
}

}  // namespace trapline::cuda
