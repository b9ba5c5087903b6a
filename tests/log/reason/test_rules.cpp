// One test per rule of the reasoner. The logs are written for the rule.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "reason_case.hpp"

namespace trapline {
namespace {

using enum Cause;

constexpr std::string_view kReport = "RuntimeError: CUDA error: device-side assert triggered\n";
constexpr std::string_view kHint =
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below "
    "might "
    "be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1.\n";
constexpr std::string_view kDsa = "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n";
constexpr std::string_view kLabel =
    "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], "
    "thread: "
    "[7,0,0] Assertion `t >= 0 && t < n_classes` failed.\n";
constexpr std::string_view kSelect =
    "../aten/src/ATen/native/cuda/Indexing.cu:1146: indexSelectLargeIndex: block: [9,0,0], thread: [3,0,0] "
    "Assertion `srcIndex < srcSelectDimSize` failed.\n";
constexpr std::string_view kIndex =
    "../aten/src/ATen/native/cuda/IndexKernel.cu:92: operator(): block: [1,0,0], thread: [3,0,0] Assertion "
    "`-sizes[i] <= index && index < sizes[i] && \"index out of bounds\"` failed.\n";
constexpr std::string_view kFill =
    "/pytorch/aten/src/ATen/native/cuda/ScatterGatherKernel.cu:365: operator(): block: [5,0,0], thread: "
    "[1,0,0] "
    "Assertion `idx_dim >= 0 && idx_dim < index_size && \"index out of bounds\"` failed.\n";

std::string trace(std::string_view file, std::string_view function, std::string_view code) {
  return "Traceback (most recent call last):\n  File \"main.py\", line 10, in <module>\n    run()\n  File "
         "\"" +
         std::string(file) + "\", line 20, in " + std::string(function) + "\n    " + std::string(code) + "\n";
}

bool admits(const Finding& f, Cause cause) {
  return std::find(f.also.begin(), f.also.end(), cause) != f.also.end();
}

TEST(Rules, ANanFailsTheComparisonOfALossAsWell) {
  const Finding f = root(
      "/pytorch/aten/src/ATen/native/cuda/Loss.cu:90: operator(): block: [0,0,0], thread: [5,0,0] Assertion "
      "`input_val >= zero && input_val <= one` failed.\n");
  EXPECT_EQ(f.cause, kLossInputOutOfRange);
  EXPECT_TRUE(admits(f, kNonFiniteValue));
}

// A gather's, as a GPU printed it: PyTorch has one kernel for both since 1.13.
TEST(Rules, OneKernelGathersAndScatters) {
  constexpr std::string_view kShared =
      "/pytorch/aten/src/ATen/native/cuda/ScatterGatherKernel.cu:163: operator(): block: [0,0,0], thread: "
      "[1,0,0] "
      "Assertion `idx_dim >= 0 && idx_dim < index_size && \"scatter gather kernel index out of bounds\"` "
      "failed.\n";
  Finding f = root(kShared);
  EXPECT_EQ(f.op, "gather or scatter");
  EXPECT_NE(f.summary.find("in gather or scatter"), std::string::npos) << f.summary;
  EXPECT_EQ(f.certainty, Certainty::kLikely);
  EXPECT_TRUE(admits(f, kLabelOutOfRange));
  constexpr std::string_view kTold = "torch.AcceleratorError: CUDA error: device-side assert triggered\n";
  f = root(std::string(kShared) +
           trace("loss.py", "forward", "nll = -logprobs.gather(dim=-1, index=target.unsqueeze(1))") +
           std::string(kTold));
  EXPECT_EQ(f.cause, kLabelOutOfRange) << f.summary;
  EXPECT_EQ(f.op, "gather");
  f = root(std::string(kShared) + trace("moe.py", "route", "out.scatter_(1, slot, x)") + std::string(kTold));
  EXPECT_EQ(f.cause, kIndexOutOfRange) << f.summary;
  EXPECT_EQ(f.op, "scatter");
  f = root(std::string(kShared) + trace("moe.py", "route", "if fast_all(mask):") + std::string(kTold));
  EXPECT_EQ(f.op, "gather or scatter") << "it surfaced elsewhere";
}

TEST(Rules, AssertDeterminesItsCause) {
  const Finding f = root(kLabel);
  EXPECT_EQ(f.cause, kLabelOutOfRange);
  EXPECT_EQ(f.certainty, Certainty::kDetermined);
  EXPECT_EQ(f.op, "nll_loss");
  EXPECT_NE(f.summary.find("in cross_entropy"), std::string::npos) << f.summary;  // as the program calls it
  EXPECT_EQ(f.argument, "target");
  EXPECT_EQ(f.device_assert, true);
  EXPECT_EQ(f.contained, false);
  EXPECT_TRUE(admits(f, kNumClassesMismatch));
}

TEST(Rules, AssertOutranksWhatWasPrintedBeforeIt) {
  const std::string text = trace("eval.py", "accuracy", "hit = top.eq(y)") + std::string(kReport) +
                           "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED\n" + std::string(kLabel);
  const Report report = explain(text);
  ASSERT_GE(report.findings.size(), 2U);
  EXPECT_EQ(report.findings[0].cause, kLabelOutOfRange);
  EXPECT_EQ(report.findings[0].role, Role::kRoot);
  EXPECT_EQ(report.findings[1].role, Role::kConsequence);
}

TEST(Rules, OutOfMemoryWordingAfterAnAssertIsAConsequence) {
  const Finding f = root(std::string(kLabel) +
                         "OOM RuntimeError is raised due to the huge memory cost\n"
                         "RuntimeError: CUDA out of memory. Tried to allocate 2 MiB\n");
  EXPECT_EQ(f.cause, kLabelOutOfRange);
}

TEST(Rules, AdviceAboutDeviceSideAssertionsIsNoEvidence) {
  const Finding f =
      root("RuntimeError: CUDA error: misaligned address\n" + std::string(kHint) + std::string(kDsa));
  EXPECT_EQ(f.cause, kIllegalMemoryAccess);
  EXPECT_EQ(f.device_assert, false);
}

TEST(Rules, EmbeddingIsLikelyAndAdmitsPositions) {
  const Finding f = root(kSelect);
  EXPECT_EQ(f.cause, kEmbeddingIndexOutOfRange);
  EXPECT_EQ(f.certainty, Certainty::kLikely);
  EXPECT_TRUE(admits(f, kPositionIndexOutOfRange));
}

TEST(Rules, FramesTellPositionsFromTokens) {
  const std::string text =
      std::string(kSelect) +
      trace("model/encoder.py", "forward", "p = self.position_embeddings(position_ids)") +
      std::string(kReport);
  EXPECT_EQ(root(text).cause, kPositionIndexOutOfRange);
  const std::string token = std::string(kSelect) +
                            trace("model/encoder.py", "forward", "w = self.word_embeddings(input_ids)") +
                            std::string(kReport);
  EXPECT_EQ(root(token).cause, kEmbeddingIndexOutOfRange);
  const std::string rotary = std::string(kIndex) +
                             trace("model/rope.py", "apply_rotary", "c = cos[ids].unsqueeze(1)") +
                             std::string(kReport);
  EXPECT_EQ(root(rotary).cause, kPositionIndexOutOfRange);
}

TEST(Rules, ALengthWarningSpeaksForPositions) {
  const Finding f = root(
      "Token indices sequence length is longer than the specified maximum sequence length for this "
      "model (900 > 512).\n" +
      std::string(kSelect));
  EXPECT_EQ(f.cause, kPositionIndexOutOfRange);
  EXPECT_EQ(f.certainty, Certainty::kLikely);
}

TEST(Rules, GeneratedIdsStayInTheVocabulary) {
  EXPECT_EQ(
      root("Setting `pad_token_id` to `eos_token_id`:50256 for open-end generation.\n" + std::string(kSelect))
          .cause,
      kPositionIndexOutOfRange);
}

TEST(Rules, OneHotByScatterIsALabelWhereLabelsAreHandled) {
  EXPECT_EQ(root(kFill).cause, kIndexOutOfRange);
  EXPECT_EQ(root(kFill).certainty, Certainty::kLikely);  // it may have been a label
  const Finding f = root(std::string(kFill) + trace("dice.py", "one_hot", "x = running + loss.item()") +
                         std::string(kReport));
  EXPECT_EQ(f.cause, kLabelOutOfRange);
  EXPECT_EQ(f.certainty, Certainty::kLikely);
  EXPECT_EQ(root("2024-04-10: unpacking dataset...\n" + std::string(kFill)).cause, kLabelOutOfRange);
}

TEST(Rules, ADetectorsFirstBatch) {
  const std::string header = "     Epoch   gpu_mem       box       obj       cls    labels  img_size\n";
  EXPECT_EQ(root(header + "  0%|          | 0/99 [00:00<?, ?it/s]" + std::string(kIndex)).cause,
            kLabelOutOfRange);
  EXPECT_EQ(root(header + " 40%|####      | 40/99 [00:09<00:12, 4it/s]\n" + std::string(kIndex)).cause,
            kIndexOutOfRange);
  EXPECT_EQ(root(kIndex).certainty, Certainty::kLikely);
}

TEST(Rules, AMatcherIndexesItsCostsByClass) {
  const auto surfaced = [&](std::string_view file) {
    return root(trace(file, "forward", "cost_class = -out_prob[:, tgt_ids]") + std::string(kReport)).cause;
  };
  EXPECT_EQ(surfaced("models/matcher.py"), kLabelOutOfRange);
  EXPECT_EQ(surfaced("models/costs.py"), kIndexOutOfRange);
}

TEST(Rules, CategoryIdsThatDoNotFit) {
  EXPECT_EQ(root(std::string(kIndex) +
                 "Category ids in annotations are not in [1, #categories]! We'll apply a mapping for you.\n")
                .cause,
            kNumClassesMismatch);
}

TEST(Rules, NanBeforeAnIndex) {
  const Finding f = root("step 31: loss nan\n" + std::string(kIndex));
  EXPECT_EQ(f.cause, kNanToIndex);
  EXPECT_EQ(f.certainty, Certainty::kLikely);
  EXPECT_EQ(root("step 31: loss nan\n" + std::string(kLabel)).cause, kLabelOutOfRange);
}

TEST(Rules, UnnamedAssertInSampling) {
  const std::string assert_line =
      "C:\\b\\aten\\src\\ATen\\native\\cuda\\TensorCompare.cu:110: block: [0,0,0], thread: [0,0,0] Assertion "
      "`input[0] != 0` failed.\n";
  EXPECT_EQ(root(assert_line).cause, kInsufficientEvidence);
  EXPECT_EQ(
      root(assert_line + trace("chat.py", "answer", "out = model.generate(**enc)") + std::string(kReport))
          .cause,
      kInvalidProbability);
}

TEST(Rules, CustomKernels) {
  const Finding f = root(
      "/build/knn/knn.cu:88: void knn(const float *, int): block: [1,0,0], thread: [4,0,0] Assertion `k <= "
      "MAX_K` failed.\n");
  EXPECT_EQ(f.cause, kCustomKernelAssert);
  EXPECT_EQ(f.certainty, Certainty::kDetermined);
  const Finding label = root(
      "/build/ff/softmax.cu:226: void calc(const int *): block: [0,0,0], thread: [3,0,0] Assertion `my_label "
      ">= 0` failed.\n");
  EXPECT_EQ(label.cause, kLabelOutOfRange);
  EXPECT_EQ(label.certainty, Certainty::kLikely);
  EXPECT_TRUE(admits(label, kCustomKernelAssert));
}

TEST(Rules, CompiledKernelNamesItsBound) {
  const Finding f = root(
      "/tmp/torchinductor_u/k4/ck4.py:30: unknown: block: [5,0,0], thread: [1,0,0] Assertion `index out of "
      "bounds: 0 <= tmp4 < 50304` failed.\n");
  EXPECT_EQ(f.cause, kCompiledIndexAssert);
  EXPECT_NE(f.summary.find("50304"), std::string::npos);
}

TEST(Rules, LookAlikesAreNoDeviceAsserts) {
  struct Case {
    std::string_view text;
    Cause cause;
  };
  const Case cases[] = {
      {"ggml.c:4711: GGML_ASSERT(ctx->mem_buffer != NULL) failed\n", kNotCuda},
      {"Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    assert n > "
       "0\nAssertionError: no samples\n",
       kNotCuda},
      {"server: /src/queue.cc:12: void push(): Assertion `size < capacity' failed.\n", kNotCuda},
      {"RuntimeError: DataLoader worker (pid 12) is killed by signal: Killed.\n", kNotCuda},
      {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n", kOutOfMemory},
      {"RuntimeError: CUDA error: no kernel image is available for execution on the device\n", kArchMismatch},
      {"CUDA error 700 at main.cu:12\n", kIllegalMemoryAccess},
      {"[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE)\n",
       kPeerFailure},
      {"RuntimeError: Assertion `cur_target >= 0 && cur_target < n_classes' failed.  at "
       "/pytorch/aten/src/THNN/generic/ClassNLLCriterion.c:97\n",
       kLabelOutOfRange},
      {"IndexError: Target 5 is out of bounds.\n", kLabelOutOfRange},
      {"RuntimeError: probability tensor contains either `inf`, `nan` or element < 0\n", kInvalidProbability},
  };
  for (const Case& c : cases) {
    const Finding f = root(c.text);
    EXPECT_EQ(f.cause, c.cause) << c.text;
    EXPECT_EQ(f.device_assert, false) << c.text;
  }
}

TEST(Rules, SourceCodeThatAssertsIsNoFailure) {
  EXPECT_EQ(
      explain_so_far(
          "    tl.device_assert(idx < n, \"index\")\n    assert x.is_cuda\n    CUDA_KERNEL_ASSERT(t >= 0)\n")
          .verdict,
      Verdict::kClean);
  EXPECT_EQ(explain("epoch 1: loss 0.3\nepoch 2: loss 0.2\n").verdict, Verdict::kClean);
}

TEST(Rules, ReportWithoutItsLine) {
  // The statement itself starts such an operation.
  Finding f = root(trace("m.py", "forward", "a = logits.gather(1, labels.view(-1, 1))") +
                   std::string(kReport) + std::string(kHint));
  EXPECT_EQ(f.cause, kLabelOutOfRange);
  EXPECT_EQ(f.op, "gather");
  EXPECT_EQ(f.certainty, Certainty::kLikely);
  f = root(trace("m.py", "forward", "v = table[rows.long()]") + std::string(kReport));
  EXPECT_EQ(f.cause, kIndexOutOfRange);
  // It cannot assert: the context was lost before.
  f = root(trace("m.py", "load", "x = x.to(device)") + std::string(kReport));
  EXPECT_EQ(f.cause, kPoisonedContext);
  EXPECT_EQ(f.certainty, Certainty::kUnknown);
  // Reading the loss: a first guess, and no more than that.
  f = root(trace("m.py", "step", "loss.backward()") + std::string(kReport));
  EXPECT_EQ(f.cause, kLabelOutOfRange);
  EXPECT_EQ(f.certainty, Certainty::kUnknown);
  EXPECT_EQ(explain(trace("m.py", "step", "loss.backward()") + std::string(kReport)).verdict,
            Verdict::kUnknown);
  // Nothing speaks.
  f = root(kReport);
  EXPECT_EQ(f.cause, kInsufficientEvidence);
  EXPECT_EQ(f.certainty, Certainty::kUnknown);
  EXPECT_FALSE(f.fix.empty());
}

TEST(Rules, AScalarWrittenThroughAMaskIsNoIndex) {
  EXPECT_EQ(root(trace("m.py", "f", "w[ignored] = 0.") + std::string(kReport)).cause, kInsufficientEvidence);
  EXPECT_EQ(root(trace("m.py", "f", "if style != self.cond.scale[0, 0, 0]:") + std::string(kReport)).cause,
            kInsufficientEvidence);
}

TEST(Rules, ARunOnTheCpuNamesTheCauseWithoutProof) {
  const Finding f = root(trace("m.py", "f", "out = net(x)") +
                         "RuntimeError: cuda runtime error (59) : device-side assert triggered at "
                         "/x.cu:20\n\n$ python m.py --cpu\n" +
                         trace("m.py", "f", "p = self.position_table(pos_ids)") +
                         "IndexError: index out of range in self\n");
  EXPECT_EQ(f.cause, kPositionIndexOutOfRange);
  EXPECT_EQ(f.certainty, Certainty::kUnknown);
  EXPECT_EQ(f.device_assert, true);
}

TEST(Rules, BlockingLaunchesAreKnownByTheMissingWarning) {
  const std::string frames = trace("m.py", "forward", "e = F.embedding(ids, w)");
  const Finding blocking = root(frames + std::string(kReport) + std::string(kDsa));
  EXPECT_TRUE(blocking.origin.has_value());
  EXPECT_FALSE(blocking.surfaced.has_value());
  const Finding later = root(frames + std::string(kReport) + std::string(kHint) + std::string(kDsa));
  EXPECT_TRUE(later.surfaced.has_value());
}

TEST(Rules, AReadBackIsWhereItSurfacedNotWhereItBegan) {
  const Finding f = root(std::string(kLabel) + trace("train.py", "step", "total += loss.item()") +
                         std::string(kReport) + std::string(kHint));
  EXPECT_FALSE(f.origin.has_value());
  ASSERT_TRUE(f.surfaced.has_value());
  EXPECT_EQ(f.surfaced->file, "train.py");
  EXPECT_EQ(f.surfaced->line, 20);
  const Finding host = root(trace("train.py", "step", "v = x.numpy()") +
                            "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() "
                            "to copy the tensor to host memory first.\n");
  ASSERT_TRUE(host.origin.has_value());
  EXPECT_EQ(host.origin->line, 20);
}

TEST(Rules, CutTracebackStillTellsItsLastCall) {
  const Finding f = root(trace("m.py", "f", "return F.cross_entropy(input, target)"));
  EXPECT_EQ(f.cause, kLabelOutOfRange);
  EXPECT_EQ(f.op, "cross_entropy");
  EXPECT_FALSE(f.device_assert.has_value());
}

TEST(Rules, XidsTellTheGpusFaultsFromThePrograms) {
  const Finding bus = root("[12.5] NVRM: Xid (PCI:0000:65:00): 48, pid=4711, name=python\n");
  EXPECT_EQ(bus.cause, kHardwareOrDriver);
  EXPECT_EQ(bus.certainty, Certainty::kDetermined);
  EXPECT_EQ(root("[12.5] NVRM: Xid (PCI:0000:65:00): 31, pid=4711, name=python\n").cause,
            kIllegalMemoryAccess);
  // A program's end, and numbers that nobody knows yet, are no proof against the machine.
  EXPECT_EQ(root("[12.5] NVRM: Xid (PCI:0000:65:00): 43, pid=4711, name=python\n").cause,
            kInsufficientEvidence);
  EXPECT_EQ(root("[12.5] NVRM: Xid (PCI:0000:65:00): 45, pid=4711, name=python\n").certainty,
            Certainty::kUnknown);
  const Finding unheard = root("[12.5] NVRM: Xid (PCI:0000:65:00): 998, pid=4711, name=python\n");
  EXPECT_EQ(unheard.cause, kHardwareOrDriver);
  EXPECT_EQ(unheard.certainty, Certainty::kLikely);
}

TEST(Rules, ALanguageModelsLossMayFailForIdsOrLabels) {
  const Finding f =
      root(trace("/x/site-packages/transformers/trainer.py", "training_step", "loss.backward()") +
           std::string(kReport));
  EXPECT_EQ(f.cause, kInsufficientEvidence);
  EXPECT_TRUE(admits(f, kLabelOutOfRange));
  EXPECT_TRUE(admits(f, kEmbeddingIndexOutOfRange));
}

TEST(Rules, ErrorsOfCudaThatNobodyKnowsAreNotTheHosts) {
  const Finding f = root("RuntimeError: CUDA error: a brand new kind of trouble\n");
  EXPECT_EQ(f.cause, kInsufficientEvidence);
  EXPECT_EQ(f.certainty, Certainty::kUnknown);
}

TEST(Rules, APyTorchWhoseOwnBugLooksLikeTheUsers) {
  const Finding f = root(
      "/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:142: operator(): block: [0,0,0], thread: [96,0,0] "
      "Assertion "
      "`index >= -sizes[i] && index < sizes[i] && \"index out of bounds\"` failed.\n");
  EXPECT_TRUE(std::any_of(f.fix.begin(), f.fix.end(),
                          [](const std::string& t) { return t.find("1.8.1") != std::string::npos; }));
}

TEST(Rules, JsonEscapedInOneLine) {
  const Finding f = root(
      "{\"log\": \"Traceback (most recent call last):\\n  File \\\"a.py\\\", line 7, in f\\n    v = "
      "x.numpy()\\nTypeError: can't "
      "convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory "
      "first.\\n\"}\n");
  EXPECT_EQ(f.cause, kDeviceMismatch);
  ASSERT_TRUE(f.origin.has_value());
  EXPECT_EQ(f.origin->file, "a.py");
  EXPECT_EQ(f.origin->line, 7);
}

TEST(Ranks, TheLaunchersSummaryIsTheLastResort) {
  const std::string summary =
      "Root Cause (first observed failure):\n[0]:\n  time      : 2023-01-01_10:00:00\n  rank      : 3 "
      "(local_rank: 3)\n";
  EXPECT_EQ(root(std::string(kLabel) + summary).process->rank, 3);
}

TEST(Ranks, ManyFilesStayFlat) {
  Reasoner reasoner;
  std::string name;
  for (int rank = 0; rank < 300; ++rank) {
    name = "rank" + std::to_string(rank) + ".log";
    feed(reasoner,
         {name,
          rank == 217 ? kLabel : std::string_view("[Rank 1] Watchdog caught collective operation timeout\n"),
          rank});
  }
  const Report report = reasoner.finish();
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].process->rank, 217);
  EXPECT_LE(report.findings.size(), 17U);
}

TEST(Ranks, FirstByCauseNotByClock) {
  const Report report = explain({
      {"rank0.log", "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE)\n", 0},
      {"rank1.log", "RuntimeError: NCCL error: remote process exited or there was a network error\n", 1},
      {"rank2.log", kLabel, 2},
  });
  ASSERT_GE(report.findings.size(), 3U);
  EXPECT_EQ(report.findings[0].cause, kLabelOutOfRange);
  EXPECT_EQ(report.findings[0].process->rank, 2);
  EXPECT_EQ(report.findings[1].role, Role::kConsequence);
}

TEST(Ranks, TheSilentOne) {
  const std::string_view wait = "Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE)\n";
  const Report report =
      explain({{"rank0.log", wait, 0}, {"rank1.log", "step 3\n", 1}, {"rank2.log", wait, 2}});
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].cause, kHardwareOrDriver);
  EXPECT_EQ(report.findings[0].op, "allreduce");
  EXPECT_EQ(report.findings[0].process->rank, 1);
}

