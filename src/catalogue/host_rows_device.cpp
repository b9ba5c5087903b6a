// Tensors on different devices; numpy() and item() on tensors that cannot give them.
#include <fmt/format.h>

#include <algorithm>

#include "catalogue/host_case.hpp"
#include "catalogue/host_rows.hpp"

namespace trapline {
namespace {

constexpr auto kDevice = Cause::kDeviceMismatch;

// "wrapper_CUDA__index_select" -> "index_select".
std::string op_of_wrapper(std::string_view wrapper) {
  for (const std::string_view prefix : {"wrapper_", "CUDA_", "CUDA", "_"}) {
    while (wrapper.starts_with(prefix)) wrapper.remove_prefix(prefix.size());
  }
  if (const auto overload = wrapper.find("_out_"); overload != std::string_view::npos)
    wrapper = wrapper.substr(0, overload);
  return std::string(wrapper);
}

const Operand* on_device(const HostCase& c, std::string_view device, bool equal) {
  for (const Operand& operand : c.operands()) {
    if (!operand.device.empty() && (operand.device == device) == equal) return &operand;
  }
  return nullptr;
}

// The list of who is where, e.g. "x is on cpu, fc.weight is on cuda:0".
std::string places(const HostCase& c) {
  std::string text;
  std::size_t count = 0;
  for (const Operand& operand : c.operands()) {
    if (operand.device.empty() || operand.name.empty() || ++count > 4) continue;
    text += fmt::format("{}{} is on {}", text.empty() ? "" : ", ", operand.name, operand.device);
  }
  return text;
}

void explain_devices(const HostCase& c, Finding& f, std::string first, std::string second,
                     std::string argument) {
  if (f.op.empty()) f.op = c.functional();
  if (f.op.empty() && c.module() && c.module()->attribute("in_features")) f.op = "linear";
  // The tensor to move is the one on the CPU; between two GPUs, the one that the message names.
  if (second == "cpu") std::swap(first, second);
  const Operand* stray = argument.empty() ? nullptr : c.by_role(argument);
  if (stray == nullptr) stray = on_device(c, first, true);
  const Operand* other = nullptr;
  for (const Operand& operand : c.operands()) {
    if (other == nullptr && &operand != stray && operand.device == second) other = &operand;
  }
  const std::string name = stray && !stray->name.empty() ? stray->name
                           : argument.empty()            ? "a tensor"
                                                         : "argument `" + argument + "`";
  const std::string seat = stray && !stray->device.empty() ? stray->device : first;
  const std::string goal = seat == second ? first : second;
  f.argument = argument.empty() ? (stray ? stray->role.empty() ? stray->name : stray->role : "") : argument;
  if (stray) f.tensor = TensorInfo{stray->shape, stray->dtype, stray->device};
  f.summary = fmt::format("{}{} is on {} but {} is on {}", f.op.empty() ? "" : f.op + ": ", name, seat,
                          other && !other->name.empty() ? other->name : "the other tensor", goal);
  if (stray && stray->user) {
    f.fix.push_back(other && other->user ? fmt::format("use `{}.to({}.device)`", name, other->name)
                                         : fmt::format("use `{}.to(\"{}\")`", name, goal));
  } else if (stray && c.module()) {
    f.fix.push_back("move the whole model before training: `model.to(device)`, before the optimizer is made");
  } else {
    f.fix.push_back(fmt::format("move it: `tensor.to(\"{}\")`", goal));
  }
  if (other && !other->user && c.module()) {
    f.fix.push_back(fmt::format("or move the layer to the data: `{}.to(\"{}\")`",
                                c.module()->name.empty() ? "model" : c.module()->name, seat));
  }
  if (const std::string where = places(c); !where.empty()) f.fix.push_back(where);
  if (c.module() && !(stray && !stray->user) && !(other && !other->user)) {
    f.fix.push_back(
        "a tensor made inside a module needs `device=x.device`, or `self.register_buffer(...)` to move with "
        "the model");
  }
}

void two_devices(const HostCase& c, Finding& f) {
  if (!c.capture(4).empty()) f.op = op_of_wrapper(c.capture(4));
  explain_devices(c, f, c.capture(1), c.capture(2), c.capture(3));
}

void named_argument(const HostCase& c, Finding& f) {
  if (!c.capture(4).empty()) f.op = op_of_wrapper(c.capture(4));
  explain_devices(c, f, c.capture(2), c.capture(3), c.capture(1));
}

std::string lower_device(std::string_view text) {
  std::string device(text);
  std::transform(device.begin(), device.end(), device.begin(),
                 [](unsigned char ch) { return std::tolower(ch); });
  return device == "gpu" ? "cuda" : device;
}

void expected_but_got(const HostCase& c, Finding& f) {
  if (!c.capture(4).empty()) f.op = c.capture(4);
  explain_devices(c, f, lower_device(c.capture(2)), lower_device(c.capture(1)), c.capture(3));
}

void pair_of_devices(const HostCase& c, Finding& f) { explain_devices(c, f, c.capture(1), c.capture(2), ""); }

void on_cpu_expected_gpu(const HostCase& c, Finding& f) {
  if (!c.capture(2).empty()) f.op = c.capture(2);
  explain_devices(c, f, "cpu", "cuda", c.capture(1));
}

void input_and_weight(const HostCase& c, Finding& f) {
  const bool input_on_gpu = c.message().starts_with("Input type (torch.cuda.");
  f.argument = input_on_gpu ? "weight" : "input";
  f.op = c.functional().empty() ? "conv" : c.functional();
  const Operand* input = c.by_role("input");
  const std::string name = input && input->user ? input->name : "the input";
  const std::string module = c.module() ? c.module()->text() : std::string("the layer");
  f.summary = fmt::format("{}: {} is on {} but the weights of {} are on {}", f.op, name,
                          input_on_gpu ? "cuda" : "cpu", module, input_on_gpu ? "cpu" : "cuda");
  if (input_on_gpu) {
    f.fix.push_back("move the model: `model.to(device)`, before the optimizer is made");
    f.fix.push_back("layers kept in a plain list or dict do not move: use nn.ModuleList or nn.ModuleDict");
  } else {
    f.fix.push_back(
        fmt::format("move the input: `{}.to(\"cuda\")`", input && input->user ? input->name : "x"));
    f.fix.push_back("`.to()` returns a new tensor: write `x = x.to(device)`");
  }
}

void input_and_other(const HostCase& c, Finding& f) {
  f.op = c.module() ? c.module()->type : "rnn";
  explain_devices(c, f, c.capture(2), c.capture(3), "");
  f.summary = fmt::format("{}: the input is on {} but the {} is on {}", f.op, c.capture(2), c.capture(1),
                          c.capture(3));
}

void index_device(const HostCase& c, Finding& f) {
  const std::string device = c.capture(1);
  const Operand* index = on_device(c, device, false);
  const std::string name = index ? index->name : "index";
  f.summary = fmt::format("x[index]: the indexed tensor is on {} but {} is on {}", device, name,
                          index ? index->device : "another device");
  if (index) f.tensor = TensorInfo{index->shape, index->dtype, index->device};
  f.fix.push_back(fmt::format("use `{}.to(\"{}\")` (or `.cpu()`)", name, device));
}

void data_parallel(const HostCase& c, Finding& f) {
  f.summary = fmt::format("DataParallel: the module must be on {} but a parameter is on {}", c.capture(1),
                          c.capture(2));
  f.fix.push_back(fmt::format("`model.to(\"{}\")` before wrapping it", c.capture(1)));
}

void generator(const HostCase& c, Finding& f) {
  f.summary = fmt::format("the generator is on {} but the operation runs on {}", c.capture(2), c.capture(1));
  f.fix.push_back(fmt::format("use `torch.Generator(device=\"{}\")`", c.capture(1)));
}

void numpy_device(const HostCase& c, Finding& f) {
  const std::string device = c.capture(1).empty() ? "cuda" : c.capture(1);
  const Operand* x = on_device(c, "cpu", false);
  const std::string name = x && x->user ? x->name : "x";
  f.summary =
      fmt::format("numpy: {} is on {}; NumPy can only read host memory", x ? x->name : "the tensor", device);
  if (x) f.tensor = TensorInfo{x->shape, x->dtype, x->device};
  f.fix.push_back(fmt::format("use `{}.detach().cpu().numpy()`", name));
  f.fix.push_back("np.asarray, matplotlib, sklearn and pandas call numpy() for you: pass them the same");
}

void numpy_gradient(const HostCase& c, Finding& f) {
  const Operand* x = c.operands().empty() ? nullptr : &c.operands().front();
  const std::string name = x && x->user ? x->name : "x";
  f.summary = fmt::format("numpy: {} requires grad, and NumPy would lose it", x ? x->name : "the tensor");
  if (x) f.tensor = TensorInfo{x->shape, x->dtype, x->device};
  f.fix.push_back(fmt::format("use `{}.detach().cpu().numpy()`", name));
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

std::span<const HostErrorRow> device_rows() {
  static const auto* const rows = new std::vector<HostErrorRow>{
      {"device.two",
       "RuntimeError",
       R"(Expected all tensors to be on the same device, but found at least two devices, ([a-z]+(?::\d+)?) and ([a-z]+(?::\d+)?)!(?: \(when checking argument for argument (\w+) in method (\w+)\))?)",
       kDevice,
       "",
       "",
       two_devices,
       {"Expected all tensors to be on the same device, but found at least two devices, cpu and cuda:0! "
        "(when checking argument for "
        "argument index in method wrapper_CUDA__index_select)",
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! "
        "(when checking argument for "
        "argument mat2 in method wrapper_mm)"}},
      {"device.argument",
       "RuntimeError",
       R"(Expected all tensors to be on the same device, but got (\w+) is on ([a-z]+(?::\d+)?), different from other tensors on ([a-z]+(?::\d+)?)(?: \(when checking argument in method (\w+)\))?)",
       kDevice,
       "",
       "",
       named_argument,
       {"Expected all tensors to be on the same device, but got index is on cpu, different from other "
        "tensors on cuda:0 (when checking "
        "argument in method wrapper_CUDA__index_select)"}},
      {"device.object",
       "RuntimeError",
       R"(Expected object of (?:device type|backend) (\w+) but got (?:device type|backend) (\w+) for (?:argument #\d+ '(\w+)'(?: in call to (?:_th_)?(\w+))?|sequence element))",
       kDevice,
       "",
       "",
       expected_but_got,
       {"Expected object of device type cuda but got device type cpu for argument #1 'self' in call to "
        "_th_mm",
        "Expected object of backend CPU but got backend CUDA for argument #2 'mat2'"}},
      {"device.on_cpu",
       "RuntimeError",
       R"((?:Tensor for 'out' is on CPU, )?Tensor for argument #\d+ '(\w+)' is on CPU, (?:Tensor for argument #\d+ '\w+' is on CPU, )*but expected (?:it|them) to be on GPU(?: \(while checking arguments for (\w+)\))?)",
       kDevice,
       "",
       "",
       on_cpu_expected_gpu,
       {"Tensor for argument #2 'mat1' is on CPU, but expected it to be on GPU (while checking arguments for "
        "addmm)",
        "Tensor for 'out' is on CPU, Tensor for argument #1 'self' is on CPU, but expected them to be on GPU "
        "(while checking arguments for "
        "addmm)"}},
      {"device.same_as",
       "RuntimeError",
       R"(Expected tensor for argument #\d+ '(\w+)' to have the same device as tensor for argument #\d+ '(\w+)'; but device (-?\d+) does not equal (-?\d+)(?: \(while checking arguments for (\w+)\))?)",
       kDevice,
       "",
       "",
       [](const HostCase& c, Finding& f) {
         f.op = c.capture(5);
         f.argument = c.capture(1);
         f.summary = fmt::format("{}{} is on cuda:{} but {} is on cuda:{}", f.op.empty() ? "" : f.op + ": ",
                                 c.capture(1), c.capture(3), c.capture(2), c.capture(4));
         f.fix.push_back(fmt::format("move both to one GPU: `.to(\"cuda:{}\")`", c.capture(4)));
       },
       {"Expected tensor for argument #1 'input' to have the same device as tensor for argument #2 'weight'; "
        "but device 1 does not equal 0 "
        "(while checking arguments for cudnn_convolution)"}},
      {"device.pair_old",
       "RuntimeError",
       R"((?:expected|Expected) device ([a-z]+(?::\d+)?) but got device ([a-z]+(?::\d+)?))",
       kDevice,
       "",
       "",
       pair_of_devices,
       {"expected device cpu but got device cuda:0"}},
      {"device.binary_old",
       "RuntimeError",
       R"(binary_op\(\): expected both inputs to be on same device, but input a is on ([a-z]+(?::\d+)?) and input b is on ([a-z]+(?::\d+)?))",
       kDevice,
       "",
       "",
       pair_of_devices,
       {"binary_op(): expected both inputs to be on same device, but input a is on cuda:0 and input b is on "
        "cpu"}},
      {"device.self_mask",
       "RuntimeError",
       R"(expected self and mask to be on the same device, but got mask on ([a-z]+(?::\d+)?) and self on ([a-z]+(?::\d+)?))",
       kDevice,
       "masked_fill",
       "mask",
       pair_of_devices,
       {"expected self and mask to be on the same device, but got mask on cpu and self on cuda:0"}},
      {"device.meta",
       "RuntimeError",
       R"(Tensor on device ([a-z]+(?::\d+)?) is not on the expected device ([a-z]+(?::\d+)?)!)",
       kDevice,
       "",
       "",
       pair_of_devices,
       {"Tensor on device cpu is not on the expected device meta!"}},
      {"device.input_on_gpu",
       "RuntimeError",
       R"(Input type \(torch\.cuda\.(\w+)Tensor\) and (weight|bias) type \(torch\.(\w+Tensor)\) should be the same)",
       kDevice,
       "conv",
       "weight",
       input_and_weight,
       {"Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
        "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same or input "
        "should be a MKLDNN tensor and "
        "weight is a dense tensor"}},
      {"device.input_on_cpu",
       "RuntimeError",
       R"(Input type \(torch\.(\w+)Tensor\) and (weight|bias) type \(torch\.cuda\.(\w+)Tensor\) should be the same)",
       kDevice,
       "conv",
       "input",
       input_and_weight,
       {"Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same"}},
      {"device.rnn",
       "RuntimeError",
       R"(Input and (parameter|hidden) tensors are not at the same device, found input tensor at ([a-z]+(?::\d+)?) and (?:parameter|hidden) tensor at ([a-z]+(?::\d+)?))",
       kDevice,
       "rnn",
       "input",
       input_and_other,
       {"Input and parameter tensors are not at the same device, found input tensor at cpu and parameter "
        "tensor at cuda:0",
        "Input and hidden tensors are not at the same device, found input tensor at cuda:0 and hidden tensor "
        "at cpu"}},
      {"device.index",
       "RuntimeError|IndexError",
       R"(indices should be either on (?:cpu|CPU) or on the same device as the indexed tensor \(([a-z]+(?::\d+)?)\))",
       kDevice,
       "x[index]",
       "index",
       index_device,
       {"indices should be either on cpu or on the same device as the indexed tensor (cuda:0)"}},
      {"device.data_parallel",
       "RuntimeError",
       R"(module must have its parameters and buffers on device ([a-z]+(?::\d+)?) \(device_ids\[0\]\) but found one of them on device: ([a-z]+(?::\d+)?))",
       kDevice,
       "DataParallel",
       "module",
       data_parallel,
       {"module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them "
        "on device: cpu"}},
      {"device.generator",
       "RuntimeError",
       R"(Expected a '([a-z]+)(?::\d+)?' (?:device type for generator|generator device) but found '([a-z]+)')",
       kDevice,
       "",
       "generator",
       generator,
       {"Expected a 'cuda' device type for generator but found 'cpu'",
        "Expected a 'cuda:0' generator device but found 'cpu'"}},
      {"numpy.device",
       "TypeError",
       R"(can't convert (?:([a-z]+(?::\d+)?) device type|CUDA) tensor to numpy)",
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
       Cause::kNotCuda,
       "numpy",
       "self",
       numpy_gradient,
       {"Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
        "Can't call numpy() on Variable that requires grad. Use var.detach().numpy() instead."}},
      {"item.elements",
       "RuntimeError|ValueError",
       R"((?:a Tensor with (\d+) elements cannot be converted to Scalar|only one element tensors can be converted to Python scalars))",
       Cause::kShapeMismatch,
       "item",
       "self",
       one_element,
       {"a Tensor with 3 elements cannot be converted to Scalar",
        "only one element tensors can be converted to Python scalars"}},
      {"bool.elements",
       "RuntimeError",
       R"((?:Boolean|bool) value of Tensor with (more than one|no) values? is ambiguous)",
       Cause::kShapeMismatch,
       "bool",
       "self",
       truth_value,
       {"Boolean value of Tensor with more than one value is ambiguous",
        "Boolean value of Tensor with no values is ambiguous"}},
  };
  return *rows;
}

}  // namespace trapline
