#include "cpu_cuda/plan.hpp"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <set>
#include <unordered_map>

namespace trapline::cpu_cuda {
namespace {

using c10::DispatchKey;

const Row kRows[] = {
#include "operations.inc"
};

// Compositions of PyTorch's that are about devices: they have to see which one they are given.
bool minds_the_device(const std::string& name) {
  static const std::set<std::string> names = {"aten::_to_copy",
                                              "aten::_pin_memory",
                                              "aten::is_pinned",
                                              "aten::_assert_tensor_metadata",
                                              "aten::lift",
                                              "aten::lift_fresh",
                                              "aten::is_set_to",
                                              "aten::_pack_padded_sequence",
                                              "aten::_has_same_storage_numel",
                                              "aten::_efficientzerotensor",
                                              "aten::_lazy_clone",
                                              "aten::_foreach_copy_",
                                              "aten::_foreach_copy",
                                              "aten::copy",
                                              "aten::_copy_from_and_resize",
                                              "aten::set_data",
                                              "aten::_resize_output_"};
  return names.count(name) != 0;
}

bool is_tensor(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::TensorType) return true;
  return type.kind() == c10::TypeKind::OptionalType &&
         type.castRaw<c10::OptionalType>()->getElementType()->kind() == c10::TypeKind::TensorType;
}

// Lists of lists are those of collective operations.
bool is_tensor_list(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::ListType) {
    const c10::Type& element = *type.castRaw<c10::ListType>()->getElementType();
    return is_tensor(element) || is_tensor_list(element);
  }
  return type.kind() == c10::TypeKind::OptionalType &&
         is_tensor_list(*type.castRaw<c10::OptionalType>()->getElementType());
}

bool holds_optional(const c10::Type& type) {
  return type.kind() == c10::TypeKind::ListType &&
         type.castRaw<c10::ListType>()->getElementType()->kind() == c10::TypeKind::OptionalType;
}

bool is_kind(const c10::Type& type, c10::TypeKind kind) {
  if (type.kind() == kind) return true;
  return type.kind() == c10::TypeKind::OptionalType &&
         type.castRaw<c10::OptionalType>()->getElementType()->kind() == kind;
}

bool writes(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

bool is_composite(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
         op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional);
}

bool touches_tensors(const c10::FunctionSchema& schema) {
  const auto any = [](const std::vector<c10::Argument>& arguments) {
    return std::any_of(arguments.begin(), arguments.end(), [](const c10::Argument& argument) {
      return is_tensor(*argument.type()) || is_tensor_list(*argument.type());
    });
  };
  return any(schema.arguments()) || any(schema.returns());
}

bool is_view(const c10::FunctionSchema& schema) {
  const auto& returns = schema.returns();
  return std::any_of(returns.begin(), returns.end(), [](const c10::Argument& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
  });
}

std::string full_name(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

std::string method_of(const c10::OperatorName& op, const Row* row) {
  std::string base = op.name.substr(op.name.find("::") + 2);
  const bool out =
      op.overload_name == "out" ||
      (op.overload_name.size() > 4 && op.overload_name.rfind("_out") == op.overload_name.size() - 4);
  if (out) base += "_out";
  const bool with_overload = row != nullptr && (row->flags & kNamedByOverload) != 0;
  return "wrapper_CUDA_" + (with_overload ? op.overload_name + "_" + base : base);
}

}  // namespace

const Row* find_row(const std::string& name) {
  static const auto* rows = [] {
    auto* all = new std::unordered_map<std::string, const Row*>;
    for (const Row& row : kRows) all->emplace(row.name, &row);
    return all;
  }();
  const auto found = rows->find(name);
  return found == rows->end() ? nullptr : found->second;
}

Way way_of(const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  const std::string& name = op.operator_name().name;
  const bool composite = is_composite(op);
  if (!touches_tensors(schema) || minds_the_device(name)) return Way::kLeave;
  // Those that change only sizes and strides of their argument have no work that could be late.
  if (is_view(schema) || op.hasTag(at::Tag::inplace_view)) return Way::kLeave;
  const Row* row = find_row(full_name(op.operator_name()).substr(6));
  const bool cuda_has_it = row == nullptr ? composite : (row->flags & kOnDevice) != 0;
  if (op.hasKernelForDispatchKey(DispatchKey::CPU))
    return cuda_has_it || composite ? Way::kHost : Way::kLeave;
  if (composite) return Way::kHost;
  if (op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd)) return Way::kLeave;
  return row != nullptr && (row->flags & kOnDevice) != 0 ? Way::kRefuse : Way::kLeave;
}

Plan plan_of(const c10::OperatorHandle& op) {
  Plan plan;
  const auto& schema = op.schema();
  plan.name = full_name(op.operator_name());
  const Row* row = find_row(plan.name.substr(6));
  plan.method = method_of(op.operator_name(), row);
  plan.arguments = static_cast<std::uint8_t>(schema.arguments().size());
  plan.returns = static_cast<std::uint8_t>(schema.returns().size());
  plan.checks_devices = row != nullptr && (row->flags & kChecksDevices) != 0;
  plan.is_composite = is_composite(op);
  plan.draws = op.hasTag(at::Tag::nondeterministic_seeded);
  plan.is_collective = plan.name.rfind("c10d::", 0) == 0;
  plan.asserts = assert_check(op.operator_name().name);
  plan.adapt = adapter(op.operator_name().name);
  for (std::uint8_t i = 0; i < plan.arguments; ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    const c10::Type& type = *argument.type();
    if (is_tensor(type)) {
      plan.looked_at.push_back({i, Kind::kTensor, false});
    } else if (is_tensor_list(type)) {
      plan.looked_at.push_back({i, Kind::kTensors, holds_optional(type)});
    } else if (is_kind(type, c10::TypeKind::DeviceObjType)) {
      plan.looked_at.push_back({i, Kind::kDevice, false});
      plan.device_at = static_cast<std::int8_t>(i);
    } else if (is_kind(type, c10::TypeKind::GeneratorType)) {
      plan.looked_at.push_back({i, Kind::kGenerator, false});
    } else if (argument.name() == "pin_memory") {
      plan.looked_at.push_back({i, Kind::kPinMemory, false});
    }
  }
  std::size_t next = 0;  // results that are arguments come in the order of these
  for (const c10::Argument& result : schema.returns()) {
    std::int8_t found = -1;
    if (writes(result)) {
      while (next < schema.arguments().size() && !writes(schema.arguments()[next])) ++next;
      if (next < schema.arguments().size()) found = static_cast<std::int8_t>(next++);
    }
    plan.returned.push_back(found);
  }
  return plan;
}

}  // namespace trapline::cpu_cuda
