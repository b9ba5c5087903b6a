#include "guard/plan.hpp"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "guard/hooks_device.hpp"

namespace trapline::guard {
namespace {

// -1: the row names no such argument. nullopt: it does, and this overload has none of that name and kind: a
// Dimname in the place of a dimension, a Scalar in the place of a tensor.
std::optional<std::int8_t> position(const c10::FunctionSchema& schema, const char* name,
                                    std::initializer_list<const char*> types) {
  if (name[0] == '\0') return std::int8_t{-1};
  const auto& arguments = schema.arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() != name) continue;
    std::string type = arguments[i].type()->str();
    if (!type.empty() && type.back() == '?') type.pop_back();
    for (const char* fits : types) {
      if (type == fits) return static_cast<std::int8_t>(i);
    }
    return std::nullopt;
  }
  return std::nullopt;
}

constexpr std::initializer_list<const char*> kTensor = {"Tensor", "Tensor[]", "Tensor?[]"};
constexpr std::initializer_list<const char*> kAny = {"Tensor", "Tensor[]", "Tensor?[]", "int",
                                                     "SymInt", "int[]",    "SymInt[]",  "bool"};

std::optional<RowPlan> resolve(const trapline_contract& row, const c10::FunctionSchema& schema) {
  const auto argument = position(schema, row.argument, kTensor);
  const auto bound = position(schema, row.bound_arg, kAny);
  const auto dim = position(schema, row.dim_arg, kAny);
  const auto also = position(schema, row.also_arg, kAny);
  if (!argument || !bound || !dim || !also || *argument < 0) return std::nullopt;
  return RowPlan{&row, *argument, *bound, *dim, *also};
}

bool holds_tensors(const c10::Argument& argument) {
  const std::string type = argument.type()->str();
  return type.find("Tensor") != std::string::npos && !argument.is_out();
}

void finish(Plan& plan, const c10::FunctionSchema& schema) {
  std::set<std::int8_t> needed;
  std::vector<std::int8_t> recorded;
  for (const RowPlan& row : plan.rows) {
    for (const std::int8_t at : {row.argument, row.bound, row.dim, row.also}) {
      if (at >= 0) needed.insert(at);
    }
    if (std::find(recorded.begin(), recorded.end(), row.argument) == recorded.end())
      recorded.push_back(row.argument);
  }
  // The history has room for few tensors: those that a row checks come first.
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto at = static_cast<std::int8_t>(i);
    const c10::Argument& argument = schema.arguments()[i];
    if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) plan.written.push_back(at);
    if (argument.type()->str().find("Generator") != std::string::npos) plan.generator = at;
    if (!holds_tensors(argument)) continue;
    if (std::find(recorded.begin(), recorded.end(), at) == recorded.end()) recorded.push_back(at);
  }
  if (recorded.size() > kMaxRecorded) recorded.resize(kMaxRecorded);
  std::sort(recorded.begin(), recorded.end());
  needed.insert(recorded.begin(), recorded.end());
  plan.recorded = std::move(recorded);
  plan.needed.assign(needed.begin(), needed.end());
}

// By the full name of the operation, or of the overload.
const std::multimap<std::string, const trapline_contract*>& rows_by_op() {
  static const auto* rows = [] {
    auto* all = new std::multimap<std::string, const trapline_contract*>;
    std::size_t count = 0;
    const trapline_contract* table = trapline_contracts(&count);
    for (std::size_t i = 0; i < count; ++i) all->emplace(table[i].op, &table[i]);
    return all;
  }();
  return *rows;
}

}  // namespace

bool has_rows(const c10::OperatorName& name) {
  const auto& rows = rows_by_op();
  return rows.find(name.name) != rows.end() || rows.find(name.name + "." + name.overload_name) != rows.end();
}

const Plan* make_plan(const c10::OperatorHandle& handle) {
  const c10::OperatorName& name = handle.operator_name();
  const c10::FunctionSchema& schema = handle.schema();
  if (schema.arguments().size() > kMaxArguments) return nullptr;
  auto plan = std::make_unique<Plan>(Plan{handle, name.name, name.overload_name});
  plan->remember = true;
  plan->reads = is_read(name.name);
  plan->counts_masks = plan->handle.hasTag(at::Tag::dynamic_output_shape);  // torch's own word
  // Rows of the operation, and those of this overload alone.
  for (const std::string& key : {name.name, name.name + "." + name.overload_name}) {
    const auto [begin, end] = rows_by_op().equal_range(key);
    for (auto at = begin; at != end; ++at) {
      const auto row = resolve(*at->second, schema);
      if (!row) continue;
      plan->rows.push_back(*row);
      plan->composite |= row->row->composite != 0;
      plan->remember &= row->row->remember != 0;
    }
  }
  if (plan->rows.empty()) return nullptr;
  finish(*plan, schema);
  return plan.release();
}

}  // namespace trapline::guard
