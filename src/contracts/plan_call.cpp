#include "contracts/plan_call.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "checks/reason.hpp"
#include "checks/walk.hpp"
#include "core/tensor_view.hpp"

namespace trapline {
namespace {

// The checks of one call while they are gathered.
struct Plan {
  std::span<trapline_device_check> checks;
  int& count;

  // Room for one more, already described as far as the tensor says it; null: no room, or too many dimensions
  // that do not merge.
  trapline_device_check* add(const trapline_tensor& tensor, Predicate predicate) const {
    if (static_cast<std::size_t>(count) == checks.size() ||
        static_cast<std::size_t>(tensor.dim) > Layout::kMax) {
      return nullptr;
    }
    const auto dims = static_cast<std::size_t>(tensor.dim);
    const TensorView view{
        tensor.data, static_cast<DType>(tensor.dtype), {tensor.sizes, dims}, {tensor.strides, dims}};
    const Layout layout = row_major_layout(view, dims);
    if (layout.dims > TRAPLINE_DEVICE_DIMS) return nullptr;
    trapline_device_check& check = checks[static_cast<std::size_t>(count)];
    check = {};
    check.predicate = static_cast<std::int32_t>(predicate);
    check.dtype = tensor.dtype;
    check.list_position = -1;
    check.dim = static_cast<std::int32_t>(layout.dims);
    for (std::size_t d = 0; d < layout.dims; ++d) {
      check.sizes[d] = layout.size[d];
      check.strides[d] = layout.stride[d];
    }
    check.numel = numel(tensor);
    check.last_dim = dims == 0 ? 1 : tensor.sizes[dims - 1];
    check.data = tensor.data;
    ++count;
    return &check;
  }

