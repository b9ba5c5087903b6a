// Whole logs, the whole way from bytes to the verdict: what only shows when reader and reasoner work
// together.
#include <gtest/gtest.h>

#include <string>

#include "explain_bytes.hpp"

namespace trapline {
namespace {

constexpr std::string_view kIndex =
    "/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:142: operator(): block: [0,0,0], thread: [86,0,0] "
    "Assertion "
    "`index >= -sizes[i] && index < sizes[i] && \"index out of bounds\"` failed.\n";

// The reader takes the bar off the line; what it said must not be lost.
TEST(ExplainLogs, ABarGluedToTheAssertionSpeaksOfTheFirstBatch) {
  const std::string header = "     Epoch   gpu_mem       box       obj       cls    labels  img_size\n";
  const std::string first = "  0%|          | 0/2750 [00:00<?, ?it/s]",
                    later = " 40%|####      | 40/99 [00:09<00:12, 4it/s]";
  for (const std::string& log :
       {header + first + std::string(kIndex), header + first + "\r" + std::string(kIndex)}) {
    const Finding f = root_of(log);
    EXPECT_EQ(f.cause, Cause::kLabelOutOfRange) << log;
    EXPECT_EQ(f.certainty, Certainty::kLikely) << log;
  }
  for (const std::string& log :
       {header + later + std::string(kIndex), header + later + "\r" + std::string(kIndex),
        header + first + "\r" + later + std::string(kIndex)})
    EXPECT_EQ(root_of(log).cause, Cause::kIndexOutOfRange) << log;
}

// A custom kernel's assertion is only told for sure from a whole line with a file: pieces of one of PyTorch's
// look the same.
TEST(ExplainLogs, PiecesOfAnAssertionAreNotACustomKernelForSure) {
  const std::string whole =
      "/home/u/ops/my_kernel.cu:12: my_kernel: block: [0,0,0], thread: [3,0,0] Assertion `n > k` failed.\n";
  EXPECT_EQ(root_of(whole).cause, Cause::kCustomKernelAssert);
  EXPECT_EQ(root_of(whole).certainty, Certainty::kDetermined);
  for (const std::string log :
       {"my_kernel: block: [0,0,0], thread: [3,0,0] Assertion `n > k` failed.\n",
        "/home/u/ops/my_kernel.cu:12: my_kernel: block: [0,0,0], thread: [3,0,0] Assertion `n >",
        "/home/u/ops/my_kernel.cu:12: my_kernel: block: [0,0,0], thread: [3,0,0] Assertion `n >\n k` "
        "failed.\n"}) {
    EXPECT_EQ(root_of(log).cause, Cause::kCustomKernelAssert) << log;
    EXPECT_EQ(root_of(log).certainty, Certainty::kLikely) << log;
    EXPECT_EQ(root_of(log).device_assert, true) << log;
  }
}

// Hard wraps that cut the file's name, the word or the condition: the line before and the lines behind belong
// to it.
TEST(ExplainLogs, AnAssertionInPiecesIsPutTogether) {
  const Finding f = root_of(
      "> ../aten/src/ATen/native/cuda/NLLLoss2d.cu:104: nll_loss2d_forward_ker\n"
      "> nel: block: [0,0,0], thread: [6,0,0] Assertion `t >= 0 && t < n_clas\n> ses` failed.\n");
  EXPECT_EQ(f.cause, Cause::kLabelOutOfRange);
  EXPECT_EQ(f.op, "nll_loss2d");
}

// "failed" at the end of one short line and "AssertionError" at the beginning of the next are not one
// message.
TEST(ExplainLogs, WordsOfTwoShortLinesAreNoMessage) {
  EXPECT_EQ(root_of("Error: step failed\nAssertionError: Torch not compiled with CUDA enabled\n").cause,
            Cause::kArchMismatch);
}

// A message in two lines is one failure, not an exception of the host program and what its second line says.
TEST(ExplainLogs, AWrappedMessageIsNoHostException) {
  EXPECT_EQ(
      root_of("RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:825, unhandled cuda er\nror, NCCL version "
              "2.7.8\n")
          .cause,
      Cause::kInsufficientEvidence);
}

// A bracket before a path is no progress bar.
TEST(ExplainLogs, ABracketBeforeAPathIsNoBar) {
  EXPECT_EQ(
      root_of("stderr=['../aten/src/ATen/native/cuda/NLLLoss2d.cu:104: nll_loss2d_forward_kernel: block: "
              "[0,0,0], thread: [0,0,0] Assertion `t >= 0 && t < n_classes` failed.\\n', '']\n")
          .op,
      "nll_loss2d");
}

}  // namespace
}  // namespace trapline
