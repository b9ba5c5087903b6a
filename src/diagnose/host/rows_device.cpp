// Tensors on different devices.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "diagnose/host/case.hpp"
#include "diagnose/host/rows.hpp"

namespace trapline::diagnose {
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

// A tensor as the user can find it: his own words for it, or the module that keeps it.
std::string called(const Operand& operand) {
  if (operand.user) return operand.name;
  if (!operand.from.empty()) return operand.from;
  if (operand.held && !operand.held->name.empty()) return operand.held->name + "." + operand.held->attribute;
  return operand.name;
}

// The list of who is where, e.g. "x is on cpu, fc.weight is on cuda:0".
std::string places(const HostCase& c) {
  std::vector<std::string> said;
  for (const Operand& operand : c.operands()) {
    if (operand.device.empty() || called(operand).empty() || said.size() == 4) continue;
    std::string text = fmt::format("{} is on {}", called(operand), operand.device);
    if (std::find(said.begin(), said.end(), text) == said.end()) said.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(said, ", "));
}

// Whether PyTorch's optimizers raised.
bool in_optimizer(const HostCase& c) {
  const std::vector<Frame>& stack = c.facts().stack;
  return !stack.empty() && stack.back().file.find("torch/optim/") != std::string::npos;
}

// What to do about a tensor that a module keeps; false where the facts do not say.
bool move_holder(const HostCase& c, Finding& f, const Operand& stray, const std::string& goal) {
  const Holder& held = *stray.held;
  const std::string top = held.top.empty() ? "the " + held.type : "`" + held.top + "`";
  if (!held.container.empty()) {
    const std::string cure = held.container_type == "dict" ? "ModuleDict" : "ModuleList";
    f.fix.push_back(fmt::format(
        "`{}` of {} is a plain {}, and the modules in it do not move with the model: use `{} = nn.{}(...)`",
        held.container, held.container_of, held.container_type, held.container, cure));
    return true;
  }
  const bool model_is_here = c.model() && c.model()->device == stray.device;
  if (held.part && model_is_here) {
    const std::string name = c.model()->name.empty() ? "model" : c.model()->name;
    f.fix.push_back(fmt::format(
        "move the whole model before training: `{}.to(device)`, before the optimizer is made", name));
    return true;
  }
  if (held.kind == "plain") {
    if (!held.own) return false;
    f.fix.push_back(
        fmt::format("`.to()` does not move plain attributes: in {} use `self.register_buffer(\"{}\", ...)`",
                    held.type, held.attribute));
    return true;
  }
  if (held.part) {
    if (stray.device != "cpu") return false;  // a model on several GPUs
    f.fix.push_back(
        fmt::format("{} was not moved with the rest of the model: `{}.to(\"{}\")` after its last part is in "
                    "place, and before the optimizer is made",
                    called(stray), c.model() && !c.model()->name.empty() ? c.model()->name : "model", goal));
    return true;
  }
  if (held.top.empty()) {
    f.fix.push_back(fmt::format("move {} too: `.to(\"{}\")` where it is made", top, goal));
  } else {
    f.fix.push_back(fmt::format("move {} too: `{}.to(\"{}\")`{}", top, held.top, goal,
                                held.trains ? ", before the optimizer is made" : ""));
  }
  return true;
}

// The tensor to move is the one on the CPU, whatever the message names; between two GPUs, the one that it
// names.
const Operand* find_stray(const HostCase& c, const std::string& device, const std::string& argument) {
  const Operand* stray = argument.empty() ? nullptr : c.by_role(argument);
  if (stray != nullptr && (device != "cpu" || stray->device == device || stray->device.empty())) return stray;
  return on_device(c, device, true);
}

// Nothing can be moved from there, and what is moved there loses its data: what is missing are the weights.
void explain_no_data(const HostCase& c, Finding& f, const Operand& empty) {
  if (f.op.empty()) f.op = c.functional();
  if (f.op.empty() && c.module() && c.module()->attribute("in_features")) f.op = "linear";
  const std::string name = called(empty);
  f.argument = empty.role.empty() ? empty.name : empty.role;
  f.tensor = TensorInfo{empty.shape, empty.dtype, empty.device};
  f.summary =
      fmt::format("{}{} is on meta: it has a size and no data, so no checkpoint that was loaded has it",
                  f.op.empty() ? "" : f.op + ": ", name);
  const std::string part = name.substr(0, name.rfind('.'));
  std::string where = "...";
  for (const Operand& operand : c.operands()) {
    if (where == "..." && operand.device != "meta" && !operand.device.empty())
      where = '"' + operand.device + '"';
  }
  f.fix.push_back(fmt::format(
      "load a checkpoint that has `{}`: model.load_state_dict(state, assign=True); all that are still empty: "
      "[n for n, p in model.named_parameters() if p.is_meta]",
      name));
  f.fix.push_back(
      fmt::format("if `{0}` is new: give it memory and first values, of this part alone (the rest would lose "
                  "what was loaded): {0}.to_empty(device={1}), then {0}.reset_parameters() or your own",
                  part, where));
}

void explain_devices(const HostCase& c, Finding& f, std::string first, std::string second,
                     const std::string& argument) {
  const Operand* empty = on_device(c, "meta", true);
  if (empty && !empty->user && called(*empty).find('.') != std::string::npos) {
    return explain_no_data(c, f, *empty);
  }
  if (f.op.empty()) f.op = c.functional();
  if (f.op.empty() && c.module() && c.module()->attribute("in_features")) f.op = "linear";
  if (second == "cpu") std::swap(first, second);
  const Operand* stray = find_stray(c, first, argument);
  const Operand* other = nullptr;
  for (const Operand& operand : c.operands()) {
    if (other == nullptr && &operand != stray && operand.device == second) other = &operand;
  }
  const std::string name = stray && !called(*stray).empty() ? called(*stray)
                           : argument.empty()               ? "a tensor"
                                                            : "argument `" + argument + "`";
  const std::string seat = stray && !stray->device.empty() ? stray->device : first;
  const std::string goal = seat == second ? first : second;
  f.argument = stray == nullptr ? argument : stray->role.empty() ? stray->name : stray->role;
  if (stray) f.tensor = TensorInfo{stray->shape, stray->dtype, stray->device};
  f.summary = fmt::format("{}{} is on {} but {} is on {}", f.op.empty() ? "" : f.op + ": ", name, seat,
                          other && !called(*other).empty() ? called(*other) : "the other tensor", goal);
  const bool kept = stray && stray->held && move_holder(c, f, *stray, goal);
  if (kept && stray->held->kind == "plain" && stray->named()) {
    f.fix.push_back(fmt::format("or here: `{}.to(\"{}\")`", name, goal));
  }
  const bool state = stray && !stray->name.starts_with("param") && !stray->name.starts_with("grad");
  if (!kept && state && in_optimizer(c) && seat == "cpu") {
    f.summary = fmt::format("the optimizer's state is on cpu but its parameters are on {}", goal);
    f.fix.push_back(
        "move the model first (`model.to(device)`), then make the optimizer and load its state: "
        "load_state_dict puts the state where the parameters are");
  } else if (!kept && stray && stray->named()) {
    f.fix.push_back(other && other->user ? fmt::format("use `{}.to({}.device)`", name, other->name)
                                         : fmt::format("use `{}.to(\"{}\")`", name, goal));
  } else if (!kept) {
    f.fix.push_back(stray && !stray->name.empty()
                        ? fmt::format("`{}` has to be on {}: move it before this line", stray->name, goal)
                        : fmt::format("move it: `tensor.to(\"{}\")`", goal));
  }
  if (const std::string where = places(c); !where.empty()) f.fix.push_back(where);
  if (c.module() && stray && stray->user && !kept && !(other && !other->user)) {
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

// torch.nn.Module.load_state_dict copies into the parameters that are there: into one on meta, nothing.
void no_data(const HostCase&, Finding& f) {
  f.summary = "a tensor on the meta device has a size and no data: nothing can be copied out of it";
  f.fix.push_back(
      "if the model was made without memory (init_empty_weights(), torch.device(\"meta\")): load its weights "
      "by "
      "model.load_state_dict(state, assign=True); without assign they are not taken");
  f.fix.push_back(
      "to move a model that is still empty: model.to_empty(device=...), then load the weights; which are "
      "empty: "
      "[n for n, p in model.named_parameters() if p.is_meta]");
}

void on_cpu_expected_gpu(const HostCase& c, Finding& f) {
  if (!c.capture(2).empty()) f.op = c.capture(2);
  explain_devices(c, f, "cpu", "cuda", c.capture(1));
}

void input_and_weight(const HostCase& c, Finding& f) {
  const std::string_view type = c.capture(1);
  const bool input_on_gpu = type.starts_with("torch.cuda.") || type.find("CUDA") != std::string_view::npos;
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
  const std::string& device = c.capture(1);
  const Operand* index = on_device(c, device, false);
  const std::string name = index ? index->name : "index";
  const Operand* table = on_device(c, device, true);
  if (device == "cpu") {  // an index on the CPU fits every table: this one is on a GPU
    f.argument = "self";
    const std::string seat = index ? index->device : "a GPU";
    const std::string goal = index == nullptr ? "index.device"
                             : index->user    ? name + ".device"
                                              : "\"" + index->device + "\"";
    const std::string what = table && table->named() ? called(*table) : "the indexed tensor";
    f.summary = fmt::format("x[index]: {} is on cpu but {} is on {}", what, name, seat);
    if (table) f.tensor = TensorInfo{table->shape, table->dtype, table->device};
    f.fix.push_back(
        table && table->named()
            ? fmt::format("use `{}.to({})`, best once, where it is made", what, goal)
            : fmt::format("move the indexed tensor: `.to({})`, best once, where it is made", goal));
    f.fix.push_back(fmt::format("or, if what follows is on the CPU: `{}.cpu()`", name));
    return;
  }
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
  if (c.passes_through("torch/utils/data/sampler.py")) {
    if (c.passes_through("torch/utils/_device.py")) {
      f.summary = fmt::format("the DataLoader's generator is on {}, but the default device is {}",
                              c.capture(2), c.capture(1));
    }
    f.fix.push_back(
        fmt::format("use `DataLoader(..., generator=torch.Generator(device=\"{}\"))`", c.capture(1)));
    return;
  }
  f.fix.push_back(fmt::format("use `torch.Generator(device=\"{}\")`", c.capture(1)));
}

}  // namespace

std::span<const HostErrorRow> device_rows() {
  static const auto* const rows = new std::vector<HostErrorRow>{
      {"device.two",
       "RuntimeError",
       R"(Expected all tensors to be on the same device, but found at least two devices, ([a-z]+(?::\d+)?) and ([a-z]+(?::\d+)?)!(?: \(when checking argument for argument (\w+) in method (\w+)\))?)",
       "Expected all tensors to be on the same device",
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
        "argument mat2 in method wrapper_mm)"},
       nullptr,
       {.refine = Refine::kMethodInMessage}},
      {"device.argument",
       "RuntimeError",
       R"(Expected all tensors to be on the same device, but got (\w+) is on ([a-z]+(?::\d+)?), different from other tensors on ([a-z]+(?::\d+)?)(?: \(when checking argument in method (\w+)\))?)",
       "Expected all tensors to be on the same device",
       kDevice,
       "",
       "",
       named_argument,
       {"Expected all tensors to be on the same device, but got index is on cpu, different from other "
        "tensors on cuda:0 (when checking "
        "argument in method wrapper_CUDA__index_select)"},
       nullptr,
       {.refine = Refine::kMethodInMessage}},
      {"device.object",
       "RuntimeError",
       R"(Expected object of (?:device type|backend) (\w+) but got (?:device type|backend) (\w+) for (?:argument #\d+ '(\w+)'(?: in call to (?:_th_)?(\w+))?|sequence element))",
       "Expected object of backend|Expected object of device type",
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
       "but expected it to be on GPU|but expected them to be on GPU",
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
       "to have the same device as tensor for argument",
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
       "expected device...but got device",
       kDevice,
       "",
       "",
       pair_of_devices,
       {"expected device cpu but got device cuda:0"}},
      {"device.binary_old",
       "RuntimeError",
       R"(binary_op\(\): expected both inputs to be on same device, but input a is on ([a-z]+(?::\d+)?) and input b is on ([a-z]+(?::\d+)?))",
       "expected both inputs to be on same device",
       kDevice,
       "",
       "",
       pair_of_devices,
       {"binary_op(): expected both inputs to be on same device, but input a is on cuda:0 and input b is on "
        "cpu"}},
      {"device.self_mask",
       "RuntimeError",
       R"(expected self and mask to be on the same device, but got mask on ([a-z]+(?::\d+)?) and self on ([a-z]+(?::\d+)?))",
       "expected self and mask to be on the same device",
       kDevice,
       "masked_fill",
       "mask",
       pair_of_devices,
       {"expected self and mask to be on the same device, but got mask on cpu and self on cuda:0"}},
      {"device.meta",
       "RuntimeError",
       R"(Tensor on device ([a-z]+(?::\d+)?) is not on the expected device ([a-z]+(?::\d+)?)!)",
       "is not on the expected device",
       kDevice,
       "",
       "",
       pair_of_devices,
       {"Tensor on device cpu is not on the expected device meta!"}},
      {"device.meta_data",
       "NotImplementedError",
       R"(Cannot copy out of meta tensor; no data!)",
       "Cannot copy out of meta tensor",
       kDevice,
       "copy",
       "",
       no_data,
       {"Cannot copy out of meta tensor; no data!",
        "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
        "torch.nn.Module.to() when moving module from meta to a different device."}},
      {"device.input_on_gpu",
       "RuntimeError",
       R"(Input type \((torch\.cuda\.\w+Tensor|CUDA\w+Type|Variable\[CUDA\w+Type\])\) and (weight|bias) type \((torch\.\w+Tensor|CPU\w+Type|Variable\[CPU\w+Type\])\) should be the same)",
       "Input type (CUDA...and weight type (CPU...should be the same|Input type (Variable[CUDA...and weight "
       "type "
       "(Variable[CPU...should be the same|Input type (torch.cuda...and weight type (torch...should be the "
       "same|Input type (torch.cuda...and "
       "bias type (torch...should be the same",
       kDevice,
       "conv",
       "weight",
       input_and_weight,
       {"Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
        "Input type (Variable[CUDAFloatType]) and weight type (Variable[CPUFloatType]) should be the same",
        "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same or input "
        "should be a MKLDNN tensor and "
        "weight is a dense tensor"}},
      {"device.input_on_cpu",
       "RuntimeError",
       R"(Input type \((torch\.\w+Tensor|CPU\w+Type|Variable\[CPU\w+Type\])\) and (weight|bias) type \((torch\.cuda\.\w+Tensor|CUDA\w+Type|Variable\[CUDA\w+Type\])\) should be the same)",
       "Input type (CPU...and weight type (CUDA...should be the same|Input type (Variable[CPU...and weight "
       "type "
       "(Variable[CUDA...should be the same|Input type (torch...and weight type (torch.cuda...should be the "
       "same|Input type (torch...and bias "
       "type (torch.cuda...should be the same",
       kDevice,
       "conv",
       "input",
       input_and_weight,
       {"Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same",
        "Input type (CPUFloatType) and weight type (CUDAFloatType) should be the same or input should be a "
        "MKLDNN tensor and weight is a dense tensor"}},
      {"device.rnn",
       "RuntimeError",
       R"(Input and (parameter|hidden) tensors are not at the same device, found input tensor at ([a-z]+(?::\d+)?) and (?:parameter|hidden) tensor at ([a-z]+(?::\d+)?))",
       "tensors are not at the same device",
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
       "indices should be either on",
       kDevice,
       "x[index]",
       "index",
       index_device,
       {"indices should be either on cpu or on the same device as the indexed tensor (cuda:0)"}},
      {"device.data_parallel",
       "RuntimeError",
       R"(module must have its parameters and buffers on device ([a-z]+(?::\d+)?) \(device_ids\[0\]\) but found one of them on device: ([a-z]+(?::\d+)?))",
       "module must have its parameters and buffers on device",
       kDevice,
       "DataParallel",
       "module",
       data_parallel,
       {"module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them "
        "on device: cpu"}},
      {"device.generator",
       "RuntimeError",
       R"(Expected a '([a-z]+)(?::\d+)?' (?:device type for generator|generator device) but found '([a-z]+)')",
       "device type for generator|generator device but found",
       kDevice,
       "",
       "generator",
       generator,
       {"Expected a 'cuda' device type for generator but found 'cpu'",
        "Expected a 'cuda:0' generator device but found 'cpu'"}},
  };
  return *rows;
}

}  // namespace trapline::diagnose
