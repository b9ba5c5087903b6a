// Classes of messages that a look at unseen logs found wanting: one case each, in own words.
#include <gtest/gtest.h>

#include <string>

#include "log/reason/doubts.hpp"
#include "reason_case.hpp"

namespace trapline {
namespace {

using enum Cause;

Finding of(const std::string& line) { return root(line + "\n"); }

TEST(Classes, ACollectiveThatTimedOutWaitsForAPeer) {
  for (const std::string_view line :
       {"[rank2]: Exception (either an error or timeout) detected by watchdog at work: 7",
        "[PG 1 Rank 11] Timeout at NCCL work: 15734, last enqueued NCCL work: 15735"}) {
    const Finding found = of(std::string(line));
    EXPECT_EQ(found.cause, kPeerFailure) << line;
    EXPECT_EQ(found.certainty, Certainty::kLikely) << line;
  }
}

TEST(Classes, AssertionsOfXpuKernelsArePyTorchs) {
  const std::string head = "/src/torch-xpu-ops/src/ATen/native/xpu/sycl/";
  const std::string place = ": operator(): global id: [3,0,0], local id: [3,0,0] Assertion `";
  EXPECT_EQ(of(head + "TensorCompareKernels.cpp:180" + place + "input_[0] != 0` failed.").certainty,
            Certainty::kUnknown);
  EXPECT_EQ(of(head + "LossNLL2dKernels.cpp:106" + place + "t >= 0 && t < n_classes_` failed.").cause,
            kLabelOutOfRange);
  EXPECT_EQ(of(head + "MultinomialKernel.cpp:271" + place + "!_isinf(val)` failed.").cause,
            kInvalidProbability);
}

TEST(Classes, ANullPointerOfSyclIsLikelyMemory) {
  const Finding found = of("alloc: can't allocate 4096 Bytes of memory on device/GPU");
  EXPECT_EQ(found.cause, kOutOfMemory);
  EXPECT_EQ(found.certainty, Certainty::kLikely);
}

TEST(Classes, ATimeOutWithoutAWordTellsNothing) {
  EXPECT_EQ(
      explain("Traceback (most recent call last):\n  File \"a.py\", line 7, in wait\n    raise TimeoutError\n"
              "TimeoutError\n")
          .verdict,
      Verdict::kUnknown);
  EXPECT_EQ(explain("Traceback (most recent call last):\n  File \"a.py\", line 7, in wait\n    fetch()\n"
                    "TimeoutError: the mirror gave no answer\n")
                .verdict,
            Verdict::kFault);
}

TEST(Classes, SlurmsControllerTellsHowAJobEnded) {
  EXPECT_EQ(explain("[2026-01-02T03:04:05.678] _job_complete: JobId=42 WTERMSIG 9\n"
                    "[2026-01-02T03:04:05.678] _job_complete: JobId=42 done\n")
                .verdict,
            Verdict::kUnknown);
  EXPECT_EQ(of("[2026-01-02T03:04:05.678] _job_complete: JobId=42 WTERMSIG 11").cause, kNotCuda);
  EXPECT_EQ(explain("[2026-01-02T03:04:05.678] _job_complete: JobId=42 WEXITSTATUS 0\n"
                    "[2026-01-02T03:04:05.678] _job_complete: JobId=42 done\n")
                .verdict,
            Verdict::kClean);
}

TEST(Classes, JobsOfAStageThatFailed) {
  EXPECT_EQ(explain("run.pl: 2 / 8 failed, log is in exp/mono/log/align.*.log\n").verdict, Verdict::kUnknown);
  EXPECT_EQ(of("Exception in background worker 2:").cause, kNotCuda);
}

TEST(Classes, AModelFileThatLacksWhatItsLoaderWants) {
  for (const std::string_view line :
       {"llama_model_load: error loading model: missing tensor 'blk.3.attn_k.weight'",
        "llama_model_load: error loading model: check_tensor_dims: tensor 'blk.0.attn_q.weight' has wrong "
        "shape; "
        "expected 4096, 4096, got 4096, 1024, 1, 1",
        "llama_model_load: tensor 'norm.weight' has wrong size in model file",
        "llama_model_load: error loading model: tensor 'output.weight' data is not within the file bounds, "
        "model is "
        "corrupted or incomplete"}) {
    const Finding found =
        root(std::string(line) + "\nllama_model_load_from_file_impl: failed to load model\n");
    EXPECT_EQ(found.cause, kIncompleteCheckpoint) << line;
    EXPECT_EQ(found.certainty, Certainty::kLikely) << line;
  }
}

TEST(Classes, OptionsThatAProgramRefused) {
  for (const std::string_view line : {"run.py: error: argument --half: Truthy value expected: got q",
                                      "[01/02/2026-03:04:05] [E] Model missing or format not recognized"})
    EXPECT_EQ(of(std::string(line)).certainty, Certainty::kDetermined) << line;
  EXPECT_NE(of("error: argument of type int is no pointer").certainty, Certainty::kDetermined);
}

TEST(Classes, ADriversModuleThatDidNotBuild) {
  EXPECT_EQ(of("ERROR: modpost: \"launch\" [/tmp/driver/kernel/driver.ko] undefined!").cause, kNotCuda);
  EXPECT_EQ(of("ERROR: The nvidia-uvm kernel module was not created.").cause, kNotCuda);
}

TEST(Classes, KernelsOfJuliaAndMindSpore) {
  EXPECT_EQ(of("ERROR: a boundserror exception occurred during kernel execution.").cause, kIndexOutOfRange);
  EXPECT_EQ(of("ERROR: a domainerror exception occurred during kernel execution.").cause,
            kCustomKernelAssert);
  EXPECT_EQ(
      of("[ERROR] KERNEL(9,python): [pooling_gpu_kernel.h:127] Init] tensor shape is 2, PoolingGpuKernel "
         "should be 4")
          .cause,
      kShapeMismatch);
}

TEST(Classes, WhatAProgramGoesOnWithoutIsNoFault) {
  for (const std::string_view line :
       {"WARNING: failed to allocate 552.00 MB of pinned memory: out of memory",
        "Unable to load: nvidia-installer ncurses v6 user interface",
        "ERROR: Unable to locate a modulefile for 'gcc'",
        "wandb: ERROR Error while calling W&B API: context deadline exceeded (<Response [500]>)",
        "(II) Failed to load module \"nvidia\" (already loaded, 21868)",
        "2026-01-02 03:04:05.1: W tensorflow/stream_executor/gpu/redzone_allocator.cc:314] Internal: ptxas "
        "exited "
        "with non-zero error code 256, output: "})
    EXPECT_EQ(explain(std::string(line) + "\nepoch 3 loss 0.2\n").verdict, Verdict::kClean) << line;
  EXPECT_EQ(of("INTERNAL: ptxas exited with non-zero error code 256, output: ").cause, kArchMismatch);
}

TEST(Classes, AnAssertionOfWhatOnlyTheHostKnowsIsTheHosts) {
  EXPECT_TRUE(asserts_of_host("assert (b.shape[0] % 16 == 0 and b.shape[1] % 16 == 0)"));
  EXPECT_TRUE(asserts_of_host("assert mask is not None"));
  EXPECT_FALSE(asserts_of_host("assert a < b"));
  EXPECT_FALSE(asserts_of_host("assert x.shape == y.shape and x.max() < n"));
  EXPECT_FALSE(asserts_of_host("x = y.shape[0]"));
  const Finding found = root(
      "Traceback (most recent call last):\n  File \"a.py\", line 7, in mul\n    assert b.shape[0] % 16 == "
      "0\n");
  EXPECT_EQ(found.cause, kNotCuda);
  EXPECT_EQ(found.certainty, Certainty::kLikely);
}

TEST(Classes, OrdinaryEndsOfOtherPrograms) {
  for (const std::string_view end :
       {"I tensorflow/core/pool_allocator.cc:259] Raising pool_size_limit_ from 4 to 8", "Stopped server",
        "wandb: Find logs at: ./wandb/run-1/logs", "Step Temp Press\n  1  250.1  30.2\n  2  249.3  31.0",
        "Submitted batch job 42", "172 train 7.58", " * Prec@1  05 87.9 Prec@5 05 97.1",
        "[W 23:37:06.048 NotebookApp] Got events for a stream",
        "10.0.0.7 - - [02/Jan/2026] \"GET /health HTTP/1.1\" 200 15", "No action taken."})
    EXPECT_EQ(explain("reading the table of names\n" + std::string(end) + "\n").verdict, Verdict::kClean)
        << end;
  for (const std::string_view end :
       {"the stream went away\n==========================",
        "10.0.0.7 - - [02/Jan/2026] \"GET /health HTTP/1.1\" 500 15",
        "the device does not answer\n  1  250.1  30.2", "server stopped responding"})
    EXPECT_NE(explain("reading the table of names\n" + std::string(end) + "\n").verdict, Verdict::kClean)
        << end;
}

}  // namespace
}  // namespace trapline
