#include "contracts/check_call.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "checks/scan.hpp"
#include "contracts/resolve.hpp"
#include "core/tensor_view.hpp"

namespace trapline {
namespace {

bool readable(const trapline_tensor& tensor) { return tensor.data != nullptr || is_empty(tensor); }

TensorView view_of(const trapline_tensor& tensor) {
  const auto dims = static_cast<std::size_t>(tensor.dim);
  return {tensor.data, static_cast<DType>(tensor.dtype), {tensor.sizes, dims}, {tensor.strides, dims}};
}

// Member by member: compilers make `rep stos` of `scan = {}`, which costs more than the scan of 16 elements.
void clear(trapline_scan& scan) {
  scan.bad = 0;
  scan.total = 0;
  scan.first = -1;
  scan.is_float = 0;
  scan.list_position = -1;
  scan.ivalue = 0;
  scan.imin = 0;
  scan.imax = 0;
  scan.fvalue = 0;
  scan.fmin = 0;
  scan.fmax = 0;
  scan.lo = 0;
  scan.hi = 0;
  scan.has_also = 0;
  scan.reason = 0;
  scan.also = 0;
}

void fill(const IntScan& from, trapline_scan& to) {
  to.bad = from.bad;
  to.total = from.total;
  to.first = from.first;
  to.ivalue = from.value;
  to.imin = from.min;
  to.imax = from.max;
  to.reason = static_cast<std::int32_t>(from.reason);
}

void fill(const FloatScan& from, trapline_scan& to) {
  to.is_float = 1;
  to.bad = from.bad;
  to.total = from.total;
  to.first = from.first;
  to.fvalue = from.value;
  to.fmin = from.min;
  to.fmax = from.max;
  to.reason = static_cast<std::int32_t>(from.reason);
}

// The length of row `row`, from a list of integers or from a tensor of them.
std::int64_t length_at(const trapline_arg& lengths, std::int64_t row) {
  if (lengths.kind == TRAPLINE_ARG_SIZES) return lengths.tensor.sizes[row];
  // One element is its own range: the scan widens every dtype.
  constexpr std::int64_t kOne = 1;
  const trapline_tensor& tensor = lengths.tensor;
  const auto bytes = static_cast<std::ptrdiff_t>(size_of(static_cast<DType>(tensor.dtype)));
  const void* element = static_cast<const char*>(tensor.data) + row * tensor.strides[0] * bytes;
  const TensorView view{element, static_cast<DType>(tensor.dtype), {&kOne, 1}, {&kOne, 1}};
  return scan_index(view, 0, kUnbounded, std::nullopt).min;
}

// False: the lengths do not fit the labels.
bool scan_padded(const Demand& demand, IntScan& all) {
  const trapline_tensor& labels = *demand.tensor;
  const trapline_arg& lengths = *demand.with;
  const bool listed = lengths.kind == TRAPLINE_ARG_SIZES;
  if (!listed && !readable(lengths.tensor)) return false;
  const std::int64_t rows = listed ? lengths.tensor.dim : lengths.tensor.sizes[0];
  if (!lengths_fit(
          rows, [&](std::int64_t row) { return length_at(lengths, row); }, labels))
    return false;
  if (labels.dim == 1) {
    all = scan_index(view_of(labels), 0, demand.hi, std::nullopt);
    return true;
  }
  const auto bytes = static_cast<std::ptrdiff_t>(size_of(static_cast<DType>(labels.dtype)));
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t length = length_at(lengths, row);
    if (length == 0) continue;
    const void* start = static_cast<const char*>(labels.data) + row * labels.strides[0] * bytes;
    const TensorView view{start, static_cast<DType>(labels.dtype), {&length, 1}, {&labels.strides[1], 1}};
    const IntScan one = scan_index(view, 0, demand.hi, std::nullopt);
    all.min = all.total == 0 ? one.min : std::min(all.min, one.min);
    all.max = all.total == 0 ? one.max : std::max(all.max, one.max);
    if (all.bad == 0 && one.bad != 0) {
      all.first = row * labels.sizes[1] + one.first;
      all.value = one.value;
      all.reason = one.reason;
    }
    all.bad += one.bad;
    all.total += one.total;
  }
  return true;
}

// The position in the mask's own shape of an element of the broadcast one.
std::int64_t own_position(std::int64_t position, const trapline_tensor& mask,
                          std::span<const std::int64_t> sizes) {
  std::int64_t own = 0, step = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    const std::int64_t at = position % sizes[d];
    position /= sizes[d];
    const std::int32_t m =
        static_cast<std::int32_t>(d) - (static_cast<std::int32_t>(sizes.size()) - mask.dim);
    if (m < 0) continue;
    own += mask.sizes[m] == 1 ? 0 : at * step;
    step *= mask.sizes[m];
  }
  return own;
}

