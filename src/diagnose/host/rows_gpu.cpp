// Which process may use the GPU, which GPU is there, and what has to stay in the host's memory.
#include <fmt/format.h>

#include "diagnose/host/case.hpp"
#include "diagnose/host/rows.hpp"

namespace trapline::diagnose {
namespace {

void forked(const HostCase& c, Finding& f) {
  const bool worker = c.passes_through("torch/utils/data/_utils/worker.py");
  f.summary = fmt::format("CUDA was in use before this {} was forked: a forked process cannot use it",
                          worker ? "DataLoader worker" : "process");
  if (worker) {
    f.fix.push_back(
        "keep the data set and collate_fn on the CPU, and move each batch in the training loop: "
        "`x = x.to(device)`");
    f.fix.push_back("or `DataLoader(..., num_workers=0)`, or `multiprocessing_context=\"spawn\"`");
  } else {
    f.fix.push_back(
        "start the processes anew: `torch.multiprocessing.set_start_method(\"spawn\")` at the program's "
        "start, under `if __name__ == \"__main__\":`");
    f.fix.push_back("or use CUDA in the children only, not before they are started");
  }
}

void pinned(const HostCase& c, Finding& f) {
  const bool loader = c.passes_through("_utils/pin_memory.py");
  f.summary = fmt::format("pin_memory: {} on a GPU already; only the host's memory can be pinned",
                          loader ? "the batch is" : "the tensor is");
  if (loader) {
    f.fix.push_back("use `pin_memory=False` in the DataLoader, or keep the data set on the CPU");
  } else {
    f.fix.push_back("leave `.pin_memory()` out, or call it before the tensor is moved to the GPU");
  }
}

void lengths(const HostCase& c, Finding& f) {
  const Operand* given = c.by_role("lengths");
  if (given == nullptr && !c.operands().empty()) {
    for (const Operand& operand : c.operands()) {
      if (operand.device == c.capture(1) && operand.shape.size() == 1) given = &operand;
    }
  }
  const std::string name = given && given->user ? given->name : "lengths";
  f.summary = fmt::format("pack_padded_sequence: {} is on {}, but the lengths are read on the CPU", name,
                          c.capture(1));
  if (given) f.tensor = TensorInfo{given->shape, given->dtype, given->device};
  f.fix.push_back(fmt::format("use `{}.cpu(){}`", name, c.capture(2) == "Long" ? "" : ".long()"));
}

void saved_on_missing(const HostCase& c, Finding& f) {
  if (c.capture(1).empty()) {
    f.summary = "torch.load: the file holds CUDA tensors, and no GPU is available here";
    f.fix.push_back("use `torch.load(..., map_location=\"cpu\")`");
    return;
  }
  f.summary = fmt::format("torch.load: the file holds tensors of cuda:{}, but this process sees {} GPU{}",
                          c.capture(1), c.capture(2), c.capture(2) == "1" ? "" : "s");
  f.fix.push_back(fmt::format("use `torch.load(..., map_location=\"{}\")`, and move the model after that",
                              c.number(2) > 0 ? "cuda:0" : "cpu"));
  f.fix.push_back("map_location=\"cpu\" fits every machine");
}

void no_such_gpu(const HostCase& c, Finding& f) {
  const auto [count, index, stand_ins] = c.facts().gpus.value_or(GpusFact{});
  const std::string asked = index >= 0 ? fmt::format("cuda:{}", index) : "the GPU that was asked for";
  const std::string seen = count > 0 ? fmt::format(": this process sees {} GPU{}{}", count,
                                                   count == 1 ? "" : "s", count == 1 ? ", cuda:0" : "")
                                     : std::string();
  f.summary = fmt::format("{} is not there{}", asked, seen);
  if (count > 1) {
    f.fix.push_back(fmt::format("use cuda:0 to cuda:{}", count - 1));
  } else {
    f.fix.push_back(count == 1 ? "use cuda:0" : "look at `torch.cuda.device_count()`");
  }
  if (stand_ins > 0 && index >= 0) {
    f.fix.push_back(fmt::format("under --cpu TRAPLINE_CPU_DEVICES={} shows {} GPUs", index + 1, index + 1));
    return;
  }
  f.fix.push_back(
      "CUDA_VISIBLE_DEVICES hides GPUs and counts the others from 0; with torchrun start one process for "
      "each "
      "GPU");
}

void wrapped_on_cpu(const HostCase& c, Finding& f) {
  const std::string& devices = c.capture(2);
  if (devices.find("cuda") == std::string::npos) {
    const Shape ids = c.shape(1);
    f.summary =
        fmt::format("DistributedDataParallel: the module is on the CPU, but device_ids is {}", c.capture(1));
    f.fix.push_back(
        fmt::format("move the model before it is wrapped: `model.to({})`",
                    ids.size() == 1 ? fmt::format("\"cuda:{}\"", ids.front()) : std::string("device")));
    f.fix.push_back("to train on the CPU leave out device_ids and output_device");
    return;
  }
  f.summary = fmt::format("DistributedDataParallel: the module is on several devices, but device_ids is {}",
                          c.capture(1));
  f.fix.push_back("for a model on several GPUs leave out device_ids and output_device");
  if (devices.find("cpu") != std::string::npos) {
    f.fix.push_back("if it is meant to be on one: `model.to(device)` after its last part is in place");
  }
}

void half_gradients(const HostCase&, Finding& f) {
  f.summary = "GradScaler: the parameters are float16, and so are their gradients; it takes float32 ones";
  f.fix.push_back(
      "keep the model in float32 and let autocast cast: no `.half()`, no `torch_dtype=torch.float16`");
  f.fix.push_back("or train in bfloat16 without a GradScaler (transformers: `bf16=True`)");
}

}  // namespace

std::span<const HostErrorRow> gpu_rows() {
  static const auto* const rows = new std::vector<HostErrorRow>{
      {"gpu.forked",
       "RuntimeError",
       R"(Cannot re-initialize CUDA in forked subprocess)",
       "Cannot re-initialize CUDA in forked subprocess",
       Cause::kNotCuda,
       "",
       "",
       forked,
       {"Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the "
        "'spawn' start method"}},
      {"gpu.pinned",
       "RuntimeError",
       R"(cannot pin 'torch\.cuda\.\w+' only dense CPU tensors can be pinned)",
       "only dense CPU tensors can be pinned",
       Cause::kDeviceMismatch,
       "pin_memory",
       "self",
       pinned,
       {"cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned"}},
      {"gpu.lengths",
       "RuntimeError",
       R"('lengths' argument should be a 1D CPU int64 tensor, but got \d+D ([a-z]+:\d+) (\w+) tensor)",
       "argument should be a 1D CPU int64 tensor",
       Cause::kDeviceMismatch,
       "pack_padded_sequence",
       "lengths",
       lengths,
       {"'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor"}},
      {"gpu.saved_elsewhere",
       "RuntimeError",
       R"(Attempting to deserialize object on (?:a CUDA device but torch\.cuda\.is_available\(\) is False|CUDA device (\d+) but torch\.cuda\.device_count\(\) is (\d+)))",
       "Attempting to deserialize object on",
       Cause::kNotCuda,
       "torch.load",
       "map_location",
       saved_on_missing,
       {"Attempting to deserialize object on CUDA device 1 but torch.cuda.device_count() is 1. Please use "
        "torch.load with map_location to map your storages to an existing device.",
        "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you "
        "are "
        "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map "
        "your storages to the CPU."}},
      {"gpu.ordinal",
       "RuntimeError|AcceleratorError",
       R"(CUDA error: invalid device ordinal)",
       "invalid device ordinal",
       Cause::kNotCuda,
       "",
       "device",
       no_such_gpu,
       {"CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?"}},
      {"gpu.data_parallel",
       "ValueError|AssertionError",
       R"(DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or CPU modules, but got device_ids (\[[^\]]*\]), output_device .*?, and module parameters \{(.*)\})",
       "device_ids and output_device arguments only work with",
       Cause::kDeviceMismatch,
       "DistributedDataParallel",
       "module",
       wrapped_on_cpu,
       {"DistributedDataParallel device_ids and output_device arguments only work with "
        "single-device/multiple-device GPU modules or CPU modules, but got device_ids [0], output_device 0, "
        "and module parameters {device(type='cpu')}."}},
      {"gpu.half_gradients",
       "ValueError",
       R"(Attempting to unscale FP16 gradients)",
       "Attempting to unscale FP16 gradients",
       Cause::kDtypeMismatch,
       "GradScaler.unscale_",
       "",
       half_gradients,
       {"Attempting to unscale FP16 gradients."}},
  };
  return *rows;
}

}  // namespace trapline::diagnose
