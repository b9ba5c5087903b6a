// What messages of PyTorch, of servers and of loaders come to in a log.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "catalogue/wordings.hpp"
#include "reason_case.hpp"

namespace trapline {
namespace {

using enum Cause;

Cause cause_of(const std::string& line) { return root(line + "\n").cause; }

TEST(Messages, LinesOfHealthyRunsAreNoFailure) {
  for (const WordingRow& row : wording_rows()) {
    if (row.kind != WordingKind::kHint) continue;
    const bool goes_on = row.effect.if_it_goes_on;
    const std::string line = std::string(row.sample) + "\n";
    EXPECT_EQ(explain(line + (goes_on ? "epoch 3 loss 0.41\n" : "")).verdict, Verdict::kClean) << row.id;
    if (goes_on) {
      EXPECT_NE(explain(line).verdict, Verdict::kClean) << row.id;
    }
  }
}

// What TensorFlow's logger adds, or a program that asks whether there is a GPU, is no sign that it goes on.
TEST(Messages, WhatIsMissingAtTheEndIsAFailure) {
  const std::string missing =
      "E tensorflow/stream_executor/cuda/cuda_driver.cc:328] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no "
      "CUDA-capable device is detected\n";
  const std::string adds =
      "I tensorflow/stream_executor/cuda/cuda_diagnostics.cc:176] hostname: node-1\nFalse\n";
  EXPECT_EQ(root(missing + adds).cause, kHardwareOrDriver);
  EXPECT_EQ(explain(missing + adds + "Epoch 1/5 - loss: 0.41\n").verdict, Verdict::kClean);
}

TEST(Messages, AQuestionOfWhoPostedTheLogIsNotItsEnd) {
  EXPECT_EQ(explain("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0\n"
                    "epoch 3 loss 0.41\nIs this normal, or should I be worried about it?\n")
                .verdict,
            Verdict::kClean);
}

TEST(Messages, OneGradientThatIsNanIsEnoughWithoutAScaler) {
  const std::string step = " iteration 10/ 100 | lm loss: 1.4E+01 | loss scale: ";
  EXPECT_EQ(explain(step + "1.0 | grad norm: nan |\n").findings.front().cause, kNonFiniteValue);
  EXPECT_EQ(explain(step + "65536.0 | grad norm: nan |\n").verdict, Verdict::kClean);
}

TEST(Messages, AWarningMayQuoteAnExceptionAndMayBeOne) {
  EXPECT_EQ(explain("a.py:7: UserWarning: the plugin failed with ValueError: no such key\n").verdict,
            Verdict::kClean);
  EXPECT_EQ(explain("Traceback (most recent call last):\n  File \"a.py\", line 7, in <module>\n    run()\n"
                    "RuntimeWarning: overflow encountered in exp\n")
                .verdict,
            Verdict::kFault);
}

TEST(Messages, AMissingLibraryIsTheToolkitAMissingDriverTheMachine) {
  const std::string missing = ": cannot open shared object file: No such file or directory";
  EXPECT_EQ(cause_of("ImportError: libcudart.so.11.0" + missing), kArchMismatch);
  EXPECT_EQ(cause_of("ImportError: libcuda.so.1" + missing), kHardwareOrDriver);
  EXPECT_EQ(cause_of("ImportError: libGL.so.1" + missing), kNotCuda);
}

TEST(Messages, AMissingSymbolTellsWhoseItIs) {
  const std::string undefined = "ImportError: ext.cpython-310-x86_64-linux-gnu.so: undefined symbol: ";
  const Finding extension = root(undefined + "_ZN2at4_ops5zeros4callEN3c108ArrayRefIlEE\n");
  EXPECT_EQ(extension.cause, kArchMismatch);
  EXPECT_NE(extension.fix.front().find("extension"), std::string::npos);
  EXPECT_EQ(cause_of(undefined + "cudaGetDriverEntryPointByVersion"), kArchMismatch);
  EXPECT_EQ(cause_of(undefined + "_ZN5boost6system15system_categoryEv"), kNotCuda);
}

// The library's reasons decide, not that it has no operator.
TEST(Messages, WhyNoOperatorOfXformersFits) {
  const std::string none =
      "NotImplementedError: No operator found for `memory_efficient_attention_forward` with inputs:\n";
  EXPECT_EQ(root(none + "    device=cpu (supported: {'cuda'})\n").cause, kDeviceMismatch);
  EXPECT_EQ(
      root(none +
           "    requires device with capability <= (9, 0) but your GPU has capability (12, 0) (too new)\n")
          .cause,
      kArchMismatch);
  const Finding open = root(none + "    attn_bias.stride(-2) % 8 != 0\n");
  EXPECT_EQ(open.cause, kNotCuda);
  EXPECT_EQ(open.certainty, Certainty::kLikely);
}

TEST(Messages, BuffersOfTheHostAreNotTheGpus) {
  EXPECT_EQ(cause_of("ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 1073741824"),
            kOutOfMemory);
  EXPECT_EQ(cause_of("ggml_gallocr_reserve_n: failed to allocate CUDA_Host buffer of size 1073741824"),
            kNotCuda);
}

TEST(Messages, MemoryWasRefusedBeforeNvmlFailed) {
  const Finding f =
      root("RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at \"CUDACachingAllocator.cpp\":963\n");
  EXPECT_EQ(f.cause, kHardwareOrDriver);
  EXPECT_EQ(f.certainty, Certainty::kLikely);
  EXPECT_EQ(f.also, std::vector<Cause>{kOutOfMemory});
}

}  // namespace
}  // namespace trapline
