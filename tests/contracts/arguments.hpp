// Owning arguments for calls of check_call, as a test writes them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "contracts/check_call.hpp"

namespace trapline::test {

// One argument with the memory behind it. Copies share the memory.
class Arg {
 public:
  Arg() = default;

  template <class T>
  static Arg tensor(std::vector<std::int64_t> shape, std::vector<T> values, trapline_dtype dtype) {
    Arg arg;
    arg.owned_ = std::make_shared<Owned>();
    arg.owned_->sizes = std::move(shape);
    arg.owned_->strides.assign(arg.owned_->sizes.size(), 1);
    for (std::size_t d = arg.owned_->sizes.size(); d-- > 1;) {
      arg.owned_->strides[d - 1] = arg.owned_->strides[d] * arg.owned_->sizes[d];
    }
    arg.owned_->bytes.resize(values.size() * sizeof(T) + 1);
    if (!values.empty()) std::memcpy(arg.owned_->bytes.data(), values.data(), values.size() * sizeof(T));
    arg.arg_.kind = TRAPLINE_ARG_TENSOR;
    arg.arg_.tensor = {arg.owned_->bytes.data(), arg.owned_->sizes.data(), arg.owned_->strides.data(),
                       static_cast<std::int32_t>(arg.owned_->sizes.size()), dtype};
    return arg;
  }

  static Arg int64(std::vector<std::int64_t> shape, std::vector<std::int64_t> values) {
    return tensor(std::move(shape), std::move(values), TRAPLINE_INT64);
  }
  static Arg int64(std::vector<std::int64_t> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return int64({count}, std::move(values));
  }
  static Arg float32(std::vector<std::int64_t> shape, std::vector<float> values) {
    return tensor(std::move(shape), std::move(values), TRAPLINE_FLOAT32);
  }
  static Arg float32(std::vector<float> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return float32({count}, std::move(values));
  }
  // A tensor that gives nothing but its shape.
  static Arg shape(std::vector<std::int64_t> sizes) {
    Arg arg = float32(std::move(sizes), {});
    arg.arg_.tensor.data = nullptr;
    return arg;
  }
  static Arg integer(std::int64_t value) {
    Arg arg;
    arg.arg_.kind = TRAPLINE_ARG_INT;
    arg.arg_.integer = value;
    return arg;
  }
  static Arg sizes(std::vector<std::int64_t> values) {
    Arg arg = int64(std::move(values), {});
    arg.arg_.kind = TRAPLINE_ARG_SIZES;
    return arg;
  }
  static Arg list(const std::vector<Arg>& elements) {
    Arg arg;
    arg.owned_ = std::make_shared<Owned>();
    arg.owned_->keep = elements;
    for (const Arg& element : elements) {
      arg.owned_->list.push_back(element.arg_.tensor);
      if (element.arg_.kind == TRAPLINE_ARG_NONE) arg.owned_->list.back().dim = -1;
    }
    arg.arg_.kind = TRAPLINE_ARG_LIST;
    arg.arg_.list_size = static_cast<std::int32_t>(elements.size());
    arg.arg_.list = arg.owned_->list.data();
    return arg;
  }

  Arg with_dtype(std::int32_t dtype) const {
    Arg arg = *this;
    arg.arg_.tensor.dtype = dtype;
    return arg;
  }
  const trapline_arg* get() const { return &arg_; }

 private:
  struct Owned {
    std::vector<char> bytes;
    std::vector<std::int64_t> sizes, strides;
    std::vector<trapline_tensor> list;
    std::vector<Arg> keep;
  };
  trapline_arg arg_{};
  std::shared_ptr<Owned> owned_;
};

struct Call {
  Arg argument, bound, dim, also;

  trapline_verdict check(const char* id, trapline_scan& scan) const {
    const Contract* contract = find_contract(id);
    EXPECT_NE(contract, nullptr) << id;
    if (contract == nullptr) return TRAPLINE_NOT_APPLICABLE;
    return check_call(*contract, {argument.get(), bound.get(), dim.get(), also.get()}, scan);
  }
};

}  // namespace trapline::test
