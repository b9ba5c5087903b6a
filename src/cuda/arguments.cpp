#include "cuda/arguments.hpp"

#include <algorithm>
#include <cstdint>

#include "contracts/contract.hpp"
#include "core/tensor_view.hpp"

namespace trapline::cuda {
namespace {

static_assert(kMaxDims == TRAPLINE_DEVICE_DIMS);

// Elements that one block does by itself faster than several would meet.
constexpr std::int64_t kOneBlock = std::int64_t{8} * kThreads;
constexpr std::int64_t kPerThread = 4;

struct Rule {
  Predicate predicate;
  bool floating;
  Kernel kernel;
  std::int32_t judge;  // Judge or Sequence, as the kernel has it
};

template <class Enum>
constexpr std::int32_t number(Enum value) {
  return static_cast<std::int32_t>(value);
}

// To check one more predicate on a device, add a row, and the kernel when it is a new one.
constexpr Rule kRules[] = {
    {Predicate::kIndex, false, kIndexKernel, {}},
    {Predicate::kWrappedIndex, false, kIndexKernel, {}},
    {Predicate::kPaddedIndex, false, kPaddedKernel, {}},
    {Predicate::kOffsets, false, kOffsetsKernel, {}},
    {Predicate::kUnitInterval, true, kNumbersKernel, number(Judge::kUnitInterval)},
    {Predicate::kNonNegative, true, kNumbersKernel, number(Judge::kNonNegative)},
    {Predicate::kFiniteToInteger, true, kNumbersKernel, number(Judge::kFinite)},
    {Predicate::kProbabilityRows, true, kRowsKernel, {}},
    {Predicate::kEnds, false, kSequencesKernel, number(Sequence::kEnds)},
    {Predicate::kEndedIndex, false, kSequencesKernel, number(Sequence::kEndedIndex)},
    {Predicate::kCounts, false, kSequencesKernel, number(Sequence::kCountsExactly)},
    {Predicate::kLengths, false, kSequencesKernel, number(Sequence::kCountsAtMost)},
    {Predicate::kMaskCount, false, kMaskKernel, {}},
    {Predicate::kCompressed, false, kCompressedKernel, {}},
};

const Rule* rule_of(const trapline_device_check& check) {
  if (check.dtype < TRAPLINE_BOOL || check.dtype > TRAPLINE_FLOAT64) return nullptr;
  const bool floating = is_floating(static_cast<DType>(check.dtype));
  const auto* found = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& rule) {
    return static_cast<std::int32_t>(rule.predicate) == check.predicate && rule.floating == floating;
  });
  return found == std::end(kRules) ? nullptr : found;
}

bool aligned(const void* address, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

}  // namespace

std::optional<Kernel> kernel_of(const trapline_device_check& check, const void* healed, const void* scratch) {
  const Rule* rule = rule_of(check);
  if (rule == nullptr || check.numel <= 0 || check.dim < 0 || check.dim > kMaxDims || check.data == nullptr) {
    return std::nullopt;
  }
  if (rule->kernel == kMaskKernel && check.dtype != TRAPLINE_BOOL) return std::nullopt;
  const std::size_t bytes = size_of(static_cast<DType>(check.dtype));
  if (!aligned(check.data, bytes) || !aligned(healed, bytes) || !aligned(scratch, alignof(Scratch))) {
    return std::nullopt;
  }
  const bool by_row =
      rule->kernel == kRowsKernel || rule->kernel == kSequencesKernel || rule->kernel == kCompressedKernel;
  if (by_row && check.last_dim <= 0) return std::nullopt;
  if (rule->kernel == kPaddedKernel &&
      (check.lengths == nullptr || !aligned(check.lengths, sizeof(std::int64_t)) || check.last_dim < 0)) {
    return std::nullopt;
  }
  return rule->kernel;
}

CheckArgs arguments_of(const trapline_device_check& check, void* healed) {
  CheckArgs args{};
  args.data = check.data;
  args.healed = healed;
  args.lengths = static_cast<const std::int64_t*>(check.lengths);
  args.lo = check.lo;
  args.hi = check.hi;
  args.also = check.also;
  args.numel = check.numel;
  args.last_dim = check.last_dim;
  args.lengths_count = check.lengths_count;
  args.dtype = check.dtype;
  const Rule* rule = rule_of(check);
  args.judge = rule == nullptr ? 0 : rule->judge;
  args.has_also = check.has_also;
  args.dim = check.dim;
  args.repeated = check.repeated;
  for (std::int32_t d = 0; d < check.dim; ++d) {
    args.sizes[d] = check.sizes[d];
    args.strides[d] = check.strides[d];
  }
  return args;
}

unsigned blocks_of(const trapline_device_check& check) {
  const Rule* rule = rule_of(check);
  if (rule == nullptr || rule->kernel == kOffsetsKernel || check.numel <= kOneBlock) return 1;
  std::int64_t blocks = (check.numel - 1) / (kThreads * kPerThread) + 1;
  if ((rule->kernel == kRowsKernel || rule->kernel == kSequencesKernel) && check.last_dim > 0) {
    const std::int64_t rows = check.numel / check.last_dim;
    const bool by_thread = rule->kernel == kSequencesKernel || check.last_dim <= kNarrowRow;
    blocks = by_thread ? (rows - 1) / kThreads + 1 : rows;
  }
  return static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, kMaxBlocks));
}

}  // namespace trapline::cuda
