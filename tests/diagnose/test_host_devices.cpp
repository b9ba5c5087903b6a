// Which tensor is to be moved, by whom it is kept, and what a process may do with a GPU.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "diagnose/host/errors.hpp"
#include "reading.hpp"

namespace trapline::diagnose {
namespace {

using nlohmann::json;

constexpr auto kWeight =
    "Expected all tensors to be on the same device, but got weight is on cpu, different from other tensors "
    "on "
    "cuda:0 (when checking argument in method wrapper_CUDA_nll_loss_forward)";

json tensor(const char* name, const char* role, const char* device, bool user = true) {
  return {{"name", name},       {"as", role},       {"shape", {4, 3}},
          {"dtype", "float32"}, {"device", device}, {"user", user}};
}

json held(const char* kind, const char* top, bool part, bool trains) {
  return {{"attribute", "weight"}, {"kind", kind}, {"type", "CrossEntropyLoss"},
          {"name", top},           {"top", top},   {"part", part},
          {"trains", trains},      {"own", false}};
}

Finding diagnose(const char* message, json more = json::object(), const char* exception = "RuntimeError") {
  more["exception"] = exception;
  more["message"] = message;
  const auto finding = diagnose_host_error(more);
  EXPECT_TRUE(finding);
  return finding.value_or(Finding{});
}

Finding of_weight(const json& holder, const json& model) {
  json weight = tensor("weight", "weight", "cpu", false);
  weight["held"] = holder;
  json facts{{"operands", {tensor("out", "input", "cuda:0"), weight}},
             {"module", {{"name", ""}, {"type", "CrossEntropyLoss"}}}};
  if (!model.is_null()) facts["model"] = model;
  return diagnose(kWeight, facts);
}

TEST(HostDevices, ALossIsMovedByItsName) {
  const Finding f = of_weight(held("buffer", "loss_fn", false, false), nullptr);
  EXPECT_EQ(f.summary, "nll_loss_forward: loss_fn.weight is on cpu but out is on cuda:0");
  EXPECT_EQ(f.fix[0], "move `loss_fn` too: `loss_fn.to(\"cuda:0\")`");
  EXPECT_EQ(f.fix[1], "out is on cuda:0, loss_fn.weight is on cpu");
}

TEST(HostDevices, TheWholeModelIsMovedOnlyWhereItIsOnTheCpu) {
  const json model{{"name", "net"}, {"type", "Net"}, {"device", "cpu"}};
  EXPECT_EQ(of_weight(held("parameter", "net", true, true), model).fix[0],
            "move the whole model before training: `net.to(device)`, before the optimizer is made");
  const json mixed{{"name", "net"}, {"type", "Net"}};
  EXPECT_EQ(
      of_weight(held("parameter", "net", true, true), mixed).fix[0],
      "net.weight was not moved with the rest of the model: `net.to(\"cuda:0\")` after its last part is in "
      "place, and before the optimizer is made");
}

TEST(HostDevices, WithoutFactsNobodySaysThatTheModelIsToMove) {
  const Finding f = diagnose(
      kWeight, {{"operands", {tensor("out", "", "cuda:0"), tensor("weight", "weight", "cpu", false)}},
                {"module", {{"name", "fc"}, {"type", "Linear"}}}});
  EXPECT_EQ(f.fix[0], "`weight` has to be on cuda:0: move it before this line");
  EXPECT_EQ(f.fix.size(), 2U);
}

TEST(HostDevices, AModuleInAPlainList) {
  json holder = held("parameter", "norm", false, true);
  holder["container"] = {{"name", "self.norms"}, {"type", "list"}, {"of", "Net"}};
  const json model{{"name", "net"}, {"type", "Net"}, {"device", "cuda:0"}};
  EXPECT_EQ(of_weight(holder, model).fix[0],
            "`self.norms` of Net is a plain list, and the modules in it do not move with the model: use "
            "`self.norms = nn.ModuleList(...)`");
  holder["container"]["type"] = "dict";
  EXPECT_NE(of_weight(holder, model).fix[0].find("nn.ModuleDict(...)"), std::string::npos);
}

TEST(HostDevices, APlainAttributeBecomesABuffer) {
  json holder = held("plain", "net", true, true);
  holder["own"] = true;
  const json model{{"name", "net"}, {"type", "Net"}, {"device", "cuda:0"}};
  EXPECT_EQ(
      of_weight(holder, model).fix[0],
      "`.to()` does not move plain attributes: in CrossEntropyLoss use `self.register_buffer(\"weight\", "
      "...)`");
}

TEST(HostDevices, TheArgumentThatALibrarysTensorWasMadeFrom) {
  json index = tensor("index", "index", "cpu", false);
  index["from"] = "edge_index";
  const Finding f = diagnose(
      "Expected all tensors to be on the same device, but got index is on cpu, different from other tensors "
      "on "
      "cuda:0 (when checking argument in method wrapper_CUDA__index_select)",
      {{"operands", {tensor("x", "src", "cuda:0"), index}}});
  EXPECT_EQ(f.summary, "index_select: edge_index is on cpu but x is on cuda:0");
  EXPECT_EQ(f.fix[0], "use `edge_index.to(x.device)`");
}

TEST(HostDevices, TheTensorOnTheCpuMovesWhateverTheMessageNames) {
  const Finding f = diagnose(
      "Expected all tensors to be on the same device, but got mat2 is on cuda:0, different from other "
      "tensors on "
      "cpu (when checking argument in method wrapper_CUDA_mm)",
      {{"operands", {tensor("w", "mat2", "cuda:0"), tensor("x", "self", "cpu")}}});
  EXPECT_EQ(f.summary, "mm: x is on cpu but w is on cuda:0");
  EXPECT_EQ(f.fix[0], "use `x.to(w.device)`");
}

TEST(HostDevices, ATableOnTheCpuMovesToItsIndex) {
  const Finding f =
      diagnose("indices should be either on cpu or on the same device as the indexed tensor (cpu)",
               {{"operands", {tensor("table", "", "cpu"), tensor("t", "", "cuda:0")}}});
  EXPECT_EQ(f.summary, "x[index]: table is on cpu but t is on cuda:0");
  EXPECT_EQ(f.fix[0], "use `table.to(t.device)`, best once, where it is made");
  EXPECT_EQ(f.fix[1], "or, if what follows is on the CPU: `t.cpu()`");
}

TEST(HostDevices, TheStateOfAnOptimizer) {
  const Finding f = diagnose(
      "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
      {{"operands", {tensor("buf", "", "cpu", false), tensor("grad", "", "cuda:0", false)}},
       {"stack", {{{"file", "/x/torch/optim/sgd.py"}, {"line", 1}, {"code", "buf.add_(grad)"}}}}});
  EXPECT_EQ(f.summary, "the optimizer's state is on cpu but its parameters are on cuda:0");
  EXPECT_EQ(f.fix[0].find("move the model first (`model.to(device)`), then make the optimizer"), 0U);
}

TEST(HostDevices, AParameterInAnOptimizerIsNoState) {
  const Finding f = diagnose(
      "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
      {{"operands", {tensor("param", "", "cpu", false), tensor("lr", "", "cuda:0", false)}},
       {"stack", {{{"file", "/x/torch/optim/sgd.py"}, {"line", 1}, {"code", "x"}}}}});
  EXPECT_EQ(f.summary, "param is on cpu but lr is on cuda:0");
}

TEST(HostDevices, TheGeneratorOfADataLoader) {
  const Finding f = diagnose("Expected a 'cuda' device type for generator but found 'cpu'",
                             {{"stack",
                               {{{"file", "/x/torch/utils/data/sampler.py"}, {"line", 1}, {"code", ""}},
                                {{"file", "/x/torch/utils/_device.py"}, {"line", 1}, {"code", ""}}}}});
  EXPECT_EQ(f.summary, "the DataLoader's generator is on cpu, but the default device is cuda");
  EXPECT_EQ(f.fix[0], "use `DataLoader(..., generator=torch.Generator(device=\"cuda\"))`");
}

TEST(HostDevices, NumpyOverAListOfTensors) {
  json first = tensor("xs[0]", "", "cuda:0");
  first["requires_grad"] = true;
  json facts{{"operands", {first, tensor("xs[1]", "", "cuda:0")}}, {"call", "np.sum(xs, 0)"}};
  constexpr auto kMessage = "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy";
  EXPECT_EQ(diagnose(kMessage, facts, "TypeError").fix[0],
            "use `torch.stack(xs).sum(0)`: it stays on cuda:0");
  facts["call"] = "plt.plot(xs)";
  const Finding f = diagnose(kMessage, facts, "TypeError");
  EXPECT_EQ(f.fix[0], "use `xs[0].detach().cpu().numpy()`");
  EXPECT_EQ(
      f.fix[1],
      "`.detach()` ends the gradient here: what the loss is made of has to stay with torch's own functions");
}

TEST(HostDevices, AGpuThatIsNotThere) {
  constexpr auto kMessage = "CUDA error: invalid device ordinal\nGPU device may be out of range";
  const Finding f = diagnose(kMessage, {{"gpus", {{"index", 3}, {"count", 2}}}}, "AcceleratorError");
  EXPECT_EQ(f.summary, "cuda:3 is not there: this process sees 2 GPUs");
  EXPECT_EQ(f.fix[0], "use cuda:0 to cuda:1");
  EXPECT_EQ(diagnose(kMessage, {{"gpus", {{"index", 1}, {"count", 1}, {"stand_ins", 1}}}}, "AcceleratorError")
                .fix[1],
            "under --cpu TRAPLINE_CPU_DEVICES=2 shows 2 GPUs");
  EXPECT_EQ(diagnose(kMessage).summary, "the GPU that was asked for is not there");
  EXPECT_EQ(diagnose(kMessage, {{"gpus", {{"index", "x"}, {"count", json::array()}}}}).summary,
            "the GPU that was asked for is not there");
}

TEST(HostDevices, AForkedWorkerOfADataLoader) {
  constexpr auto kMessage =
      "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing";
  EXPECT_EQ(diagnose(kMessage).fix[0].find("start the processes anew: "), 0U);
  const Finding f =
      diagnose(kMessage, {{"stack", {{{"file", "/x/torch/utils/data/_utils/worker.py"}, {"line", 1}}}}});
  EXPECT_EQ(f.summary,
            "CUDA was in use before this DataLoader worker was forked: a forked process cannot use it");
  EXPECT_EQ(f.fix[0],
            "keep the data set and collate_fn on the CPU, and move each batch in the training loop: "
            "`x = x.to(device)`");
}

TEST(HostDevices, WhatStaysOnTheHost) {
  const Finding f =
      diagnose("'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Int tensor",
               {{"operands", {{{"name", "n"}, {"as", "lengths"}, {"shape", {4}}, {"device", "cuda:0"}}}}});
  EXPECT_EQ(f.fix[0], "use `n.cpu().long()`");
  EXPECT_EQ(f.cause, Cause::kDeviceMismatch);
}

TEST(HostDevices, AFileOfAnotherMachine) {
  const Finding f = diagnose(
      "Attempting to deserialize object on CUDA device 1 but torch.cuda.device_count() is 1. Please use "
      "torch.load");
  EXPECT_EQ(f.summary, "torch.load: the file holds tensors of cuda:1, but this process sees 1 GPU");
  EXPECT_EQ(f.fix[0], "use `torch.load(..., map_location=\"cuda:0\")`, and move the model after that");
}

TEST(HostDevices, AModuleThatIsWrappedOnTheCpu) {
  const Finding f = diagnose(
      "DistributedDataParallel device_ids and output_device arguments only work with "
      "single-device/multiple-device GPU modules or CPU modules, but got device_ids [1], output_device 1, "
      "and "
      "module parameters {device(type='cpu')}.",
      json::object(), "ValueError");
  EXPECT_EQ(f.summary, "DistributedDataParallel: the module is on the CPU, but device_ids is [1]");
  EXPECT_EQ(f.fix[0], "move the model before it is wrapped: `model.to(\"cuda:1\")`");
}

TEST(HostDevices, OldNamesOfTypesSayWhereATensorIs) {
  for (const auto& [text, fix] : {
           std::pair{"Expected object of type torch.cuda.FloatTensor but found type torch.FloatTensor for "
                     "argument #3 "
                     "'other'",
                     "move what was made on the CPU"},
           std::pair{"Expected object of type torch.FloatTensor but found type torch.cuda.FloatTensor for "
                     "argument #2 "
                     "'weight'",
                     "move the model as well as the data"},
           std::pair{"Input type (CPUFloatType) and weight type (CUDAFloatType) should be the same",
                     "move the input"},
       }) {
    const Finding f = diagnose(text);
    EXPECT_EQ(f.cause, Cause::kDeviceMismatch) << text;
    EXPECT_TRUE(f.fix[0].starts_with(fix)) << f.fix[0];
  }
  EXPECT_EQ(diagnose("Input type (CUDAHalfType) and weight type (CUDAFloatType) should be the same").cause,
            Cause::kDtypeMismatch);
}

TEST(HostDevices, Float8IsForStorage) {
  const Finding f = diagnose("mat1 and mat2 must have the same dtype, but got Half and Float8_e4m3fn");
  EXPECT_EQ(f.summary, "matmul: mat1 is float16 but mat2 is float8_e4m3fn");
  EXPECT_TRUE(f.fix[0].starts_with("PyTorch's products do not compute in float8_e4m3fn")) << f.fix[0];
}

}  // namespace
}  // namespace trapline::diagnose
