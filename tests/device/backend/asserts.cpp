#include "asserts.hpp"

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>

#include <cmath>
#include <functional>
#include <map>

namespace fakedev {
namespace {

using torch::jit::Stack;

// Every element, as a double: large enough for what the tests use.
bool any(const at::Tensor& tensor, const std::function<bool(double)>& bad) {
  if (!tensor.defined() || tensor.numel() == 0) return false;
  const auto sizes = tensor.sizes();
  const auto strides = tensor.strides();
  const char* data = static_cast<const char*>(tensor.const_data_ptr());
  const auto read = [&](std::int64_t offset) -> double {
    const char* at = data + offset * static_cast<std::int64_t>(tensor.itemsize());
    switch (tensor.scalar_type()) {
      case at::kLong:
        return static_cast<double>(*reinterpret_cast<const std::int64_t*>(at));
      case at::kInt:
        return *reinterpret_cast<const std::int32_t*>(at);
      case at::kByte:
        return *reinterpret_cast<const std::uint8_t*>(at);
      case at::kDouble:
        return *reinterpret_cast<const double*>(at);
      default:
        return *reinterpret_cast<const float*>(at);
    }
  };
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    std::int64_t offset = 0, rest = i;
    for (std::int64_t d = tensor.dim() - 1; d >= 0; --d) {
      offset += rest % sizes[d] * strides[d];
      rest /= sizes[d];
    }
    if (bad(read(offset))) return true;
  }
  return false;
}

bool outside(const at::Tensor& tensor, std::int64_t low, std::int64_t high) {
  return any(tensor,
             [=](double v) { return v < static_cast<double>(low) || v >= static_cast<double>(high); });
}

bool embedding(const Stack& a) { return outside(a[1].toTensor(), 0, a[0].toTensor().size(0)); }

bool embedding_backward(const Stack& a) { return outside(a[1].toTensor(), 0, a[2].toInt()); }

bool along_dim(const Stack& a) {
  const at::Tensor& self = a[0].toTensor();
  const std::int64_t dim = a[1].toInt() < 0 ? a[1].toInt() + self.dim() : a[1].toInt();
  return outside(a[2].toTensor(), 0, self.dim() == 0 ? 1 : self.size(dim));
}

bool labels(const at::Tensor& logits, const at::Tensor& target, std::int64_t ignored) {
  const auto classes = static_cast<double>(logits.size(logits.dim() == 1 ? 0 : 1));
  return any(target, [=](double v) { return v != static_cast<double>(ignored) && (v < 0 || v >= classes); });
}

bool index_list(const Stack& a) {
  const at::Tensor& self = a[0].toTensor();
  std::int64_t dim = 0;
  for (const c10::IValue& element : a[1].toListRef()) {
    const bool given = element.isTensor() && element.toTensor().defined();
    if (given && element.toTensor().scalar_type() == at::kBool) {
      dim += element.toTensor().dim();
      continue;
    }
    if (given && outside(element.toTensor(), -self.size(dim), self.size(dim))) return true;
    ++dim;
  }
  return false;
}

bool probabilities(const Stack& a) {
  return any(a[0].toTensor(), [](double v) { return !(v >= 0) || std::isinf(v); });
}

bool unit_interval(const Stack& a) {
  const auto bad = [](double v) { return !(v >= 0 && v <= 1); };
  return any(a[0].toTensor(), bad) || any(a[1].toTensor(), bad);
}

const std::map<std::string, bool (*)(const Stack&)>& table() {
  static const std::map<std::string, bool (*)(const Stack&)> all = {
      {"aten::embedding", embedding},
      {"aten::embedding_dense_backward", embedding_backward},
      {"aten::nll_loss_forward",
       [](const Stack& a) { return labels(a[0].toTensor(), a[1].toTensor(), a[4].toInt()); }},
      {"aten::nll_loss_backward",
       [](const Stack& a) { return labels(a[1].toTensor(), a[2].toTensor(), a[5].toInt()); }},
      {"aten::index", index_list},
      {"aten::index_put_", index_list},
      {"aten::_index_put_impl_", index_list},
      {"aten::index_select", along_dim},
      {"aten::gather", along_dim},
      {"aten::scatter", along_dim},
      {"aten::scatter_", along_dim},
      {"aten::scatter_add", along_dim},
      {"aten::scatter_add_", along_dim},
      {"aten::index_add", along_dim},
      {"aten::index_add_", along_dim},
      {"aten::multinomial", probabilities},
      {"aten::binary_cross_entropy", unit_interval},
  };
  return all;
}

}  // namespace

bool would_assert(const std::string& op, const Stack& arguments) {
  const auto found = table().find(op);
  return found != table().end() && found->second(arguments);
}

}  // namespace fakedev
