// What the reasoner makes of statuses, deaths and troubles: one test per rule.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "catalogue/wordings.hpp"
#include "reason_case.hpp"

namespace trapline {
namespace {

using enum Cause;

std::string trace(std::string_view last) {
  return "Traceback (most recent call last):\n  File \"main.py\", line 10, in <module>\n    run()\n" +
         std::string(last) + "\n";
}

bool admits(const Finding& f, Cause cause) { return std::ranges::find(f.also, cause) != f.also.end(); }

bool helps(const Finding& f, std::string_view words) {
  return std::ranges::any_of(f.fix,
                             [&](const std::string& line) { return line.find(words) != std::string::npos; });
}

TEST(Meanings, EachVendorsMachineIsAskedInItsOwnWords) {
  const Finding apple = root("kernel: asahi 206400000.gpu: ** GPU timeout nya~!!!!! **\n");
  EXPECT_EQ(apple.cause, kHardwareOrDriver);
  EXPECT_TRUE(helps(apple, "asahi lines in `dmesg`") && !helps(apple, "nvidia-smi"));
  const Finding amd =
      root("[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, signaled seq=42\n");
  EXPECT_TRUE(helps(amd, "amdgpu lines in `dmesg`") && !helps(amd, "nvidia-smi"));
}

// CUDA's word for what it does not know says nothing of memory.
TEST(Meanings, AnUnknownErrorOfAnAllocationIsNotMemory) {
  EXPECT_EQ(root("Error rank 1: cudaMalloc failed: unknown error\n").certainty, Certainty::kUnknown);
  EXPECT_EQ(root("ggml: cudaMalloc failed: out of memory\n").cause, kOutOfMemory);
}

TEST(Meanings, AShortTextCountsWhereItsLibraryIsNamed) {
  EXPECT_EQ(root("node7:12:34 [0] NCCL WARN Cuda failure 'out of memory'\n").cause, kOutOfMemory);
  EXPECT_EQ(root("cudaHostAlloc failed, ret[2], out of memory\n").cause, kOutOfMemory);
  EXPECT_EQ(explain("my cache is out of memory, dropping entries\n").verdict, Verdict::kClean);
}

TEST(Meanings, WhatATablesRowsAreIsSaidOfAGather) {
  const Finding f = root(
      "tensorflow.python.framework.errors_impl.InvalidArgumentError: indices[4,75] = -1 is "
      "not in [0, 4001)\n\t [[{{node embedding_2/embedding_lookup}}]]\n");
  EXPECT_EQ(f.cause, kEmbeddingIndexOutOfRange);
  EXPECT_EQ(f.summary, "embedding: indices[4,75] is -1, outside [0, 4001)");
  EXPECT_TRUE(helps(f, "a negative number has no row"));
  EXPECT_FALSE(helps(f, "resize_token_embeddings"));
}

TEST(Meanings, TheGuardIsNoHelpInAnotherFramework) {
  const Finding f = root(
      "jax/interpreters/xla.py in _check_special(name)\n"
      "FloatingPointError: invalid value (nan) encountered in jit(step)\n");
  EXPECT_EQ(f.cause, kNonFiniteValue);
  EXPECT_FALSE(helps(f, "trapline run"));
}

TEST(Meanings, AWordThatHoldsAnothersNameIsNone) {
  const Finding f = root(
      "Traceback (most recent call last):\n  File \"evaluate.py\", line 7, in <module>\n    run()\n"
      "RuntimeError: CUDA error: device-side assert triggered\n");
  EXPECT_TRUE(helps(f, "trapline run")) << "no program in Lua";
}

TEST(Meanings, WhatEndsABoxOfOpenMpiIsNoGoodEnd) {
  EXPECT_NE(explain("A process failed to create a queue pair.\n\n  Local host: n1\n  Local device: mlx4_0\n")
                .verdict,
            Verdict::kClean);
}

TEST(Meanings, EveryFailureOfTheTablesHasHelp) {
  for (const WordingRow& row : wording_rows()) {
    const Report report = explain(std::string(row.sample) + "\n");
    if (report.findings.empty() || report.findings.front().cause == kInsufficientEvidence) continue;
    EXPECT_FALSE(report.findings.front().fix.empty()) << row.id << ": " << row.sample;
  }
}

TEST(Meanings, TheLevelBehindATimeIsNoWord) {
  const Finding f = root(
      "2023-10-06 13:14:53.424902: E external/xla/cuda_driver.cc:864] failed to load PTX text "
      "as a module: CUDA_ERROR_INVALID_IMAGE: device kernel image is invalid\n");
  EXPECT_TRUE(f.summary.starts_with("the build does not fit this GPU or driver: external/xla")) << f.summary;
}

TEST(Meanings, AnAbortLineIsNotTheError) {
  const Finding f = root(
      "/llama.cpp/ggml/src/ggml-cuda.cu:70: CUDA error\n"
      "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED\n");
  EXPECT_EQ(f.summary, "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED");
}

TEST(Meanings, ARefusedArgumentIsUnknownAndInItsOwnWords) {
  const Finding f = root("error in modulated_deformable_col2im_cuda: invalid argument\n");
  EXPECT_EQ(f.certainty, Certainty::kUnknown);
  EXPECT_EQ(f.summary, "error in modulated_deformable_col2im_cuda: invalid argument");
  EXPECT_TRUE(helps(f, "empty tensor"));
  EXPECT_FALSE(helps(f, "label"));
}

TEST(Meanings, ATroubleThatNobodyWroteDownIsNotClean) {
  const Report report = explain("step 1\nthe GPU scheduler crashed while moving blocks\nbye\n");
  EXPECT_EQ(report.verdict, Verdict::kUnknown);
  EXPECT_EQ(report.findings.front().summary, "the GPU scheduler crashed while moving blocks");
  EXPECT_EQ(explain("WARNING: could not load the GPU plugin, falling back to the CPU\n").verdict,
            Verdict::kClean);
  EXPECT_EQ(explain("GPU errors: 0\n").verdict, Verdict::kClean);
}

TEST(Meanings, ACutTracebackBeforeADeathLeavesItOpen) {
  EXPECT_EQ(
      explain("Traceback (most recent call last):\n  File \"main.py\", line 10, in <module>\n    run()\n"
              "srun: error: node7: task 0: Killed\n")
          .verdict,
      Verdict::kUnknown);
}

TEST(Meanings, ALineThatCallsItselfAnErrorIsNotCleanButLast) {
  EXPECT_EQ(explain("step 1\n[ERROR] request 17 was not answered\n").verdict, Verdict::kUnknown);
  EXPECT_EQ(root("[ERROR] cudaMalloc failed: out of memory\n").cause, kOutOfMemory);
  EXPECT_EQ(root("[ERROR] giving up\n" + trace("KeyError: 'x'")).cause, kNotCuda);
  EXPECT_EQ(explain("Error: 0.25\nerror rate: 3 %\n").verdict, Verdict::kClean);
}

TEST(Meanings, ADeathCountsWhenNothingElseDoes) {
  const Report alone = explain("epoch 3 loss 0.4\nKilled\n");
  EXPECT_EQ(alone.verdict, Verdict::kUnknown);  // who killed it, the line does not say
  EXPECT_EQ(alone.findings.front().cause, kNotCuda);
  EXPECT_TRUE(helps(alone.findings.front(), "host memory"));
  EXPECT_EQ(root(trace("KeyError: 'image'") + "Killed\n").summary.find("Killed"), std::string::npos);
}

TEST(Meanings, WhatEndsATracebackIsAnExceptionWhateverItsName) {
  const Report report = explain(trace("Exception: no more frames"));
  EXPECT_EQ(report.verdict, Verdict::kFault);
  EXPECT_NE(report.findings.front().summary.find("Exception: no more frames"), std::string::npos);
  EXPECT_EQ(explain(trace("queue.Empty")).findings.front().cause, kNotCuda);
  // What a program prints after a traceback that was cut off is none.
  EXPECT_EQ(explain(trace("done")).findings.front().summary.find("done"), std::string::npos);
}

TEST(Meanings, TheSmallestIntegerIsACastOfNan) {
  const Finding f = root(
      "InvalidArgumentError: Received a label value of -2147483648 which is outside the valid range of [0, "
      "10).\n");
  EXPECT_EQ(f.cause, kNanToIndex);
  EXPECT_EQ(f.certainty, Certainty::kLikely);
  EXPECT_TRUE(admits(f, kLabelOutOfRange));
}

TEST(Meanings, ABoundThatOnlyTheRunKnowsIsNotNamed) {
  const Finding f = root(
      "cab.py:21: unknown: block: [0,0,0], thread: [0,0,0] Assertion `index out of bounds: 0 <= tmp4 < 1 + "
      "ks0` failed.\n");
  EXPECT_EQ(f.cause, kCompiledIndexAssert);
  EXPECT_FALSE(helps(f, "size 1 "));
  EXPECT_EQ(f.summary.find("[0, 1)"), std::string::npos) << f.summary;
}

TEST(Meanings, TheExceptionAroundAFaultDoesNotFollowFromIt) {
  const Report report = explain(trace("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB") +
                                trace("trainer.StepFailed: step 3 did not finish"));
  EXPECT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings.front().cause, kOutOfMemory);
}

TEST(Meanings, AWarningAfterWhichAProgramCanGoOnIsNoFailure) {
  EXPECT_EQ(explain("t.py:88: UserWarning: CUDA out of memory, trying again with half the batch\nepoch 1\n")
                .verdict,
            Verdict::kClean);
  EXPECT_EQ(
      root("t.py:88: UserWarning: CUDA initialization: The NVIDIA driver on your system is too old\n").cause,
      kArchMismatch);
  EXPECT_EQ(
      root("W0226 19:28:24.7 1 x.py:629] step failed: CUDA error: an illegal memory access was encountered\n")
          .cause,
      kIllegalMemoryAccess);
}

TEST(Meanings, AnAssertionOfAStatusIsTheStatus) {
  const std::string faiss =
      "Faiss assertion 'err__ == cudaSuccess' failed in void faiss::gpu::runL2Norm() at "
      "/src/faiss/L2Norm.cu:257; ";
  EXPECT_EQ(root(faiss + "details: CUDA error 209 no kernel image is available for execution on the device\n")
                .cause,
            kArchMismatch);
  EXPECT_EQ(root(faiss + "details: CUDA error 2 out of memory\n").cause, kOutOfMemory);
  EXPECT_EQ(explain(faiss + "\n").verdict, Verdict::kUnknown);
}

TEST(Meanings, AnExceptionsAssertionIsTheHosts) {
  const Finding f = root(
      "RuntimeError: /src/MyEngine/convolution_gpu.cu:85, assertion (in_feat.size(0) == n) failed. 0 != "
      "5296\n");
  EXPECT_EQ(f.cause, kNotCuda);
  const std::string bare = "/src/my_kernel.cu:85: assertion `n < most` failed.\n";
  EXPECT_EQ(root(bare).certainty, Certainty::kLikely);
  EXPECT_TRUE(admits(root(bare), kNotCuda));
}

TEST(Meanings, AMuteConditionLeavesItToTheMessage) {
  const auto told = [](std::string_view message) {
    return root("Error: /src/kernels/gpu/my_kernel.cu:108 Assertion `false` failed. " + std::string(message) +
                "\n")
        .cause;
  };
  EXPECT_EQ(told("The value of label expected >= 0 and < 7, but got 10."), kLabelOutOfRange);
  EXPECT_EQ(told("index 7 is beyond 5"), kIndexOutOfRange);
  EXPECT_EQ(told("the grid is too small"), kCustomKernelAssert);
}

TEST(Meanings, ALauncherOnlyTellsThatAProcessIsGone) {
  const Finding f = root("[launch.py:315:sigkill_handler] Killing subprocess 1234\n");
  EXPECT_EQ(f.certainty, Certainty::kUnknown);
  EXPECT_TRUE(admits(f, kNotCuda));
  EXPECT_TRUE(helps(f, "the process that is gone"));
}

TEST(Meanings, TheXidThatTellsMostCounts) {
  const std::string many =
      "NVRM: Xid (PCI:0000:00:05): 43, pid=1045242, name=pt_main_thread, Ch 00000008\n"
      "NVRM: Xid (PCI:0000:00:07): 31, pid=2512125, name=python3.10, Ch 00000008\n"
      "NVRM: Xid (PCI:0000:00:08): 94, pid=1, name=x, Contained: SM (0x1). RST: No, D-RST: No\n";
  EXPECT_EQ(root(many).cause, kHardwareOrDriver);
  EXPECT_EQ(root(many).certainty, Certainty::kDetermined);
  EXPECT_EQ(root("NVRM: Xid (PCI:0000:dc:00): 45, pid=1, name=p, Ch 1 caused by previous Xid 79\n").certainty,
            Certainty::kDetermined);
}

TEST(Meanings, AnErrorWithoutItsMessageTellsNothing) {
  EXPECT_EQ(explain(trace("RuntimeError:")).verdict, Verdict::kUnknown);
  EXPECT_EQ(root(trace("KeyError: 'x'")).cause, kNotCuda);
}

TEST(Meanings, ANumberIsARankOnlyAmongOthers) {
  const std::string_view line = "RuntimeError: CUDA error: device-side assert triggered\n";
  EXPECT_FALSE(explain({{"logs/3.log", line, 3}}).findings.front().process.has_value());
  const Report two = explain({{"logs/2.log", "step 1\n", 2}, {"logs/3.log", line, 3}});
  ASSERT_TRUE(two.findings.front().process.has_value());
  EXPECT_EQ(two.findings.front().process->rank, 3);
  EXPECT_EQ(explain({{"logs/rank3.log", line, 3}}).findings.front().process->rank, 3);
}

TEST(Meanings, EachVendorsMachineIsAskedInItsOwnWay) {
  EXPECT_TRUE(helps(root("CUDA error: uncorrectable ECC error encountered\n"), "nvidia-smi"));
  EXPECT_TRUE(
      helps(root("Memory access fault by GPU node-1 (Agent handle: 0x55) on address 0x7f\n"), "HIP_LAUNCH"));
  EXPECT_TRUE(
      helps(root("RuntimeError: level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)\n"),
            "xpu-smi"));
}

TEST(Meanings, TheGuardIsNotAdvisedForALibrarysStatus) {
  EXPECT_FALSE(helps(root("LogicError: cuMemcpyHtoDAsync failed: invalid argument\n"), "trapline run --"));
  EXPECT_TRUE(helps(root("RuntimeError: CUDA error: device-side assert triggered\n"), "trapline run --"));
}

}  // namespace
}  // namespace trapline
