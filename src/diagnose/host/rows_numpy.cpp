// numpy(), item() and `if` on tensors that cannot give a value.
#include <fmt/format.h>
#include <re2/re2.h>

#include "diagnose/host/case.hpp"
#include "diagnose/host/rows.hpp"

namespace trapline::diagnose {
namespace {

constexpr auto kDevice = Cause::kDeviceMismatch;

const Operand* off_the_host(const HostCase& c) {
  for (const Operand& operand : c.operands()) {
    if (!operand.device.empty() && operand.device != "cpu") return &operand;
  }
  return nullptr;
}

constexpr auto kEndsGradient =
    "`.detach()` ends the gradient here: what the loss is made of has to stay with torch's own functions";

// PyTorch's own call in place of NumPy's over a list of equal tensors: "torch.stack(xs).sum(0)"; empty where
// it is none.
std::string stacked_call(const HostCase& c, const Operand& x) {
  static const RE2 call(R"((?:np|numpy)\.(sum|mean|prod|std|var)\((\w+)(?:, (?:axis=)?(\d+))?\))");
  std::string function, list, axis;
  if (!RE2::FullMatch(c.call(), call, &function, &list, &axis)) return {};
  if (!x.name.starts_with(list + "[")) return {};
  for (const Operand& operand : c.operands()) {
    if (operand.name.starts_with(list + "[") && operand.shape != x.shape) return {};
  }
  if (function == "std" || function == "var") {  // NumPy's is the biased one
    return fmt::format("torch.stack({}).{}({}correction=0)", list, function, axis.empty() ? "" : axis + ", ");
  }
  return fmt::format("torch.stack({}).{}({})", list, function, axis);
}

void numpy_device(const HostCase& c, Finding& f) {
  const std::string device = c.capture(1).empty() ? "cuda" : c.capture(1);
  const Operand* x = off_the_host(c);
  const std::string name = x && x->user ? x->name : "x";
  f.summary =
      fmt::format("numpy: {} is on {}; NumPy can only read host memory", x ? x->name : "the tensor", device);
  if (x) f.tensor = TensorInfo{x->shape, x->dtype, x->device};
  if (const std::string stacked = x ? stacked_call(c, *x) : ""; !stacked.empty()) {
    f.fix.push_back(fmt::format("use `{}`: it stays on {}", stacked, x->device));
    return;
  }
  f.fix.push_back(fmt::format("use `{}.detach().cpu().numpy()`", name));
  if (x && x->grad) f.fix.push_back(kEndsGradient);
  f.fix.push_back("np.asarray, matplotlib, sklearn and pandas call numpy() for you: pass them the same");
}

void numpy_gradient(const HostCase& c, Finding& f) {
  const Operand* x = c.operands().empty() ? nullptr : &c.operands().front();
  const std::string name = x && x->user ? x->name : "x";
  f.summary = fmt::format("numpy: {} requires grad, and NumPy would lose it", x ? x->name : "the tensor");
  if (x) f.tensor = TensorInfo{x->shape, x->dtype, x->device};
  f.fix.push_back(fmt::format("use `{}.detach().cpu().numpy()`", name));
  f.fix.push_back(kEndsGradient);
  f.fix.push_back("or run the evaluation under `with torch.no_grad():`");
}

void one_element(const HostCase& c, Finding& f) {
  const Operand* x = c.operands().empty() ? nullptr : &c.operands().front();
  for (const Operand& operand : c.operands()) {
    if (!c.capture(1).empty() && numel(operand.shape) == c.number(1)) {
      x = &operand;
      break;
    }
  }
  const std::string name = x && x->user ? x->name : "x";
  const std::string size = x ? " " + to_text(x->shape) : std::string();
  const std::string elements = c.capture(1).empty() ? "does not have exactly one element"
                                                    : fmt::format("has {} elements, not one", c.number(1));
  f.summary = fmt::format("item: {}{} {}", x ? x->name : "the tensor", size, elements);
  if (x) f.tensor = TensorInfo{x->shape, x->dtype, x->device};
  f.fix.push_back(
      fmt::format("reduce it first: `{}.mean().item()`, or take one element: `{}[0].item()`", name, name));
  f.fix.push_back(fmt::format("for all of them use `{}.tolist()`", name));
}

void truth_value(const HostCase& c, Finding& f) {
  const Operand* x = c.operands().empty() ? nullptr : &c.operands().front();
  f.summary = fmt::format("`if tensor`: {}{} has {} value, so it is neither true nor false",
                          x ? x->name : "the tensor", x ? " " + to_text(x->shape) : "", c.capture(1));
  f.fix.push_back("say which is meant: `.any()`, `.all()`, `.numel() > 0` or `is not None`");
}

}  // namespace

std::span<const HostErrorRow> numpy_rows() {
  static const auto* const rows = new std::vector<HostErrorRow>{
      {"numpy.device",
       "TypeError",
       R"(can't convert (?:([a-z]+(?::\d+)?) device type|CUDA) tensor to numpy)",
       "device type tensor to numpy|can't convert CUDA tensor to numpy",
       kDevice,
       "numpy",
       "self",
       numpy_device,
       {"can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
        "memory first.",
        "can't convert CUDA tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."}},
      {"numpy.gradient",
       "RuntimeError",
       R"(Can't call numpy\(\) on (?:Tensor|Variable) that requires grad)",
       "Can't call numpy() on",
       Cause::kNotCuda,
       "numpy",
       "self",
       numpy_gradient,
       {"Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
        "Can't call numpy() on Variable that requires grad. Use var.detach().numpy() instead."}},
      {"item.elements",
       "RuntimeError|ValueError",
       R"((?:a Tensor with (\d+) elements cannot be converted to Scalar|only one element tensors can be converted to Python scalars))",
       "elements cannot be converted to Scalar|only one element tensors can be converted",
       Cause::kShapeMismatch,
       "item",
       "self",
       one_element,
       {"a Tensor with 3 elements cannot be converted to Scalar",
        "only one element tensors can be converted to Python scalars"}},
      {"bool.elements",
       "RuntimeError",
       R"((?:Boolean|bool) value of Tensor with (more than one|no) values? is ambiguous)",
       "value of Tensor with more than one value|value of Tensor with no value",
       Cause::kShapeMismatch,
       "bool",
       "self",
       truth_value,
       {"Boolean value of Tensor with more than one value is ambiguous",
        "Boolean value of Tensor with no values is ambiguous"}},
  };
  return *rows;
}

}  // namespace trapline::diagnose
