#include "guard/device_arguments.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include "guard/check.hpp"

namespace trapline::guard {
namespace {

bool is_mask(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte;
}

at::Tensor copy_to(const at::Tensor& tensor, const c10::Device& device, c10::ScalarType dtype) {
  at::Tensor out = at::empty(tensor.sizes(), at::TensorOptions().device(device).dtype(dtype));
  out.copy_(tensor.detach());
  return out;
}

bool part(const Argument* arguments, std::int8_t at, Part what, trapline_arg& out, Scratch& scratch) {
  if (at < 0) return true;
  if (what == Part::kShape && arguments[at].kind == TRAPLINE_ARG_NONE) {
    out.kind = TRAPLINE_ARG_NONE;  // a bound that the call leaves out: the row says what then
    return true;
  }
  return describe(arguments[at], what, out, scratch, Place::kDevice);
}

}  // namespace

int plan_row(const RowPlan& row, const Argument* arguments, trapline_device_check* checks, int capacity,
             int& count, trapline_scan& scan) {
  Scratch scratch;
  trapline_arg argument, bound, dim, also;
  if (!part(arguments, row.argument, Part::kElements, argument, scratch) ||
      !part(arguments, row.bound, Part::kShape, bound, scratch) ||
      !part(arguments, row.dim, Part::kShape, dim, scratch) ||
      !part(arguments, row.also, part_of_also(row), also, scratch))
    return TRAPLINE_PLAN_NOTHING;
  return trapline_device_plan(row.row, &argument, row.bound >= 0 ? &bound : nullptr,
                              row.dim >= 0 ? &dim : nullptr, row.also >= 0 ? &also : nullptr, checks,
                              capacity, &count, &scan);
}

SplitList::SplitList(const Argument& argument) : argument_(argument) {
  if (argument.kind == TRAPLINE_ARG_TENSOR && argument.tensor->defined()) {
    on_host_ = argument.tensor->device().is_cpu();
    on_device_ = !on_host_;
  }
  if (argument.kind != TRAPLINE_ARG_LIST) return;
  for (const c10::IValue& element : argument.list) {
    const bool is_tensor = element.isTensor() && element.toTensor().defined();
    const bool everywhere = !is_tensor || is_mask(element.toTensor());
    const bool host = is_tensor && element.toTensor().device().is_cpu();
    on_host_ |= !everywhere && host;
    on_device_ |= !everywhere && !host;
    host_.push_back(everywhere || host ? element : c10::IValue());
    device_.push_back(everywhere || !host ? element : c10::IValue());
  }
}

Argument SplitList::view(const std::vector<c10::IValue>& list) const {
  Argument out = argument_;
  if (out.kind == TRAPLINE_ARG_LIST) out.list = list;
  return out;
}

void Lengths::prepare(Argument& lengths, const c10::Device& device) {
  if (lengths.kind != TRAPLINE_ARG_TENSOR || !lengths.tensor->defined()) return;
  const at::Tensor& given = *lengths.tensor;
  if (given.device().is_cpu()) {
    const at::Tensor numbers = given.detach().to(at::kLong).contiguous();
    const auto* first = numbers.const_data_ptr<std::int64_t>();
    list_.assign(first, first + numbers.numel());
    lengths.kind = TRAPLINE_ARG_LIST;
    lengths.list = list_;
    return;
  }
  if (given.device() == device && given.scalar_type() == at::kLong && given.is_contiguous()) return;
  tensor_ = copy_to(given, device, at::kLong);
  lengths.tensor = &tensor_;
}

bool Lengths::give(trapline_device_check& check, const Argument& lengths, const c10::Device& device,
                   bool capturing) {
  if (!are_wanted(check)) return true;
  std::vector<std::int64_t> numbers;
  if (lengths.kind != TRAPLINE_ARG_LIST) return false;
  for (const c10::IValue& element : lengths.list) numbers.push_back(element.toInt());
  return give(check, numbers, device, capturing);
}

bool Lengths::give(trapline_device_check& check, c10::ArrayRef<std::int64_t> lengths,
                   const c10::Device& device, bool capturing) {
  if (!are_wanted(check)) return true;
  if (capturing) return false;
  if (!tensor_.defined())
    tensor_ = copy_to(at::tensor(lengths, at::TensorOptions().dtype(at::kLong)), device, at::kLong);
  check.lengths = tensor_.const_data_ptr();
  return true;
}

at::Tensor copy_to_host(const at::Tensor& tensor) {
  return !tensor.defined() || tensor.device().is_cpu() ? tensor
                                                       : copy_to(tensor, at::kCPU, tensor.scalar_type());
}

HostArguments::HostArguments(const Plan& plan, const RowPlan& row, const Argument* arguments) {
  tensors_.reserve(64);
  for (const std::int8_t at : plan.needed) arguments_[at] = arguments[at];
  copy(row.argument);
  if (row.also >= 0 && reads_also(row)) copy(row.also);
}

void HostArguments::copy(std::int8_t position) {
  Argument& argument = arguments_[position];
  if (argument.kind == TRAPLINE_ARG_TENSOR) {
    if (tensors_.size() == tensors_.capacity()) return;
    tensors_.push_back(copy_to_host(*argument.tensor));
    argument.tensor = &tensors_.back();
  } else if (argument.kind == TRAPLINE_ARG_LIST) {
    std::vector<c10::IValue> list;
    for (const c10::IValue& element : argument.list)
      list.push_back(element.isTensor() ? c10::IValue(copy_to_host(element.toTensor())) : element);
    lists_.push_back(std::move(list));
    argument.list = lists_.back();
  }
}

}  // namespace trapline::guard