TEST(Ranks, AnUnprefixedAssertBelongsToTheRankThatReportsIt) {
  const Finding f = root(std::string(kLabel) +
                         "[E ProcessGroupNCCL.cpp:916] [Rank 3] NCCL watchdog thread terminated with "
                         "exception: CUDA error: device-side assert triggered\n");
  ASSERT_TRUE(f.process.has_value());
  EXPECT_EQ(f.process->rank, 3);
}

TEST(Ranks, ThePidOfAProcessIsNoRank) {
  const Finding memory = root(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity "
      "of "
      "23.69 GiB of which 11.06 MiB is free. Process 393 has 22.05 GiB memory in use.\n");
  EXPECT_EQ(memory.cause, kOutOfMemory);
  EXPECT_FALSE(memory.process && memory.process->rank);
  const Finding killed = root("[launch.py:428:sigkill_handler] Killing subprocess 13266\n");
  EXPECT_FALSE(killed.process && killed.process->rank);
  EXPECT_EQ(killed.summary.find("13266"), std::string::npos);
  const Finding spawned = root("ProcessExitedException: process 2 terminated with signal SIGABRT\n");
  EXPECT_EQ(spawned.summary.find("rank 2 "), 0U) << spawned.summary;
}

TEST(Ranks, WhatIsNoAssertIsNotCalledOne) {
  const Finding f = root(
      "RuntimeError: Lightning can't create new processes if CUDA is already initialized. Did you manually "
      "call "
      "`torch.cuda.*` functions, have moved the model to the device, or allocated memory on the GPU any "
      "other "
      "way? Please remove any such calls, or change the selected strategy.\n");
  EXPECT_EQ(f.summary.find("assertion failed"), std::string::npos) << f.summary;
}

