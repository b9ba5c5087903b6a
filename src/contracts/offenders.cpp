#include "contracts/offenders.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "checks/element.hpp"
#include "checks/reference_walk.hpp"
#include "checks/walk.hpp"

namespace trapline {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 24;  // looked at for the distinct bad values

bool is_bad(Predicate predicate, const trapline_scan& scan, std::int64_t value) {
  switch (predicate) {
    case Predicate::kUnitInterval:
      return value < 0 || value > 1;
    case Predicate::kNonNegative:
    case Predicate::kProbabilityRows:
      return value < 0;
    case Predicate::kCounts:
    case Predicate::kLengths:
      return element::count(value, scan.hi) != Reason::kNone;
    default:
      return element::index(value, scan.lo, scan.hi) != Reason::kNone &&
             !(scan.has_also != 0 && value == scan.also) &&
             !(predicate == Predicate::kEndedIndex && value == -1);  // ends a row
  }
}

bool is_bad(Predicate predicate, const trapline_scan& /*scan*/, double value) {
  switch (predicate) {
    case Predicate::kUnitInterval:
      return element::interval(value, 0.0, 1.0) != Reason::kNone;
    case Predicate::kNonNegative:
      return element::non_negative(value) != Reason::kNone;
    case Predicate::kProbabilityRows:
      return element::probability(value) != Reason::kNone;
    default:
      return element::finite(value) != Reason::kNone;
  }
}

bool is_for_numbers(Predicate predicate) { return info(predicate).judged == Judged::kNumber; }

bool applies(Predicate predicate, const trapline_scan& scan, bool floating, trapline_offenders_kind kind) {
  switch (info(predicate).judged) {
    case Judged::kNumber: {
      if (!floating && predicate == Predicate::kFiniteToInteger) return false;
      const bool rows_only =
          predicate == Predicate::kProbabilityRows && scan.reason == TRAPLINE_REASON_ZERO_SUM;
      return kind == TRAPLINE_OFFENDERS_HEALED || !rows_only;
    }
    case Judged::kRange:
      return !floating;
    case Judged::kOrder:
    case Judged::kSum:
      return !floating && kind == TRAPLINE_OFFENDERS_ELEMENTS;
    case Judged::kWhole:
      return false;
  }
  return false;
}

std::int64_t row_length(const TensorView& tensor) { return tensor.sizes.empty() ? 1 : tensor.sizes.back(); }

// Calls visit(position, value) in row-major order.
template <class T, class Visit>
void for_each(const TensorView& tensor, const Visit& visit) {
  const std::int64_t count = tensor.numel();
  if (count == 0) return;
  if (!tensor.is_contiguous()) return reference::for_each_element<T>(tensor, visit);
  const T* data = static_cast<const T*>(tensor.data);
  for (std::int64_t i = 0; i < count; ++i) visit(i, widen(load(data + i)));
}

template <class T>
void mark(Predicate predicate, const trapline_scan& scan, const TensorView& tensor, std::uint8_t* mask) {
  for_each<T>(tensor, [&](std::int64_t position, auto value) {
    mask[position] = is_bad(predicate, scan, value) ? 1 : 0;
  });
}

// A row of probabilities without a positive one sums to nothing: it is bad as a whole.
template <class T>
void mark_empty_rows(const TensorView& tensor, std::uint8_t* mask) {
  const std::int64_t length = row_length(tensor);
  bool positive = false;
  for_each<T>(tensor, [&](std::int64_t position, auto value) {
    const std::int64_t column = position % length;
    positive = (column != 0 && positive) || value > 0;
    if (column == length - 1 && !positive)
      std::memset(mask + (position - column), 1, static_cast<std::size_t>(length));
  });
}

template <class T>
T made(std::int64_t value) {
  if constexpr (std::is_same_v<T, Bool>) {
    return {static_cast<std::uint8_t>(value)};
  } else if constexpr (std::is_same_v<T, Float16>) {
    return {static_cast<std::uint16_t>(value == 0 ? 0 : 0x3C00)};  // 0 or 1
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return {static_cast<std::uint16_t>(value == 0 ? 0 : 0x3F80)};
  } else {
    return static_cast<T>(value);
  }
}

// What takes the place of a bad value.
template <class Value>
std::int64_t harmless(Predicate predicate, const trapline_scan& scan, Value value) {
  if (predicate == Predicate::kProbabilityRows) return 1;
  if (predicate == Predicate::kUnitInterval) return value > 0 ? 1 : 0;  // NaN: 0
  if (is_for_numbers(predicate)) return 0;
  if constexpr (std::is_same_v<Value, std::int64_t>) return std::clamp(value, scan.lo, scan.hi - 1);
  return 0;
}

// A row with a bad probability becomes a row of equal ones.
void widen_to_rows(std::vector<std::uint8_t>& mask, std::int64_t length) {
  for (auto row = mask.begin(); row != mask.end(); row += length) {
    if (std::find(row, row + length, 1) != row + length) std::fill(row, row + length, 1);
  }
}

template <class T>
void copy_contiguous(const TensorView& tensor, T* copy) {
  const T* data = static_cast<const T*>(tensor.data);
  if (tensor.is_contiguous()) {
    std::memcpy(static_cast<void*>(copy), data, static_cast<std::size_t>(tensor.numel()) * sizeof(T));
    return;
  }
  const Layout layout = row_major_layout(tensor, tensor.sizes.size());
  for_each_offset(layout, layout.dims, [&](std::int64_t offset) {
    std::memcpy(static_cast<void*>(copy++), data + offset, sizeof(T));
    return true;
  });
}

template <class T>
void replace_bad(Predicate predicate, const trapline_scan& scan, const std::vector<std::uint8_t>& mask,
                 T* elements) {
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] == 0) continue;
    const T value = made<T>(harmless(predicate, scan, widen(load(elements + i))));
    std::memcpy(static_cast<void*>(elements + i), &value, sizeof value);
  }
}