  trapline_plan_verdict verdict() const { return count > 0 ? TRAPLINE_PLAN_CHECK : TRAPLINE_PLAN_NOTHING; }
};

// Every value of the dtype is in [lo, hi).
bool holds_all(std::int32_t dtype, std::int64_t lo, std::int64_t hi) {
  switch (dtype) {
    case TRAPLINE_BOOL:
      return lo <= 0 && hi > 1;
    case TRAPLINE_UINT8:
      return lo <= 0 && hi > std::numeric_limits<std::uint8_t>::max();
    case TRAPLINE_INT8:
      return lo <= std::numeric_limits<std::int8_t>::min() && hi > std::numeric_limits<std::int8_t>::max();
    default:
      return false;
  }
}

bool can_hold(std::int32_t dtype, std::int64_t value) {
  switch (dtype) {
    case TRAPLINE_BOOL:
      return value == 0 || value == 1;
    case TRAPLINE_UINT8:
      return value == static_cast<std::uint8_t>(value);
    case TRAPLINE_INT8:
      return value == static_cast<std::int8_t>(value);
    case TRAPLINE_INT16:
      return value == static_cast<std::int16_t>(value);
    case TRAPLINE_INT32:
      return value == static_cast<std::int32_t>(value);
    default:
      return true;
  }
}

// No integer is in an empty range, so every element is bad, whatever it is.
trapline_plan_verdict all_bad(const trapline_tensor& tensor, std::int64_t lo, std::int64_t hi,
                              std::optional<std::int64_t> also, trapline_scan& scan) {
  scan.bad = scan.total = numel(tensor);
  scan.first = 0;
  scan.lo = lo;
  scan.hi = hi;
  scan.has_also = also ? 1 : 0;
  scan.also = also.value_or(0);
  scan.reason = static_cast<std::int32_t>(Reason::kAbove);
  return TRAPLINE_PLAN_VIOLATED;
}

trapline_plan_verdict plan_range(const Plan& plan, const trapline_tensor& tensor, Predicate predicate,
                                 std::int64_t lo, std::int64_t hi, std::optional<std::int64_t> also,
                                 trapline_scan& scan) {
  if (is_empty(tensor) || holds_all(tensor.dtype, lo, hi)) return TRAPLINE_PLAN_NOTHING;
  if (hi <= lo && !(also && can_hold(tensor.dtype, *also))) return all_bad(tensor, lo, hi, also, scan);
  if (trapline_device_check* check = plan.add(tensor, predicate)) {
    check->heal = TRAPLINE_HEAL_ELEMENT;
    check->lo = lo;
    check->hi = hi;
    check->has_also = also ? 1 : 0;
    check->also = also.value_or(0);
  }
  return plan.verdict();
}

// As check_index_list: one wrapped index per integer tensor.
trapline_plan_verdict plan_index_list(const Contract& contract, const CallArguments& call, const Plan& plan) {
  const trapline_tensor* bound = tensor_of(call.bound);
  if (bound == nullptr || call.argument->kind != TRAPLINE_ARG_LIST || is_empty(*bound)) {
    return TRAPLINE_PLAN_NOTHING;
  }
  for (std::int32_t i = 0; i < call.argument->list_size; ++i) {
    const trapline_tensor& index = call.argument->list[i];
    if (index.dim > 0 && is_empty(index)) return TRAPLINE_PLAN_NOTHING;
  }
  std::int32_t dimension = 0;
  for (std::int32_t i = 0; i < call.argument->list_size; ++i) {
    const trapline_tensor& index = call.argument->list[i];
    if (index.dim < 0) {
      ++dimension;
      continue;
    }
    if (index.dtype == TRAPLINE_BOOL || index.dtype == TRAPLINE_UINT8) {
      dimension += index.dim;
      continue;
    }
    if (dimension >= bound->dim || !fits(contract.dtypes, index.dtype)) {
      plan.count = 0;  // a host error is due: then no kernel of the operation runs
      return TRAPLINE_PLAN_NOTHING;
    }
    const std::int64_t size = bound->sizes[dimension++];
    if (trapline_device_check* check = plan.add(index, Predicate::kWrappedIndex)) {
      check->heal = TRAPLINE_HEAL_ELEMENT;
      check->list_position = i;
      check->lo = -size;
      check->hi = size;
    }
  }
  return plan.verdict();
}

// ctc_loss with the lengths in host memory: what can be decided is decided here.
trapline_plan_verdict plan_padded_by_list(const Plan& plan, const trapline_arg& lengths,
                                          const trapline_tensor& targets, std::int64_t hi,
                                          trapline_scan& scan) {
  const std::int64_t rows = lengths.tensor.dim;
  const std::int64_t width = targets.dim == 2 ? targets.sizes[1] : numel(targets);
  if (targets.dim == 2 && rows != targets.sizes[0]) return TRAPLINE_PLAN_NOTHING;
  bool full = true;
  std::int64_t sum = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t length = lengths.tensor.sizes[row];
    if (length < 0 || length > width) return TRAPLINE_PLAN_NOTHING;
    full = full && length == width;
    sum += length;
  }
  if (targets.dim == 1 && sum != width) return TRAPLINE_PLAN_NOTHING;
  if (targets.dim == 1 || full) {  // no padding: an index like any other
    return plan_range(plan, targets, Predicate::kIndex, 0, hi, std::nullopt, scan);
  }
  if (sum == 0 || hi == 0) return TRAPLINE_PLAN_NOTHING;
  if (trapline_device_check* check = plan.add(targets, Predicate::kPaddedIndex)) {
    check->heal = TRAPLINE_HEAL_ELEMENT;
    check->hi = hi;
    check->lengths_count = rows;  // `lengths` stays NULL: the caller copies the list to the device
  }
  return plan.verdict();
}

trapline_plan_verdict plan_padded(const CallArguments& call, const Plan& plan, const trapline_tensor& targets,
                                  std::int64_t hi, trapline_scan& scan) {
  if (call.also == nullptr || is_empty(targets) || (targets.dim != 1 && targets.dim != 2)) {
    return TRAPLINE_PLAN_NOTHING;
  }
  if (call.also->kind == TRAPLINE_ARG_SIZES) return plan_padded_by_list(plan, *call.also, targets, hi, scan);
  const trapline_tensor* lengths = tensor_of(call.also);
  if (lengths == nullptr || lengths->dim != 1 || lengths->dtype != TRAPLINE_INT64 || is_empty(*lengths) ||
      (lengths->sizes[0] > 1 && lengths->strides[0] != 1) || hi == 0 ||
      (targets.dim == 2 && lengths->sizes[0] != targets.sizes[0])) {
    return TRAPLINE_PLAN_NOTHING;
  }
  if (trapline_device_check* check = plan.add(targets, Predicate::kPaddedIndex)) {
    check->heal = TRAPLINE_HEAL_ELEMENT;
    check->hi = hi;
    check->lengths = lengths->data;
    check->lengths_count = lengths->sizes[0];
    if (targets.dim == 1) check->last_dim = 0;  // all labels in one row
  }
  return plan.verdict();
}

// A device looks at such a row with one thread, so a longer one is only checked element by element.
constexpr std::int64_t kLongestRow = 4096;

// Elements that are judged together with those before them in their row. False: the rows are too long.
bool plan_in_order(const Plan& plan, const trapline_tensor& tensor, Predicate predicate, std::int32_t heal,
                   std::int64_t hi) {
  if (tensor.dim > 0 && tensor.sizes[tensor.dim - 1] > kLongestRow) return false;
  if (is_empty(tensor)) return true;
  if (trapline_device_check* check = plan.add(tensor, predicate)) {
    check->heal = heal;
    check->hi = hi;
  }
  return true;
}

// Counts are summed up: with one of them changed the sum no longer fits the result. In rows that are too long
// the sum is not looked at.
trapline_plan_verdict plan_counts(const Plan& plan, const trapline_tensor& tensor, std::int64_t hi,
                                  trapline_scan& scan) {
  if (tensor.dim < 1) return TRAPLINE_PLAN_NOTHING;
  const auto verdict = plan_range(plan, tensor, Predicate::kIndex, 0, hi, std::nullopt, scan);
  if (verdict == TRAPLINE_PLAN_CHECK) plan.checks.front().heal = TRAPLINE_HEAL_NONE;
  return verdict;
}

trapline_plan_verdict plan_sum(const Contract& contract, const CallArguments& call, const Plan& plan,
                               const trapline_tensor& tensor, trapline_scan& scan) {
  const bool unknown = call.bound == nullptr || call.bound->kind == TRAPLINE_ARG_NONE;
  const std::optional<std::int64_t> sum = unknown ? kUnbounded : bound_of(contract, call, tensor);
  if (!sum || tensor.dim != 1) return TRAPLINE_PLAN_NOTHING;
  if (*sum == kUnbounded || !plan_in_order(plan, tensor, Predicate::kCounts, TRAPLINE_HEAL_NONE, *sum)) {
    return plan_counts(plan, tensor, kUnbounded, scan);
  }
  return plan.verdict();
}

// Counted in the mask's own shape; the dimensions in which it is repeated say how often each element counts.
trapline_plan_verdict plan_mask(const CallArguments& call, const Plan& plan, const trapline_tensor& mask,
                                std::int64_t limit) {
  const trapline_tensor* self = tensor_of(call.also);
  if (self == nullptr) return TRAPLINE_PLAN_NOTHING;
  const std::int32_t dims = std::max(mask.dim, self->dim);
  if (dims > TRAPLINE_DEVICE_DIMS) return TRAPLINE_PLAN_NOTHING;
  std::int64_t sizes[TRAPLINE_DEVICE_DIMS], strides[TRAPLINE_DEVICE_DIMS];
  const auto count = static_cast<std::size_t>(dims);
  if (!broadcast_mask(mask, *self, {sizes, count}, {strides, count})) return TRAPLINE_PLAN_NOTHING;
  std::int64_t all = 1;
  std::int32_t repeated = 0;
  for (std::int32_t d = 0; d < dims; ++d) {
    const std::int32_t own = d - (dims - mask.dim);
    all *= sizes[d];
    if (sizes[d] != (own < 0 ? 1 : mask.sizes[own])) repeated |= 1 << d;
  }
  if (all <= limit) return TRAPLINE_PLAN_NOTHING;  // whatever the mask holds
  if (trapline_device_check* check = plan.add(mask, Predicate::kMaskCount)) {
    check->heal = TRAPLINE_HEAL_ALL;
    check->hi = limit;
    if (repeated == 0) return plan.verdict();
    check->repeated = repeated;
    check->dim = dims;
    std::copy_n(sizes, count, check->sizes);
    std::copy_n(strides, count, check->strides);
  }
  return plan.verdict();
}

trapline_plan_verdict plan_integers(const Contract& contract, const CallArguments& call, const Plan& plan,
                                    const trapline_tensor& tensor, trapline_scan& scan) {
  if (contract.predicate == Predicate::kCounts) return plan_sum(contract, call, plan, tensor, scan);
  const std::optional<std::int64_t> bound = bound_of(contract, call, tensor);
  if (!bound) return TRAPLINE_PLAN_NOTHING;
  std::optional<std::int64_t> also;
  switch (contract.predicate) {
    case Predicate::kPaddedIndex:
      return plan_padded(call, plan, tensor, *bound, scan);
    case Predicate::kOffsets:
      if (tensor.dim != 1 || is_empty(tensor)) return TRAPLINE_PLAN_NOTHING;
      if (trapline_device_check* check = plan.add(tensor, Predicate::kOffsets)) {
        check->heal = TRAPLINE_HEAL_ALL;
        check->hi = *bound == kUnbounded ? *bound : *bound + 1;
      }
      return plan.verdict();
    case Predicate::kWrappedIndex:
      return plan_range(plan, tensor, Predicate::kWrappedIndex, -*bound, *bound, std::nullopt, scan);
    case Predicate::kPivots:
      if (call.also != nullptr && call.also->kind == TRAPLINE_ARG_INT && call.also->integer == 0) {
        return TRAPLINE_PLAN_NOTHING;
      }
      return plan_range(plan, tensor, Predicate::kIndex, 1, *bound + 1, std::nullopt, scan);
    case Predicate::kEnds:
      if (!lies_along(tensor, contract, call) || !ends_anything(tensor, contract))
        return TRAPLINE_PLAN_NOTHING;
      if (plan_in_order(plan, tensor, Predicate::kEnds, TRAPLINE_HEAL_ALL, *bound + 1)) return plan.verdict();
      return plan_range(plan, tensor, Predicate::kIndex, 0, *bound + 1, std::nullopt, scan);
    case Predicate::kCompressed:
      also = width_of_rows(call);
      if (!also || !ends_anything(tensor, contract) || is_empty(tensor)) return TRAPLINE_PLAN_NOTHING;
      if (trapline_device_check* check = plan.add(tensor, Predicate::kCompressed)) {
        check->heal = TRAPLINE_HEAL_NONE;
        check->hi = *bound + 1;
        check->also = *also;  // no value that is allowed besides: has_also stays 0
      }
      return plan.verdict();
    case Predicate::kLengths:
      if (!lies_along(tensor, contract, call)) return TRAPLINE_PLAN_NOTHING;
      if (plan_in_order(plan, tensor, Predicate::kLengths, TRAPLINE_HEAL_NONE, *bound)) return plan.verdict();
      return plan_counts(plan, tensor, *bound + 1, scan);
    case Predicate::kIndex:
      if (!contract.also_arg.empty() && call.also != nullptr && call.also->kind == TRAPLINE_ARG_INT) {
        also = call.also->integer;
      }
      return plan_range(plan, tensor, Predicate::kIndex, 0, *bound, also, scan);
    case Predicate::kEndedIndex:
      if (*bound > 0) plan_in_order(plan, tensor, Predicate::kEndedIndex, TRAPLINE_HEAL_ELEMENT, *bound);
      return plan.verdict();
    case Predicate::kMaskCount:
      return plan_mask(call, plan, tensor, *bound);
    default:
      return TRAPLINE_PLAN_NOTHING;
  }
}

trapline_plan_verdict plan_numbers(const Contract& contract, const CallArguments& call, const Plan& plan,
                                   const trapline_tensor& tensor) {
  const trapline_tensor* result = tensor_of(call.bound);
  std::int32_t heal = TRAPLINE_HEAL_ELEMENT;
  std::int64_t hi = 0;
  switch (contract.predicate) {
    case Predicate::kFiniteToInteger:
      if (result == nullptr || !fits(Dtypes::kInteger, result->dtype)) return TRAPLINE_PLAN_NOTHING;
      heal = TRAPLINE_HEAL_REPORT;
      break;
    case Predicate::kProbabilityRows:
      if (tensor.dim != 1 && tensor.dim != 2) return TRAPLINE_PLAN_NOTHING;
      heal = TRAPLINE_HEAL_ROW;
      break;
    case Predicate::kNonNegative:
      if (result != nullptr && is_empty(*result)) return TRAPLINE_PLAN_NOTHING;
      break;
    case Predicate::kUnitInterval:
      if (result != nullptr && is_empty(*result)) return TRAPLINE_PLAN_NOTHING;  // nothing is drawn
      hi = 1;
      break;
    default:
      return TRAPLINE_PLAN_NOTHING;
  }
  if (is_empty(tensor)) return TRAPLINE_PLAN_NOTHING;
  if (trapline_device_check* check = plan.add(tensor, contract.predicate)) {
    check->heal = heal;
    check->hi = hi;
  }
  return plan.verdict();
}

trapline_plan_verdict plan_row(const Contract& contract, const CallArguments& call, const Plan& plan,
                               trapline_scan& scan) {
  if (contract.predicate == Predicate::kIndexList) return plan_index_list(contract, call, plan);
  const trapline_tensor* tensor = tensor_of(call.argument);
  if (tensor == nullptr || !fits(contract.dtypes, tensor->dtype)) return TRAPLINE_PLAN_NOTHING;
  if (contract.dtypes == Dtypes::kFloating) return plan_numbers(contract, call, plan, *tensor);
  if (contract.predicate == Predicate::kNonNegative) {
    return tensor->dim == 1 ? plan_counts(plan, *tensor, kUnbounded, scan) : TRAPLINE_PLAN_NOTHING;
  }
  return plan_integers(contract, call, plan, *tensor, scan);
}

}  // namespace

trapline_plan_verdict plan_call(const Contract& contract, const CallArguments& call,
                                std::span<trapline_device_check> checks, int& count, trapline_scan& scan) {
  count = 0;
  scan = {};
  scan.first = scan.list_position = -1;
  if (call.argument == nullptr) return TRAPLINE_PLAN_NOTHING;
  const trapline_plan_verdict verdict = plan_row(contract, call, Plan{checks, count}, scan);
  if (contract.waits) {
    for (trapline_device_check& check : checks.first(static_cast<std::size_t>(count))) {
      check.heal = TRAPLINE_HEAL_NONE;
    }
  }
  return verdict;
}

}  // namespace trapline
