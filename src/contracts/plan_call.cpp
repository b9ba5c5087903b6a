#include "contracts/plan_call.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "checks/reason.hpp"
#include "checks/walk.hpp"
#include "contracts/resolve.hpp"
#include "core/tensor_view.hpp"

namespace trapline {
namespace {

// The checks of one call while they are gathered.
struct Plan {
  std::span<trapline_device_check> checks;
  int& count;

  // Room for one more, already described as far as the tensor says it; null: no room, or too many dimensions
  // that do not merge.
  trapline_device_check* add(const Demand& demand) const {
    const trapline_tensor& tensor = *demand.tensor;
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
    check.predicate = static_cast<std::int32_t>(demand.predicate);
    check.dtype = tensor.dtype;
    check.heal = static_cast<std::int32_t>(demand.heal);
    check.list_position = demand.list_position;
    check.has_also = demand.has_also ? 1 : 0;
    check.lo = demand.lo;
    check.hi = demand.hi;
    check.also = demand.also;
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
trapline_plan_verdict all_bad(const Demand& demand, trapline_scan& scan) {
  scan.bad = scan.total = numel(*demand.tensor);
  scan.first = 0;
  scan.lo = demand.lo;
  scan.hi = demand.hi;
  scan.has_also = demand.has_also ? 1 : 0;
  scan.also = demand.has_also ? demand.also : 0;
  scan.list_position = demand.list_position;
  scan.reason = static_cast<std::int32_t>(Reason::kAbove);
  return TRAPLINE_PLAN_VIOLATED;
}

// A device looks at such a row with one thread, so a longer one is only checked element by element.
constexpr std::int64_t kMaxRow = 4096;

// What is still demanded of each element when the order in its row is not looked at; nullopt: nothing.
std::optional<Demand> without_order(Demand demand) {
  switch (demand.predicate) {
    case Predicate::kEnds:
      demand.heal = Heal::kElement;
      break;
    case Predicate::kCounts:
      demand.hi = kUnbounded;
      break;
    case Predicate::kLengths:
      ++demand.hi;
      break;
    default:
      return std::nullopt;
  }
  demand.predicate = Predicate::kIndex;
  return demand;
}

bool has_row_of_one_thread(Predicate predicate) {
  return predicate == Predicate::kEnds || predicate == Predicate::kCounts ||
         predicate == Predicate::kLengths || predicate == Predicate::kEndedIndex;
}

// Lengths that a kernel can read.
bool is_dense(const trapline_tensor& lengths) {
  return lengths.dtype == TRAPLINE_INT64 && (lengths.sizes[0] == 1 || lengths.strides[0] == 1);
}

void add_padded(const Plan& plan, const Demand& demand) {
  const bool listed = demand.with->kind == TRAPLINE_ARG_SIZES;
  const trapline_tensor& lengths = demand.with->tensor;
  if (!listed && (is_empty(lengths) || !is_dense(lengths))) return;
  if (trapline_device_check* check = plan.add(demand)) {
    // Of a list they stay NULL: the caller copies it to the device.
    check->lengths = listed ? nullptr : lengths.data;
    check->lengths_count = listed ? lengths.dim : lengths.sizes[0];
    if (demand.tensor->dim == 1) check->last_dim = 0;  // all labels in one row
  }
}

// Counted in the mask's own shape; the dimensions in which it is repeated say how often each element counts.
void add_mask(const Plan& plan, const Demand& demand) {
  const trapline_tensor& mask = *demand.tensor;
  const trapline_tensor& self = demand.with->tensor;
  const std::int32_t dims = std::max(mask.dim, self.dim);
  if (dims > TRAPLINE_DEVICE_DIMS) return;
  std::int64_t sizes[TRAPLINE_DEVICE_DIMS], strides[TRAPLINE_DEVICE_DIMS];
  const auto count = static_cast<std::size_t>(dims);
  broadcast_mask(mask, self, {sizes, count}, {strides, count});
  std::int32_t repeated = 0;
  for (std::int32_t d = 0; d < dims; ++d) {
    const std::int32_t own = d - (dims - mask.dim);
    if (sizes[d] != (own < 0 ? 1 : mask.sizes[own])) repeated |= 1 << d;
  }
  trapline_device_check* check = plan.add(demand);
  if (check == nullptr || repeated == 0) return;
  check->repeated = repeated;
  check->dim = dims;
  std::copy_n(sizes, count, check->sizes);
  std::copy_n(strides, count, check->strides);
}

// True: known to be violated.
bool add(const Plan& plan, const Demand& demand) {
  const trapline_tensor& tensor = *demand.tensor;
  if (is_empty(tensor)) return false;
  switch (demand.predicate) {
    case Predicate::kIndex:
    case Predicate::kWrappedIndex:
      if (holds_all(tensor.dtype, demand.lo, demand.hi)) return false;
      if (demand.hi <= demand.lo && !(demand.has_also && can_hold(tensor.dtype, demand.also))) return true;
      break;
    case Predicate::kPaddedIndex:
      add_padded(plan, demand);
      return false;
    case Predicate::kMaskCount:
      add_mask(plan, demand);
      return false;
    default:
      if (!has_row_of_one_thread(demand.predicate)) break;
      if (tensor.dim > 0 && tensor.sizes[tensor.dim - 1] > kMaxRow) {
        const std::optional<Demand> weaker = without_order(demand);
        return weaker && add(plan, *weaker);
      }
  }
  plan.add(demand);
  return false;
}

}  // namespace

trapline_plan_verdict plan_call(const Contract& contract, const CallArguments& call,
                                std::span<trapline_device_check> checks, int& count, trapline_scan& scan) {
  count = 0;
  scan = {};
  scan.first = scan.list_position = -1;
  std::array<Demand, kMaxDemands> room;
  const Plan plan{checks, count};
  for (const Demand& demand : resolve(contract, call, room)) {
    if (add(plan, demand)) return all_bad(demand, scan);
  }
  return count > 0 ? TRAPLINE_PLAN_CHECK : TRAPLINE_PLAN_NOTHING;
}

}  // namespace trapline
