#include "core/tensor_view.hpp"

#include <array>
#include <utility>

namespace trapline {
namespace {

struct DTypeInfo {
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<DTypeInfo, 10> kDTypes{{{"bool", 1},
                                             {"uint8", 1},
                                             {"int8", 1},
                                             {"int16", 2},
                                             {"int32", 4},
                                             {"int64", 8},
                                             {"float16", 2},
                                             {"bfloat16", 2},
                                             {"float32", 4},
                                             {"float64", 8}}};

}  // namespace

std::size_t size_of(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)].bytes; }
std::string_view name_of(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)].name; }

}  // namespace trapline