IntScan scan_broadcast(const Demand& demand) {
  const trapline_tensor& mask = *demand.tensor;
  const trapline_tensor& self = demand.with->tensor;
  std::array<std::int64_t, kMaxDemands> sizes, strides;
  const auto dims = static_cast<std::size_t>(std::max(mask.dim, self.dim));
  const std::span<std::int64_t> whole{sizes.data(), dims}, steps{strides.data(), dims};
  broadcast_mask(mask, self, whole, steps);
  IntScan found = scan_mask({mask.data, DType::kBool, whole, steps}, demand.hi);
  if (found.bad != 0) found.first = own_position(found.first, mask, whole);
  return found;
}

// Looks at the elements. False: only they show that the row does not apply.
bool scan_demand(const Demand& demand, trapline_scan& scan) {
  scan.lo = demand.lo;
  scan.hi = demand.hi;
  scan.has_also = demand.has_also ? 1 : 0;
  scan.also = demand.has_also ? demand.also : 0;
  scan.list_position = demand.list_position;
  const TensorView view = view_of(*demand.tensor);
  const std::int64_t last = demand.hi == kUnbounded ? demand.hi : demand.hi - 1;
  switch (demand.predicate) {
    case Predicate::kIndex:
    case Predicate::kWrappedIndex:
      fill(
          scan_index(view, demand.lo, demand.hi, demand.has_also ? std::optional(demand.also) : std::nullopt),
          scan);
      return true;
    case Predicate::kPaddedIndex: {
      IntScan all;
      if (!scan_padded(demand, all)) return false;
      fill(all, scan);
      return true;
    }
    case Predicate::kEndedIndex:
      fill(scan_ended_index(view, demand.hi), scan);
      return true;
    case Predicate::kOffsets:
      fill(scan_offsets(view, last), scan);
      return true;
    case Predicate::kEnds:
      fill(scan_ends(view, last), scan);
      return true;
    case Predicate::kCompressed:
      fill(scan_compressed(view, last, demand.also), scan);
      return true;
    case Predicate::kCounts:
      fill(scan_counts(view, demand.hi, Sum::kExactly), scan);
      return true;
    case Predicate::kLengths:
      fill(scan_counts(view, demand.hi, Sum::kAtMost), scan);
      return true;
    case Predicate::kMaskCount:
      fill(scan_broadcast(demand), scan);
      return true;
    case Predicate::kUnitInterval:
      fill(scan_interval(view, 0.0, 1.0), scan);
      return true;
    case Predicate::kNonNegative:
      fill(scan_non_negative(view), scan);
      return true;
    case Predicate::kProbabilityRows:
      fill(scan_probability_rows(view), scan);
      return true;
    case Predicate::kFiniteToInteger:
      fill(scan_finite(view), scan);
      return true;
    case Predicate::kIndexList:
    case Predicate::kPivots:
      break;  // no demand has them
  }
  return false;
}

}  // namespace

trapline_verdict check_call(const Contract& contract, const CallArguments& call, trapline_scan& scan) {
  std::array<Demand, kMaxDemands> room;
  const std::span<const Demand> demands = resolve(contract, call, room);
  if (demands.empty()) return TRAPLINE_NOT_APPLICABLE;
  for (const Demand& demand : demands) {
    if (!readable(*demand.tensor)) return TRAPLINE_NOT_APPLICABLE;
  }
  clear(scan);
  if (!scan_demand(demands.front(), scan)) return TRAPLINE_NOT_APPLICABLE;
  if (scan.bad != 0) return TRAPLINE_VIOLATED;
  // Of several tensors the first bad one is told of, or else the first.
  for (const Demand& demand : demands.subspan(1)) {
    trapline_scan one;
    clear(one);
    if (!scan_demand(demand, one)) return TRAPLINE_NOT_APPLICABLE;
    if (one.bad == 0) continue;
    scan = one;
    return TRAPLINE_VIOLATED;
  }
  return TRAPLINE_OK;
}

}  // namespace trapline
