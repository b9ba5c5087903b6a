// Shape errors that backward reports.
#include <fmt/format.h>

#include "diagnose/host/case.hpp"
#include "diagnose/host/rows.hpp"

namespace trapline::diagnose {
namespace {

constexpr auto kShape = Cause::kShapeMismatch;

void scalar_outputs(const HostCase& c, Finding& f) {
  const Operand* loss = c.operands().empty() ? nullptr : &c.operands().front();
  const std::string name = loss ? loss->name : "loss";
  f.summary =
      fmt::format("backward: {}{} has more than one element, so there is no single loss to differentiate",
                  name, loss ? " " + to_text(loss->shape) : "");
  if (loss) f.tensor = TensorInfo{loss->shape, loss->dtype, loss->device};
  f.fix.push_back(fmt::format("reduce it first: `{}.mean().backward()` (or `.sum()`)", name));
  f.fix.push_back(
      "a loss made with `reduction='none'` must be reduced by yourself; nn.DataParallel returns one loss per "
      "GPU");
}

void gradient_shape(const HostCase& c, Finding& f) {
  const Shape gradient = c.shape(1), output = c.shape(2);
  f.summary = fmt::format("backward: the gradient passed in has shape {} but the output has {}",
                          to_text(gradient), to_text(output));
  f.tensor = TensorInfo{gradient, "", ""};
  f.fix.push_back(fmt::format("pass a gradient of shape {}: `output.backward(torch.ones_like(output))`",
                              to_text(output)));
}

void invalid_gradient(const HostCase& c, Finding& f) {
  const Shape got = c.shape(3), want = c.shape(4);
  f.argument = fmt::format("input {}", c.number(2));
  f.summary = fmt::format("backward: {} gives input {} a gradient of shape {} where {} is needed",
                          c.capture(1), c.number(2), to_text(got), to_text(want));
  f.fix.push_back(
      fmt::format("in {}.backward return {} for that input: sum over the dimensions that forward broadcast",
                  c.capture(1), to_text(want)));
  f.fix.push_back(
      "if the function is PyTorch's own, a tensor was resized in place (`resize_`, `.data =`) between "
      "forward and backward");
}

void assigned_gradient(const HostCase& c, Finding& f) {
  f.summary = fmt::format("x.grad = g: the gradient has shape {} but the tensor has {}", to_text(c.shape(1)),
                          to_text(c.shape(2)));
  f.fix.push_back(fmt::format("assign a gradient of shape {}", to_text(c.shape(2))));
}

}  // namespace

std::span<const HostErrorRow> backward_rows() {
  static const auto* const rows = new std::vector<HostErrorRow>{
      {"backward.scalar",
       "RuntimeError",
       R"(grad can be (?:implicitly )?created only for scalar outputs)",
       "created only for scalar outputs",
       kShape,
       "backward",
       "self",
       scalar_outputs,
       {"grad can be implicitly created only for scalar outputs"},
       nullptr,
       {.certainty = Certainty::kLikely}},
      {"backward.gradient",
       "RuntimeError",
       R"(Mismatch in shape: grad_output\[\d+\] has a shape of torch\.Size\(\[([\d, ]*)\]\) and output\[\d+\] has a shape of torch\.Size\(\[([\d, ]*)\]\))",
       "Mismatch in shape: grad_output",
       kShape,
       "backward",
       "gradient",
       gradient_shape,
       {"Mismatch in shape: grad_output[0] has a shape of torch.Size([4]) and output[0] has a shape of "
        "torch.Size([3])."}},
      {"backward.invalid",
       "RuntimeError",
       R"(Function (\w+) returned an invalid gradient at index (\d+) - got \[([\d, ]*)\] but expected shape compatible with \[([\d, ]*)\])",
       "returned an invalid gradient at index",
       kShape,
       "backward",
       "",
       invalid_gradient,
       {"Function MmBackward0 returned an invalid gradient at index 0 - got [3, 4] but expected shape "
        "compatible with [3, 5]"}},
      {"backward.assigned",
       "RuntimeError",
       R"(attempting to assign a gradient of size '\[([\d, ]*)\]' to a tensor of size '\[([\d, ]*)\]')",
       "attempting to assign a gradient of size",
       kShape,
       "x.grad",
       "grad",
       assigned_gradient,
       {"attempting to assign a gradient of size '[4]' to a tensor of size '[3]'. Please ensure that the "
        "gradient and the tensor are the "
        "same size"}},
  };
  return *rows;
}

}  // namespace trapline::diagnose
