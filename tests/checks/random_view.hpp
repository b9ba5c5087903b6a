// Random tensor views for the differential test: any dtype, shape, stride, alignment, with good and bad
// elements.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "checks/walk.hpp"
#include "core/tensor_view.hpp"

namespace trapline::testing {

using Random = std::mt19937_64;

inline std::int64_t between(Random& random, std::int64_t lo, std::int64_t hi) {  // inclusive
  return std::uniform_int_distribution<std::int64_t>(lo, hi)(random);
}

template <class T>
T one_of(Random& random, std::initializer_list<T> values) {
  return values.begin()[between(random, 0, static_cast<std::int64_t>(values.size()) - 1)];
}

// Owns the memory of a view. The memory ends with the view's last byte, so that a sanitizer sees a read
// beyond it.
class RandomView {
 public:
  RandomView(Random& random, DType dtype) : dtype_(dtype) {
    choose_shape(random);
    choose_strides(random);
  }

  TensorView view() const {
    return {bytes_.empty() ? nullptr : bytes_.data() + start_, dtype_, sizes_, strides_};
  }

  // Fills the gaps between the elements with `gap` and every element with the bits that next() returns.
  template <class Next>
  void fill(std::uint64_t gap, Next&& next) {
    const std::size_t width = size_of(dtype_);
    for (std::size_t at = misaligned_; at + width <= bytes_.size(); at += width) {
      std::memcpy(bytes_.data() + at, &gap, width);  // little-endian: the low bytes are the element
    }
    if (bytes_.empty()) return;
    const Layout layout = row_major_layout(view(), sizes_.size());
    for_each_offset(layout, layout.dims, [&](std::int64_t offset) {
      const std::uint64_t bits = next();
      std::memcpy(bytes_.data() + start_ + offset * static_cast<std::int64_t>(width), &bits, width);
      return true;
    });
  }

  std::string describe() const {
    std::string text{name_of(dtype_)};
    for (std::size_t d = 0; d < sizes_.size(); ++d) {
      text += " " + std::to_string(sizes_[d]) + ":" + std::to_string(strides_[d]);
    }
    return text + " misaligned by " + std::to_string(misaligned_);
  }

 private:
  void choose_shape(Random& random) {
    const std::int64_t dims = between(random, 0, 4);
    std::int64_t left = one_of<std::int64_t>(random, {60, 300, 3000, 40000});
    for (std::int64_t d = 0; d < dims; ++d) {
      std::int64_t size = one_of<std::int64_t>(random, {1, 2, 3, 7, between(random, 1, 80), left});
      if (between(random, 0, 40) == 0) size = 0;
      if (size > left) size = left;
      sizes_.push_back(size);
      if (size > 0) left /= size;
      if (left < 1) left = 1;
    }
    std::shuffle(sizes_.begin(), sizes_.end(), random);
  }

  // Lays the dimensions out in a random order, some with gaps, some backwards, some expanded.
  void choose_strides(Random& random) {
    std::vector<std::size_t> order(sizes_.size());
    for (std::size_t d = 0; d < order.size(); ++d) order[d] = order.size() - 1 - d;
    const bool plain = between(random, 0, 2) == 0;
    if (!plain && between(random, 0, 1) == 0) std::shuffle(order.begin(), order.end(), random);
    strides_.resize(sizes_.size());
    std::int64_t next = 1, lowest = 0, highest = 0, numel = 1;
    for (const std::size_t d : order) {
      numel *= sizes_[d];
      const std::int64_t step = plain ? 0 : between(random, 0, 9);
      if (step == 1) next *= 2;  // a gap between the elements of this dimension
      if (step == 2) next += 3;  // padding
      strides_[d] = step == 3 ? 0 : step == 4 ? -next : next;
      const std::int64_t reach = (sizes_[d] - 1) * strides_[d];
      (reach < 0 ? lowest : highest) += reach;
      if (step != 3 && sizes_[d] > 0) next *= sizes_[d];
    }
    if (numel == 0) return;
    const std::size_t width = size_of(dtype_);
    misaligned_ = between(random, 0, 3) == 0 ? static_cast<std::size_t>(between(random, 1, 7)) : 0;
    bytes_.resize(misaligned_ + static_cast<std::size_t>(highest - lowest + 1) * width);
    start_ = static_cast<std::int64_t>(misaligned_) - lowest * static_cast<std::int64_t>(width);
  }

  DType dtype_;
  std::vector<std::int64_t> sizes_, strides_;
  std::vector<unsigned char> bytes_;
  std::int64_t start_ = 0;  // bytes
  std::size_t misaligned_ = 0;
};

}  // namespace trapline::testing
