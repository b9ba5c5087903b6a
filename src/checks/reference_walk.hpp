// The loops of the scalar reference: every element in row-major order, and what a scan keeps of the bad ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "checks/reason.hpp"
#include "checks/scan_result.hpp"
#include "checks/walk.hpp"
#include "core/tensor_view.hpp"

namespace trapline::reference {

// Calls visit(position, value) for every element in row-major order.
template <class T, class Visit>
void for_each_element(const TensorView& view, Visit&& visit) {
  const T* data = static_cast<const T*>(view.data);
  const Layout layout = row_major_layout(view, view.sizes.size());
  std::int64_t position = 0;
  for_each_offset(layout, layout.dims, [&](std::int64_t offset) {
    visit(position++, widen(load(data + offset)));
    return true;
  });
}

template <class Scan, class Value>
void record(Scan& scan, std::int64_t position, Value value, Reason reason) {
  if (reason == Reason::kNone) return;
  if (scan.bad++ > 0) return;
  scan.first = position;
  scan.value = value;
  scan.reason = reason;
}

// judge(position, value) is called once per element, in order.
template <class Judge>
IntScan scan_integers(const TensorView& view, Judge&& judge) {
  IntScan scan;
  scan.total = view.numel();
  if (scan.total == 0 || is_floating(view.dtype)) return scan;
  with_type(view.dtype, [&](auto tag) {
    if constexpr (std::is_same_v<decltype(widen(tag)), std::int64_t>) {
      for_each_element<decltype(tag)>(view, [&](std::int64_t position, std::int64_t value) {
        scan.min = position == 0 ? value : std::min(scan.min, value);
        scan.max = position == 0 ? value : std::max(scan.max, value);
        record(scan, position, value, judge(position, value));
      });
    }
  });
  return scan;
}

}  // namespace trapline::reference
