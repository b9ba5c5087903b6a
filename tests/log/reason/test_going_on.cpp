// What a log says of how a program went on after an error, and what it does not excuse.
#include <gtest/gtest.h>

#include <string>

#include "reason_case.hpp"

namespace trapline {
namespace {

using enum Cause;

std::string raised(std::string_view error) {
  return std::string(
             "ERROR:    Exception in ASGI application\nTraceback (most recent call last):\n  File "
             "\"/srv/app.py\", line 4, in check\n    raise error\n")
      .append(error)
      .append("\n");
}

constexpr std::string_view kAnswer = "INFO:     10.0.0.7:3333 - \"POST /v1/completions HTTP/1.1\" 200 OK\n";

TEST(GoingOn, ARequestThatAServerRefusedIsNoFailureOfTheServer) {
  const std::string refused = raised("vllm.exceptions.VLLMValidationError: the prompt has 9000 tokens");
  EXPECT_EQ(explain(refused + std::string(kAnswer)).verdict, Verdict::kClean);
  EXPECT_NE(explain(refused).verdict, Verdict::kClean);
  // Of any other exception a later answer tells nothing.
  EXPECT_EQ(explain(raised("RuntimeError: the worker is gone") + std::string(kAnswer)).verdict,
            Verdict::kFault);
}

TEST(GoingOn, ANodeThatComfyUiLeavesOut) {
  const std::string node =
      "Traceback (most recent call last):\n  File \"/c/nodes.py\", line 1993, in load\n    import numba\n"
      "SystemError: initialization of _internal failed without raising an exception\n";
  const std::string_view without = "Cannot import /c/custom_nodes/was module for custom nodes: _internal\n";
  const std::string_view end =
      "Requested to load SDXL\nLoading 1 new model\ngot prompt\nPrompt executed in 15.89 seconds\n";
  EXPECT_EQ(explain(node + std::string(without) + std::string(end)).verdict, Verdict::kClean);
  EXPECT_EQ(explain(node + std::string(end)).verdict, Verdict::kFault);
}

TEST(GoingOn, AnotherWayThatIsTakenAtOnce) {
  const std::string_view error =
      "2026-01-02 03:04:05,678 - app - ERROR - Failed to initialize the codebook\n";
  const std::string_view way = "2026-01-02 03:04:05,679 - app - INFO - Falling back to random init\n";
  const std::string_view end = "2026-01-02 03:05:05,679 - app - INFO - Finetuning completed successfully!\n";
  EXPECT_EQ(explain(std::string(error).append(way).append(end)).verdict, Verdict::kClean);
  EXPECT_EQ(explain(std::string(error).append(end)).verdict, Verdict::kUnknown);
}

TEST(GoingOn, ALevelAloneIsNoFailureWhereTheLogEndsInSuccess) {
  const std::string level = "CRITICAL:app:Starting finetuning\n";
  EXPECT_EQ(explain(level + "INFO:app:Finetuning done!\n").verdict, Verdict::kClean);
  EXPECT_EQ(explain(level + "INFO:app:step 2\n").verdict, Verdict::kUnknown);
}

TEST(GoingOn, AStackThatALoggerShowsBelowAnErrorIsNoCutTraceback) {
  const auto stack = [](std::string_view level) {
    std::string text;
    for (const std::string_view line :
         {"Compiling model again", "  File \"/v/model.py\", line 1475, in forward", "    return self.run(x)"})
      text.append(level).append(" 07-16 20:02:48 [decorators.py:321] ").append(line).append("\n");
    return text + "epoch 1 loss 0.4\nepoch 2 loss 0.3\nepoch 3 loss 0.2\nepoch 4 loss 0.1\n";
  };
  EXPECT_EQ(explain(stack("WARNING")).verdict, Verdict::kClean);
  EXPECT_EQ(explain(stack("ERROR")).verdict, Verdict::kUnknown);
}

TEST(GoingOn, AMessageThatIsOnlyAPlaceGoesOnInTheNextLine) {
  EXPECT_EQ(
      root("RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534]\nConnection closed "
           "by peer [127.0.0.1]:58054\n")
          .cause,
      kPeerFailure);
}

TEST(GoingOn, AnErrorThatNamesAnOptionIsTheProgramsOwn) {
  const Finding f = root(
      "Traceback (most recent call last):\n  File \"/v/numa.py\", line 254, in node\n    raise "
      "RuntimeError(\n"
      "RuntimeError: NUMA binding was requested, but the GPU-to-NUMA topology could not be detected. Pass "
      "--numa-bind-nodes explicitly or disable --numa-bind.\n");
  EXPECT_EQ(f.cause, kNotCuda);
  EXPECT_EQ(f.certainty, Certainty::kLikely);
}

TEST(GoingOn, LinesThatHadNoRow) {
  const std::pair<std::string_view, Cause> cases[] = {
      {"NVRM: krcWatchdog_IMPL: RC watchdog: GPU is probably locked!\n", kHardwareOrDriver},
      {"torch.AcceleratorError: CUDA error: no kernel image is available ...  <- bf16\n", kArchMismatch},
      {"  what():  This program was not compiled for SM 75\n: cudaErrorInvalidDevice: invalid device "
       "ordinal\n",
       kArchMismatch},
      {"torch._inductor.exc.TritonMissing: Cannot find a working triton installation. Either the package is "
       "not installed or it is too old.\n",
       kNotCuda},
      {"[E] [graph.cpp::uses::519] Error Code 9: Internal Error (Floor_49: IUnaryLayer cannot be used to "
       "compute a shape tensor)\n",
       kNotCuda},
      {"AssertionError: Tried to load weights of size torch.Size([61, 30])to a parameter of size "
       "torch.Size([61, 18])\n",
       kShapeMismatch}};
  for (const auto& [text, cause] : cases) EXPECT_EQ(root(text).cause, cause) << text;
}

TEST(GoingOn, OrdinaryLastLines) {
  for (const std::string_view end :
       {"GPU Epilog Script v0.30", "  - Better collective operations (not tested here)",
        "val loss improved from inf to 0.3", "Connection to node01 closed.", "finished without errors"})
    EXPECT_EQ(explain(std::string("step 1\n").append(end).append("\n")).verdict, Verdict::kClean) << end;
}

TEST(GoingOn, AProviderThatOnnxRuntimeGoesOnWithout) {
  const std::string error =
      "EP Error onnxruntime_pybind_state.cc:857 CUDA_PATH is set but CUDA wasnt able to be loaded.\n"
      " when using ['CUDAExecutionProvider']\n";
  EXPECT_EQ(
      explain(error + "Falling back to ['CPUExecutionProvider'] and retrying.\nsaved out.png\n").verdict,
      Verdict::kClean);
  EXPECT_EQ(root(error).cause, kArchMismatch);
}

TEST(GoingOn, WhatPythonCannotRaiseItPrints) {
  const std::string_view ignored =
      "Exception ignored in: <bound method Session.__del__ of <Session object at 0x7fbb>>\n";
  const std::string_view traceback =
      "Traceback (most recent call last):\n  File \"/p/session.py\", line 738, in __del__\n"
      "TypeError: 'NoneType' object is not callable\n";
  EXPECT_EQ(explain("saved models\n" + std::string(ignored).append(traceback)).verdict, Verdict::kClean);
  EXPECT_NE(explain("saved models\n" + std::string(traceback)).verdict, Verdict::kClean);
  EXPECT_NE(explain(std::string(ignored).append("step 1\nstep 2\n").append(traceback)).verdict,
            Verdict::kClean)
      << "its own traceback is missing, this one is another's";
  // What comes behind it is the program's own again, and a fault of the GPU is one wherever it is printed.
  EXPECT_NE(explain(std::string(ignored).append(traceback).append(traceback).append(
                        "ValueError: no more batches\n"))
                .verdict,
            Verdict::kClean);
  EXPECT_EQ(root(std::string(ignored).append(
                     "Traceback (most recent call last):\n  File \"/p/a.py\", line 1, in f\n"
                     "    g()\nRuntimeError: CUDA error: an illegal memory access was "
                     "encountered\n"))
                .cause,
            kIllegalMemoryAccess);
}

}  // namespace
}  // namespace trapline
