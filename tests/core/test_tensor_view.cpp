#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "core/tensor_view.hpp"

namespace trapline {
namespace {

TensorView view(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
  return {nullptr, DType::kInt64, sizes, strides};
}

TEST(TensorView, CountsElements) {
  const std::array<std::int64_t, 3> sizes{2, 3, 4};
  const std::array<std::int64_t, 3> strides{12, 4, 1};
  EXPECT_EQ(view(sizes, strides).numel(), 24);
  EXPECT_EQ(view({}, {}).numel(), 1) << "a 0-dim tensor has one element";
}

TEST(TensorView, ContiguityIgnoresDimensionsOfSizeOne) {
  const std::array<std::int64_t, 3> sizes{2, 1, 4};
  EXPECT_TRUE(view(sizes, std::array<std::int64_t, 3>{4, 99, 1}).is_contiguous());
  EXPECT_FALSE(view(sizes, std::array<std::int64_t, 3>{1, 1, 2}).is_contiguous());
  EXPECT_FALSE(view(sizes, std::array<std::int64_t, 3>{0, 0, 1}).is_contiguous()) << "expanded";
}

TEST(DType, NamesAndSizesAreTorchs) {
  EXPECT_EQ(name_of(DType::kBFloat16), "bfloat16");
  EXPECT_EQ(size_of(DType::kBFloat16), 2u);
  EXPECT_EQ(name_of(DType::kInt64), "int64");
  EXPECT_EQ(size_of(DType::kFloat64), 8u);
  EXPECT_TRUE(is_floating(DType::kFloat16));
  EXPECT_FALSE(is_floating(DType::kInt64));
}

}  // namespace
}  // namespace trapline
