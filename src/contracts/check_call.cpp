#include "contracts/check_call.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "checks/scan.hpp"
#include "core/tensor_view.hpp"

namespace trapline {
namespace {

bool readable(const trapline_tensor& tensor) { return tensor.data != nullptr || is_empty(tensor); }

TensorView view_of(const trapline_tensor& tensor) {
  const auto dims = static_cast<std::size_t>(tensor.dim);
  return {tensor.data, static_cast<DType>(tensor.dtype), {tensor.sizes, dims}, {tensor.strides, dims}};
}

trapline_verdict verdict_of(const trapline_scan& scan) {
  return scan.bad != 0 ? TRAPLINE_VIOLATED : TRAPLINE_OK;
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

trapline_verdict check_range(const trapline_tensor& tensor, std::int64_t lo, std::int64_t hi,
                             std::optional<std::int64_t> also, trapline_scan& scan) {
  fill(scan_index(view_of(tensor), lo, hi, also), scan);
  scan.lo = lo;
  scan.hi = hi;
  scan.has_also = also ? 1 : 0;
  scan.also = also.value_or(0);
  return verdict_of(scan);
}

// x[i, None, j]: an integer tensor takes one dimension, a mask takes as many as it has, None skips one.
trapline_verdict check_index_list(const Contract& contract, const CallArguments& call, trapline_scan& scan) {
  const trapline_tensor* bound = tensor_of(call.bound);
  if (bound == nullptr || call.argument->kind != TRAPLINE_ARG_LIST || is_empty(*bound)) {
    return TRAPLINE_NOT_APPLICABLE;
  }
  const std::int32_t count = call.argument->list_size;
  // One empty index broadcasts the others away: PyTorch then reads none of them.
  for (std::int32_t i = 0; i < count; ++i) {
    const trapline_tensor& index = call.argument->list[i];
    if (index.dim > 0 && is_empty(index)) return TRAPLINE_NOT_APPLICABLE;
  }
  std::int32_t dimension = 0;
  bool looked = false;
  for (std::int32_t i = 0; i < count; ++i) {
    const trapline_tensor& index = call.argument->list[i];
    if (index.dim < 0) {
      ++dimension;
      continue;
    }
    if (index.dtype == TRAPLINE_BOOL || index.dtype == TRAPLINE_UINT8) {
      dimension += index.dim;
      continue;
    }
    if (dimension >= bound->dim || !fits(contract.dtypes, index.dtype) || !readable(index)) {
      return TRAPLINE_NOT_APPLICABLE;
    }
    const std::int64_t size = bound->sizes[dimension++];
    trapline_scan one;
    clear(one);
    const trapline_verdict verdict = check_range(index, -size, size, std::nullopt, one);
    if (!looked || verdict == TRAPLINE_VIOLATED) {
      scan = one;
      scan.list_position = i;
      looked = true;
    }
    if (verdict == TRAPLINE_VIOLATED) return verdict;
  }
  return looked ? TRAPLINE_OK : TRAPLINE_NOT_APPLICABLE;
}

// The length of row `row`, from a list of integers or from a tensor of them; -1 when it is not known.
std::int64_t length_at(const trapline_arg& lengths, std::int64_t row) {
  if (lengths.kind == TRAPLINE_ARG_SIZES) return row < lengths.tensor.dim ? lengths.tensor.sizes[row] : -1;
  const trapline_tensor* tensor = tensor_of(&lengths);
  if (tensor == nullptr || tensor->dim != 1 || row >= tensor->sizes[0] || tensor->data == nullptr ||
      !fits(Dtypes::kInteger, tensor->dtype)) {
    return -1;
  }
  // One element is its own range: the scan widens every dtype.
  constexpr std::int64_t kOne = 1;
  const auto bytes = static_cast<std::ptrdiff_t>(size_of(static_cast<DType>(tensor->dtype)));
  const void* element = static_cast<const char*>(tensor->data) + row * tensor->strides[0] * bytes;
  const TensorView view{element, static_cast<DType>(tensor->dtype), {&kOne, 1}, {&kOne, 1}};
  return scan_index(view, 0, kUnbounded, std::nullopt).min;
}

std::int64_t row_count(const trapline_arg& lengths) {
  if (lengths.kind == TRAPLINE_ARG_SIZES) return lengths.tensor.dim;
  const trapline_tensor* tensor = tensor_of(&lengths);
  return tensor != nullptr && tensor->dim == 1 ? tensor->sizes[0] : -1;
}

// ctc_loss: targets are (rows, longest) with padding that may hold anything, or all labels in one row.
trapline_verdict check_padded(const CallArguments& call, const trapline_tensor& targets, std::int64_t hi,
                              trapline_scan& scan) {
  if (call.also == nullptr) return TRAPLINE_NOT_APPLICABLE;
  const std::int64_t rows = row_count(*call.also);
  if (rows < 0 || (targets.dim != 1 && targets.dim != 2)) return TRAPLINE_NOT_APPLICABLE;
  std::int64_t sum = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t length = length_at(*call.also, row);
    if (length < 0 || (targets.dim == 2 && length > targets.sizes[1])) return TRAPLINE_NOT_APPLICABLE;
    sum += length;
  }
  if (targets.dim == 1) {
    return sum == targets.sizes[0] ? check_range(targets, 0, hi, std::nullopt, scan)
                                   : TRAPLINE_NOT_APPLICABLE;
  }
  if (rows != targets.sizes[0]) return TRAPLINE_NOT_APPLICABLE;
  const auto bytes = static_cast<std::ptrdiff_t>(size_of(static_cast<DType>(targets.dtype)));
  trapline_scan all;
  clear(all);
  all.hi = hi;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t length = length_at(*call.also, row);
    if (length == 0) continue;
    const void* start = static_cast<const char*>(targets.data) + row * targets.strides[0] * bytes;
    const TensorView view{start, static_cast<DType>(targets.dtype), {&length, 1}, {&targets.strides[1], 1}};
    const IntScan one = scan_index(view, 0, hi, std::nullopt);
    if (all.total == 0 || one.min < all.imin) all.imin = one.min;
    if (all.total == 0 || one.max > all.imax) all.imax = one.max;
    if (all.bad == 0 && one.bad != 0) {
      all.first = row * targets.sizes[1] + one.first;
      all.ivalue = one.value;
      all.reason = static_cast<std::int32_t>(one.reason);
    }
    all.bad += one.bad;
    all.total += one.total;
  }
  scan = all;
  return verdict_of(scan);
}

trapline_verdict judged(const IntScan& found, std::int64_t lo, std::int64_t hi, trapline_scan& scan) {
  fill(found, scan);
  scan.lo = lo;
  scan.hi = hi;
  return verdict_of(scan);
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

trapline_verdict check_mask(const CallArguments& call, const trapline_tensor& mask, std::int64_t limit,
                            trapline_scan& scan) {
  constexpr std::size_t kMostDims = 64;
  const trapline_tensor* self = tensor_of(call.also);
  if (self == nullptr || mask.dim > static_cast<std::int32_t>(kMostDims) ||
      self->dim > static_cast<std::int32_t>(kMostDims)) {
    return TRAPLINE_NOT_APPLICABLE;
  }
  std::array<std::int64_t, kMostDims> sizes, strides;
  const auto dims = static_cast<std::size_t>(std::max(mask.dim, self->dim));
  const std::span<std::int64_t> whole{sizes.data(), dims}, steps{strides.data(), dims};
  if (!broadcast_mask(mask, *self, whole, steps)) return TRAPLINE_NOT_APPLICABLE;
  const TensorView view{mask.data, DType::kBool, whole, steps};
  if (view.numel() <= limit) return TRAPLINE_NOT_APPLICABLE;  // whatever the mask holds
  const trapline_verdict verdict = judged(scan_mask(view, limit), 0, limit, scan);
  if (verdict == TRAPLINE_VIOLATED) scan.first = own_position(scan.first, mask, whole);
  return verdict;
}

trapline_verdict check_counts(const Contract& contract, const CallArguments& call,
                              const trapline_tensor& tensor, trapline_scan& scan) {
  // repeat_interleave without output_size reads the sum itself.
  const bool unknown = call.bound == nullptr || call.bound->kind == TRAPLINE_ARG_NONE;
  const std::optional<std::int64_t> sum = unknown ? kUnbounded : bound_of(contract, call, tensor);
  if (!sum || tensor.dim != 1) return TRAPLINE_NOT_APPLICABLE;
  if (*sum == kUnbounded) return check_range(tensor, 0, kUnbounded, std::nullopt, scan);
  return judged(scan_counts(view_of(tensor), *sum, Sum::kExactly), 0, *sum, scan);
}

trapline_verdict check_integers(const Contract& contract, const CallArguments& call,
                                const trapline_tensor& tensor, trapline_scan& scan) {
  if (contract.predicate == Predicate::kCounts) return check_counts(contract, call, tensor, scan);
  const std::optional<std::int64_t> bound = bound_of(contract, call, tensor);
  if (!bound) return TRAPLINE_NOT_APPLICABLE;
  switch (contract.predicate) {
    case Predicate::kEndedIndex:
      return judged(scan_ended_index(view_of(tensor), *bound), 0, *bound, scan);
    case Predicate::kPivots:
      if (call.also != nullptr && call.also->kind == TRAPLINE_ARG_INT && call.also->integer == 0) {
        return TRAPLINE_NOT_APPLICABLE;  // they are not unpacked
      }
      return check_range(tensor, 1, *bound + 1, std::nullopt, scan);
    case Predicate::kEnds:
      if (!lies_along(tensor, contract, call) || !ends_anything(tensor, contract))
        return TRAPLINE_NOT_APPLICABLE;
      return judged(scan_ends(view_of(tensor), *bound), 0, *bound + 1, scan);
    case Predicate::kCompressed: {
      const std::optional<std::int64_t> width = width_of_rows(call);
      if (!width || !ends_anything(tensor, contract)) return TRAPLINE_NOT_APPLICABLE;
      return judged(scan_compressed(view_of(tensor), *bound, *width), 0, *bound + 1, scan);
    }
    case Predicate::kLengths:
      if (!lies_along(tensor, contract, call)) return TRAPLINE_NOT_APPLICABLE;
      return judged(scan_counts(view_of(tensor), *bound, Sum::kAtMost), 0, *bound, scan);
    case Predicate::kMaskCount:
      return check_mask(call, tensor, *bound, scan);
    case Predicate::kPaddedIndex:
      return check_padded(call, tensor, *bound, scan);
    case Predicate::kOffsets:
      if (tensor.dim != 1) return TRAPLINE_NOT_APPLICABLE;
      fill(scan_offsets(view_of(tensor), *bound), scan);
      scan.hi = *bound == kUnbounded ? *bound : *bound + 1;
      return verdict_of(scan);
    case Predicate::kWrappedIndex:
      return check_range(tensor, -*bound, *bound, std::nullopt, scan);
    default:
      break;
  }
  std::optional<std::int64_t> also;
  if (!contract.also_arg.empty() && call.also != nullptr && call.also->kind == TRAPLINE_ARG_INT) {
    also = call.also->integer;
  }
  return check_range(tensor, 0, *bound, also, scan);
}

trapline_verdict check_numbers(const Contract& contract, const CallArguments& call,
                               const trapline_tensor& tensor, trapline_scan& scan) {
  const trapline_tensor* result = tensor_of(call.bound);
  switch (contract.predicate) {
    case Predicate::kFiniteToInteger:
      if (result == nullptr || !fits(Dtypes::kInteger, result->dtype)) return TRAPLINE_NOT_APPLICABLE;
      fill(scan_finite(view_of(tensor)), scan);
      break;
    case Predicate::kProbabilityRows:
      if (tensor.dim != 1 && tensor.dim != 2) return TRAPLINE_NOT_APPLICABLE;
      fill(scan_probability_rows(view_of(tensor)), scan);
      break;
    case Predicate::kNonNegative:
      if (result != nullptr && is_empty(*result)) return TRAPLINE_NOT_APPLICABLE;
      fill(scan_non_negative(view_of(tensor)), scan);
      break;
    default:
      if (result != nullptr && is_empty(*result)) return TRAPLINE_NOT_APPLICABLE;  // nothing is drawn
      fill(scan_interval(view_of(tensor), 0.0, 1.0), scan);
      scan.hi = 1;
      break;
  }
  return verdict_of(scan);
}

}  // namespace

trapline_verdict check_call(const Contract& contract, const CallArguments& call, trapline_scan& scan) {
  if (call.argument == nullptr) return TRAPLINE_NOT_APPLICABLE;
  clear(scan);
  if (contract.predicate == Predicate::kIndexList) return check_index_list(contract, call, scan);
  const trapline_tensor* tensor = tensor_of(call.argument);
  if (tensor == nullptr || !fits(contract.dtypes, tensor->dtype) || !readable(*tensor)) {
    return TRAPLINE_NOT_APPLICABLE;
  }
  if (contract.dtypes == Dtypes::kFloating) return check_numbers(contract, call, *tensor, scan);
  if (contract.predicate == Predicate::kNonNegative) {
    return tensor->dim == 1 ? check_range(*tensor, 0, kUnbounded, std::nullopt, scan)
                            : TRAPLINE_NOT_APPLICABLE;
  }
  return check_integers(contract, call, *tensor, scan);
}

}  // namespace trapline
