// Extremes of any view in one pass, in whatever order of its elements is fastest: SIMD over contiguous runs,
// scalar over the rest. Enough to say that all is well; which element is bad is the reference's to say.
#pragma once

#include <cstddef>
#include <cstdint>

#include "checks/kernels.hpp"
#include "checks/scan_small.hpp"
#include "checks/walk.hpp"

namespace trapline {

inline constexpr std::int64_t kWorthSimd = 24;  // elements in a run, below which the plain loop is faster

// A view as what a sweep needs to know of it: where it starts, and dimensions with positive strides, widest
// first. Repeated elements (stride 0) are left out, negative strides turned round, and neighbours merged:
// every contiguous, transposed, flipped or expanded tensor becomes one run.
struct SweepLayout {
  std::int64_t start = 0;  // offset in elements
  Layout layout;

  explicit SweepLayout(const TensorView& view) {
    Layout sorted;
    for (std::size_t d = 0; d < view.sizes.size(); ++d) {
      const std::int64_t size = view.sizes[d];
      std::int64_t stride = view.strides[d];
      if (size == 1 || stride == 0) continue;
      if (stride < 0) {
        start += (size - 1) * stride;
        stride = -stride;
      }
      std::size_t at = sorted.dims++;
      for (; at > 0 && sorted.stride[at - 1] < stride; --at) {
        sorted.stride[at] = sorted.stride[at - 1];
        sorted.size[at] = sorted.size[at - 1];
      }
      sorted.stride[at] = stride;
      sorted.size[at] = size;
    }
    for (std::size_t d = 0; d < sorted.dims; ++d) push(layout, sorted.size[d], sorted.stride[d]);
  }
};

// The SIMD kernel's and the scalar loop's common answer.
template <class T>
struct Sweep {
  T min{}, max{};
  bool bad = false;
  bool empty = true;

  void add(T low, T high, bool rejected) {
    min = empty || low < min ? low : min;
    max = empty || high > max ? high : max;
    bad |= rejected;
    empty = false;
  }
};

// Calls add_run(sweep, data, n, stride) for the runs of the view and returns the sweep. The view must not be
// empty.
template <class T, class Value, class AddRun>
Sweep<Value> sweep_view(const TensorView& view, AddRun&& add_run) {
  const SweepLayout order(view);
  const T* data = static_cast<const T*>(view.data) + order.start;
  Sweep<Value> sweep;
  const std::size_t dims = order.layout.dims;
  const std::int64_t n = dims == 0 ? 1 : order.layout.size[dims - 1];
  const std::int64_t stride = dims == 0 ? 1 : order.layout.stride[dims - 1];
  for_each_offset(order.layout, dims == 0 ? 0 : dims - 1, [&](std::int64_t offset) {
    add_run(sweep, data + offset, n, stride);
    return true;
  });
  return sweep;
}

}  // namespace trapline
