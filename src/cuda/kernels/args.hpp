// What a check kernel is given and what it leaves behind: one layout for host and device.
#pragma once

#include <cstdint>
#include <limits>

namespace trapline::cuda {

inline constexpr unsigned kThreads = 512;    // of every block
inline constexpr unsigned kMaxBlocks = 512;  // of a launch
inline constexpr int kMaxDims = 12;          // TRAPLINE_DEVICE_DIMS

// Up to this width a row of probabilities is one thread's, above it a block's.
inline constexpr std::int64_t kNarrowRow = 64;

// Of trapline_numbers: what must hold for each number.
enum class Judge : std::int32_t { kUnitInterval, kNonNegative, kFinite };

// Of trapline_sequences: what must hold for the integers of each row, in their order.
enum class Sequence : std::int32_t { kEnds, kEndedIndex, kCountsExactly, kCountsAtMost };

// The report of one launch, in mapped host memory, 64 bytes. Only the device writes it after it was zeroed.
// `sequence` is odd while the fields are being written and even, two more than before, when they are whole.
struct Slot {
  std::uint64_t launch;  // CheckArgs::launch
  std::int64_t bad, total, first;
  std::uint64_t value, min, max;  // the bits of int64 or of double
  std::uint32_t reason;           // trapline::Reason
  std::uint32_t sequence;
};
static_assert(sizeof(Slot) == 64);

// What some of the elements came to. Words of 64 bits, so that it can be copied as such.
template <class Value>
struct Partial {
  std::int64_t bad = 0;
  std::int64_t total = 0;
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  Value value{};
  Value min{};  // min > max: no element that counts was seen
  Value max{};
  std::uint64_t reason = 0;
};
inline constexpr unsigned kPartialWords = sizeof(Partial<std::int64_t>) / sizeof(std::uint64_t);
static_assert(sizeof(Partial<double>) == sizeof(Partial<std::int64_t>));

// Device memory where the blocks of one launch meet. `done` counts blocks and wraps to zero with the last
// one, so the next launch of the stream finds it as this one did.
struct Scratch {
  std::uint32_t done;
  std::uint32_t unused[15];
  std::uint64_t parts[kMaxBlocks][kPartialWords];
};

// One kernel parameter, by value.
struct CheckArgs {
  const void* data;             // element 0 of the tensor
  void* healed;                 // numel contiguous elements of the same dtype, or null
  const std::int64_t* lengths;  // trapline_padded
  Slot* slot;
  std::uint32_t* alarm;  // mapped host memory: set to 1 after the slot is whole
  Scratch* scratch;      // not null when the launch has several blocks
  std::uint64_t launch;
  std::int64_t lo, hi, also;  // integers in [lo, hi), or `also` when has_also
  std::int64_t numel;
  std::int64_t last_dim;  // of a row; trapline_padded: 0 when all labels are in one row
  std::int64_t lengths_count;
  std::int32_t dtype;  // trapline::DType
  std::int32_t judge;  // Judge or Sequence, as the kernel has it
  std::int32_t has_also;
  std::int32_t dim;
  std::int32_t repeated;  // trapline_mask: bit d: dimension d is none of the mask's own
  std::int32_t unused;
  std::int64_t sizes[kMaxDims], strides[kMaxDims];  // strides count elements
};

}  // namespace trapline::cuda