TEST(Flood, OneEventWhateverItsLines) {
  std::string text;
  for (int block = 0; block < 200; ++block) {
    for (int thread = 0; thread < 100; ++thread)
      text += "x/ATen/native/cuda/IndexKernelUtils.cu:16: vectorized_gather_kernel: block: [" +
              std::to_string(block) + ",0,0], thread: [" + std::to_string(thread) +
              ",0,0] Assertion `ind >=0 && ind < ind_dim_size && \"vectorized gather kernel index out of "
              "bounds\"` failed.\n";
  }
  const Report report = explain(text);
  ASSERT_EQ(report.findings.size(), 1U);
  ASSERT_TRUE(report.findings[0].element.has_value());  // block is the position in the index
  EXPECT_EQ(report.findings[0].element->index, std::vector<std::int64_t>{0});
  EXPECT_NE(report.findings[0].evidence[0].text.find("19999 more"), std::string::npos);
}

TEST(Rules, AnAdviceAwayFromItsReportDoesNotTellOfBlockingLaunches) {
  const std::string frames =
      "Traceback (most recent call last):\n  File \"/home/u/train.py\", line 3, in main\n    y = model(x)\n";
  const Finding cut = root(frames + std::string(kReport) + "...\n" + std::string(kDsa));
  EXPECT_TRUE(cut.surfaced.has_value());
}

TEST(Rules, ATracebackWithoutItsErrorIsUnknown) {
  const Finding cut = root(
      "Traceback (most recent call last):\n  File \"/home/u/train.py\", line 3, in main\n"
      "    y.scatter_(1, labels, 1)\n");
  EXPECT_EQ(cut.certainty, Certainty::kUnknown);
}

}  // namespace
}  // namespace trapline