// Counts runs of equal values in ascending order.
template <class Value>
void count_runs(std::vector<Value>& found, std::vector<trapline_value>& out) {
  std::ranges::sort(found);
  for (auto at = found.begin(); at != found.end();) {
    const auto next = std::find_if(at, found.end(), [&](Value value) { return value != *at; });
    trapline_value value{};
    value.count = next - at;
    if constexpr (std::is_same_v<Value, double>) {
      value.fvalue = *at;
    } else {
      value.ivalue = *at;
    }
    out.push_back(value);
    at = next;
  }
}

template <class T>
std::vector<trapline_value> count_bad(const TensorView& tensor, const std::vector<std::uint8_t>& mask) {
  using Value = decltype(widen(T{}));
  std::vector<Value> found;
  std::vector<trapline_value> out;
  trapline_value nans{};
  for_each<T>(tensor, [&](std::int64_t position, Value value) {
    if (mask[static_cast<std::size_t>(position)] == 0) return;
    if (element::is_nan(value)) {
      nans.fvalue = static_cast<double>(value);
      ++nans.count;
    } else {
      found.push_back(value);
    }
  });
  if (nans.count > 0) out.push_back(nans);
  count_runs(found, out);
  std::ranges::stable_sort(out, std::ranges::greater{}, &trapline_value::count);
  return out;
}

}  // namespace

bool can_read(const trapline_tensor& tensor) {
  if (tensor.dim < 0 || tensor.dim > 62 || tensor.dtype < TRAPLINE_BOOL || tensor.dtype > TRAPLINE_FLOAT64)
    return false;
  const bool empty =
      std::any_of(tensor.sizes, tensor.sizes + tensor.dim, [](auto size) { return size == 0; });
  return tensor.data != nullptr || empty;
}

bool mark_offenders(Predicate predicate, const trapline_scan& scan, const TensorView& tensor,
                    trapline_offenders_kind kind, std::uint8_t* mask) {
  if (kind == TRAPLINE_OFFENDERS_HEALED && info(predicate).heal == Heal::kAll) {
    std::fill_n(mask, tensor.numel(), std::uint8_t{1});
    return true;
  }
  if (!applies(predicate, scan, is_floating(tensor.dtype), kind)) return false;
  const bool rows = kind == TRAPLINE_OFFENDERS_HEALED && predicate == Predicate::kProbabilityRows;
  with_type(tensor.dtype, [&](auto type) {
    mark<decltype(type)>(predicate, scan, tensor, mask);
    if (rows) mark_empty_rows<decltype(type)>(tensor, mask);
  });
  return true;
}

std::size_t bad_values(Predicate predicate, const trapline_scan& scan, const TensorView& tensor,
                       std::span<trapline_value> values) {
  if (tensor.numel() > kMaxElements) return 0;
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(tensor.numel()));
  if (!mark_offenders(predicate, scan, tensor, TRAPLINE_OFFENDERS_ELEMENTS, mask.data())) return 0;
  // Else the scan counts something else than single elements, such as rows.
  if (std::ranges::count(mask, 1) != scan.bad) return 0;
  const std::vector<trapline_value> found =
      with_type(tensor.dtype, [&](auto type) { return count_bad<decltype(type)>(tensor, mask); });
  const std::size_t count = std::min(found.size(), values.size());
  std::copy_n(found.begin(), count, values.begin());
  return count;
}

bool heal_copy(Predicate predicate, const trapline_scan& scan, const TensorView& tensor, void* healed) {
  const auto count = static_cast<std::size_t>(tensor.numel());
  if (info(predicate).heal == Heal::kAll) {
    if (count > 0) std::memset(healed, 0, count * size_of(tensor.dtype));
    return true;
  }
  if (info(predicate).judged == Judged::kRange && scan.lo >= scan.hi) return false;
  std::vector<std::uint8_t> mask(count);
  if (!mark_offenders(predicate, scan, tensor, TRAPLINE_OFFENDERS_HEALED, mask.data())) return false;
  if (count == 0) return true;
  if (predicate == Predicate::kProbabilityRows) widen_to_rows(mask, row_length(tensor));
  with_type(tensor.dtype, [&](auto type) {
    using T = decltype(type);
    auto* elements = static_cast<T*>(healed);
    copy_contiguous(tensor, elements);
    replace_bad(predicate, scan, mask, elements);
  });
  return true;
}

}  // namespace trapline
