// The net below the tables: the last lines of a log decide whether it may be called clean.
#include <gtest/gtest.h>

#include <string>

#include "reason_case.hpp"

namespace trapline {
namespace {

Verdict after_a_step(std::string_view end) {
  return explain("step 1 loss 0.3\n" + std::string(end) + "\n").verdict;
}

TEST(LastWords, ALogThatEndsInAFailureIsNotClean) {
  for (const std::string_view end : {"2026/01/02 03:04:05 failed to start server: listen tcp :8080: bind: no",
                                     "the worker was killed by its parent",
                                     "cannot open the display",
                                     "child 3 has died",
                                     "ValueErr",
                                     "Segmentation fa",
                                     "AssertionErr",
                                     "Traceback (most rec",
                                     "Trainer stopped: NaN loss",
                                     "GPU process exited unexpectedly",
                                     "rank 3 left with rc=3",
                                     "shard 3 failed",
                                     "layer load_param 3 failed",
                                     "the buffer is NULL",
                                     "fire.core.FireExit: 2",
                                     "*** longjmp causes uninitialized stack frame ***: terminated",
                                     "AsyncIOLoopKernelRestarter: restarting kernel (1/5), keep random ports",
                                     "distributed.nanny - WARNING - Worker process 42 was killed by signal 9",
                                     "srun: Force Terminated StepId=42.0",
                                     "error 700",
                                     "GPU 3 reported Xid 31",
                                     "gpu health: xid=48 detected on node-3",
                                     "JobState=FAILED Reason=NonZeroExitCode",
                                     "42.batch|FAILED|1:0",
                                     "Stacktrace:",
                                     "SIGABRT received",
                                     "Got SIGSEGV, bye",
                                     "SystemExit: 2",
                                     "Primary job  terminated normally, but 1 process returned",
                                     "1 failed, 3 passed in 2.10s",
                                     "{\"level\":\"fatal\",\"msg\":\"no model\"}",
                                     "{\"levelname\":\"ERROR\",\"message\":\"worker gone\"}"})
    EXPECT_NE(after_a_step(end), Verdict::kClean) << end;
}

// Words that excuse a count, a plan or a success do not excuse an end.
TEST(LastWords, AGoodWordThatIsDeniedAndAnEndForAnErrorExcuseNothing) {
  for (const std::string_view end : {"Aborted after fatal error",
                                     "job stopped on error",
                                     "exiting on failure",
                                     "Done with 3 errors",
                                     "Completed with failures",
                                     "run ended with error 5",
                                     "All retries failed",
                                     "Max retries exceeded, the request failed",
                                     "could not continue: training failed",
                                     "the worker crashed before it finished",
                                     "failed: module is not installed",
                                     "Error, limit reached, aborting",
                                     "evaluation failed, no mse computed",
                                     "finished unsuccessfully",
                                     "ended early",
                                     "Not converged, giving up",
                                     "rank 3 died: exception 12",
                                     "* Device #3: Kernel m00000 link failed. Error Log:",
                                     "SetProcessAffinityMask() failed with error: 3",
                                     "the allocator's retry failed for size 3",
                                     "the mask must be F16 or F32",
                                     "type mismatch: src=3 dst=4",
                                     "Invalid --debug-mode value specified.",
                                     "can not find core 3 in core info list",
                                     "GGUFv1 is no longer supported, please use a more up-to-date version"})
    EXPECT_NE(after_a_step(end), Verdict::kClean) << end;
  for (const std::string_view end :
       {"finished without errors", "Done with 0 errors", "completed, error: 0.031", "stopped at error 0.01",
        "test failed: 0, passed: 12", "early stopping: no better error for 5 epochs"})
    EXPECT_EQ(after_a_step(end), Verdict::kClean) << end;
}

TEST(LastWords, ALineBehindThemSaysThatItWentWell) {
  EXPECT_NE(explain("worker 3: failed to reach its peer\nleaving\n").verdict, Verdict::kClean);
  EXPECT_EQ(explain("worker 3: failed to reach its peer\nepoch 2 loss 0.3\n").verdict, Verdict::kClean);
}

TEST(LastWords, HealthyEndsAreClean) {
  for (const std::string_view end : {"Training completed. Best model saved to out/best.pt",
                                     "test error 3.2 %, train error 1.1 %",
                                     "All tests passed. 0 failed.",
                                     "Early stopping: validation loss did not improve for 5 epochs",
                                     "Process exited with code 0",
                                     "Failed samples: 0",
                                     "number of failed requests:  0",
                                     "ECC errors: 0",
                                     "faulthandler enabled for SIGSEGV, SIGABRT",
                                     "mean absolute error: 0.123",
                                     "Top-1 error: 23.9",
                                     "Word error rate (WER): 4.2",
                                     "exact match error tolerance 1e-5 satisfied",
                                     "Classes: ['failure', 'no failure']",
                                     "killed 0 orphan processes",
                                     "`Trainer.fit` stopped: `max_epochs=10` reached.",
                                     "tokens/s 120, requests 50, failed 0, timed out 0",
                                     "agent died at step 512; return 15.0",
                                     "FAILED: 0  PASSED: 30",
                                     "Stopped because max_epochs reached",
                                     "Report: gradient clipping killed 0.1% of gradients",
                                     "web exited with code 143",
                                     "Dataset: 100 images, 2 corrupt, 98 ok",
                                     "harmbench: 97 refused, 3 complied",
                                     "Exception handling test passed",
                                     "Saved the figure error_bars.png",
                                     "Aborted runs: none"})
    EXPECT_EQ(after_a_step(end), Verdict::kClean) << end;
}

TEST(LastWords, APieceOfAnAssertionIsOne) {
  for (const std::string_view line :
       {"[1,0,0], thread: [33,0,0] Assertion `srcIndex < srcSelectDi",
        "nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [3,0,"}) {
    const Report report = explain(std::string(line) + "\nstep 3\n");
    ASSERT_FALSE(report.findings.empty()) << line;
    EXPECT_EQ(report.findings.front().device_assert, true) << line;
  }
  EXPECT_EQ(root("... Assertion `idx_dim >= 0 && idx_dim < index_size && \"index out of bounds\"\n").cause,
            Cause::kIndexOutOfRange);
}

TEST(LastWords, ABoxWithoutItsHeadAndItsErrorIsNotClean) {
  EXPECT_EQ(explain("\u2502 /home/u/train.py:42 in main             \u2502\n"
                    "\u2502                                         \u2502\n"
                    "\u2502 \u2771 42 \u2502   out = model(x)                  \u2502\n")
                .verdict,
            Verdict::kUnknown);
  EXPECT_EQ(explain("/home/u/train.py:42: UserWarning: slow\n").verdict, Verdict::kClean);
}

TEST(LastWords, APhraseAloneIsLikelyAtMostAndAShortOneWantsAnError) {
  const Finding cut = root("RuntimeError: ... foo\" not implemented for 'Ha\n");
  EXPECT_EQ(cut.cause, Cause::kDtypeMismatch);
  EXPECT_EQ(cut.certainty, Certainty::kLikely);
  EXPECT_EQ(
      explain("attention is not implemented for dtype float16, the eager one is used\nepoch 2\n").verdict,
      Verdict::kClean);
  EXPECT_EQ(root("RuntimeError: \"addmm_impl_cpu_\" not implemented for 'Half'\n").certainty,
            Certainty::kDetermined);
  // The message itself behind the source line that raises it.
  EXPECT_EQ(
      root("Traceback (most recent call last):\n  File \"/home/u/t.py\", line 3, in f\n"
           "    raise ValueError(\"Target size ({}) must be the same as input size ({})\".format(a, b))\n"
           "ValueError: Target size (torch.Size([2])) must be the same as input size (torch.Size([2, 1]))\n")
          .certainty,
      Certainty::kDetermined);
}

TEST(LastWords, ALossOfNanAtTheEndIsNotFinite) {
  EXPECT_EQ(root("333 160 Loss=nan Time=0.040\n333 161 Loss=nan Time=0.042\n").cause, Cause::kNonFiniteValue);
  EXPECT_EQ(root("it 1 grad norm: nan |\nit 2 grad norm: nan |\nit 3 grad norm: nan |\n").cause,
            Cause::kNonFiniteValue);
  EXPECT_EQ(explain("it 1 grad norm: 1.0 |\nit 2 grad norm: nan |\n").verdict, Verdict::kClean);
  // Two in a row at the end, whatever stands between and behind them.
  const Finding gradient = root(
      "it 1 loss: 2.6 grad_norm: 2.7\nit 2 loss: 2.5 grad_norm: nan\nsaved a picture\n"
      "it 3 loss: 2.4 grad_norm: nan\na line\nanother line\n");
  EXPECT_EQ(gradient.cause, Cause::kNonFiniteValue);
  EXPECT_EQ(gradient.certainty, Certainty::kLikely);
  EXPECT_EQ(root("{'loss': 0.0, 'grad_norm': nan}\n{'loss': 0.0, 'grad_norm': nan}\n").cause,
            Cause::kNonFiniteValue);
  EXPECT_EQ(explain("{'loss': 1.0, 'grad_norm': nan}\n{'loss': 1.0, 'grad_norm': nan}\n{'grad_norm': 1.5}\n")
                .verdict,
            Verdict::kClean);
  // It went on, and says no more of gradients.
  std::string on = "{'loss': 0.9, 'grad_norm': nan}\n{'loss': 0.8, 'grad_norm': nan}\n";
  for (int step = 0; step < 300; ++step) on += "{'loss': 0." + std::to_string(step + 100) + "}\n";
  EXPECT_EQ(explain(on).verdict, Verdict::kClean);
  EXPECT_EQ(root(" 3: -nan, -nan avg loss, 0.001 rate, 3.1 seconds, 192 images\n").cause,
            Cause::kNonFiniteValue);
  EXPECT_EQ(explain("step 1 loss nan\nstep 2 loss 0.5\n").verdict, Verdict::kClean);
}

TEST(LastWords, AGradientOfNanThatAScalerSkipsIsNone) {
  const std::string skipped =
      "it 1 | loss scale: 1.0 | grad norm: nan | number of skipped iterations:   1 |\n";
  EXPECT_EQ(explain(skipped + skipped + skipped).verdict, Verdict::kClean);
  const std::string taken = "it 1 | loss scale: 1.0 | grad norm: nan | number of skipped iterations:   0 |\n";
  EXPECT_EQ(root(taken + taken + taken).cause, Cause::kNonFiniteValue);
  const std::string scaled = "step 1 loss 1.1 grad_norm nan loss_scale 65536\n";
  EXPECT_EQ(explain(scaled + scaled + scaled).verdict, Verdict::kClean);
}

TEST(LastWords, WhoKilledAProcessIsSaidOnlyByALimit) {
  EXPECT_EQ(root("step 1\nKilled\n").certainty, Certainty::kUnknown);
  EXPECT_EQ(root("step 1\n\u5df2\u6740\u6b7b\n").cause, Cause::kNotCuda);
  const Finding limit =
      root("slurmstepd: error: *** JOB 42 ON n1 CANCELLED AT 2026-01-02T03:04:05 DUE TO TIME LIMIT ***\n");
  EXPECT_EQ(limit.cause, Cause::kNotCuda);
  EXPECT_EQ(limit.certainty, Certainty::kLikely);
  EXPECT_EQ(root("MOAB_INFO:  job exceeded wallclock limit\n").certainty, Certainty::kLikely);
  EXPECT_EQ(explain("Terminated\n").verdict, Verdict::kClean);
}

TEST(LastWords, SizesAndIndicesThatTellMore) {
  const Finding classes = root(
      "InvalidArgumentError: logits and labels must be broadcastable: logits_size=[32,8] "
      "labels_size=[32,7]\n");
  EXPECT_EQ(classes.cause, Cause::kNumClassesMismatch);
  EXPECT_EQ(classes.certainty, Certainty::kLikely);
  EXPECT_EQ(root("InvalidArgumentError: indices[0,529] = 529 is not in [0, 512) [Op:ResourceGather]\n").cause,
            Cause::kPositionIndexOutOfRange);
  EXPECT_EQ(root("InvalidArgumentError: indices[0,52] = 529 is not in [0, 512)\n").cause,
            Cause::kIndexOutOfRange);
  EXPECT_EQ(root("IndexError: index 2 is out of bounds for axis 0 with size 2\n").cause,
            Cause::kIndexOutOfRange);
  EXPECT_EQ(root("IndexError: index -2147483648 is out of bounds for axis 0 with size 64\n").cause,
            Cause::kNanToIndex);
}

TEST(LastWords, TheLongerOfTwoMessagesThatOverlapCounts) {
  const Finding capture =
      root("RuntimeError: CUDA error: operation not permitted when stream is capturing\n");
  EXPECT_EQ(capture.also, (std::vector{Cause::kNotCuda, Cause::kPoisonedContext}));
}

TEST(LastWords, AFailedOperationOfTensorFlowIsNoWarning) {
  EXPECT_EQ(
      root("2021-11-09 23:33:14.027593: W tensorflow/core/framework/op_kernel.cc:1767] OP_REQUIRES failed at "
           "sparse_xent_op.cc:90 : Invalid argument: Received a label value of 67 which is outside the valid "
           "range of [0, 1).  Label values: 0 0\n")
          .cause,
      Cause::kLabelOutOfRange);
}

TEST(LastWords, ALaunchersSummaryNamesNoCause) {
  EXPECT_EQ(explain("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
                    "train.py FAILED\n  exitcode  : 1 (pid: 4242)\n")
                .verdict,
            Verdict::kUnknown);
}

TEST(LastWords, CleanWantsAnOrdinaryEnd) {
  for (const std::string_view end :
       {"the wheel of fortune turns", "This card and that library do not go together",
        "every worker has left us", "the driver seems to be gone", "Shader model two is what this wants",
        "frame grabber: lens cap", "4 cards asked for, only 2 are there"}) {
    const Report report = explain("step 1 loss 0.3\n" + std::string(end) + "\n");
    EXPECT_EQ(report.verdict, Verdict::kUnknown) << end;
    ASSERT_EQ(report.findings.size(), 1U) << end;
    EXPECT_EQ(report.findings.front().cause, Cause::kInsufficientEvidence);
    EXPECT_EQ(report.findings.front().evidence.front().text, end);
    EXPECT_EQ(report.findings.front().evidence.front().line, 2);
  }
}

TEST(LastWords, OrdinaryEndsOfManyKindsAreClean) {
  for (const std::string_view end :
       {"Epoch 3/3: 100%|##########| 40/40 [00:12<00:00, 3.3it/s]",
        "40/40 [==============================] - 3s 75ms/step - loss: 0.21 - accuracy: 0.93",
        "2026-01-02 10:00:00,123 - main - INFO - no work is left",
        "{\"level\":\"info\",\"msg\":\"the queue is not used\"}",
        "I0102 10:00:00.000000 42 main.cc:12] the cache is not used",
        "INFO:     127.0.0.1:52144 - \"GET /health HTTP/1.1\" 200 OK",
        "/opt/py/a.py:12: UserWarning: the rows do not sum to one",
        "test mIoU 0.71, pixel acc 0.93",
        "graph splits = 104",
        "final estimate: PPL = 8.23 +/- 0.06",
        "total time = 4156.04 ms",
        "Successfully installed torch-2.9",
        "-- Build files have been written to: out",
        "[100%] Built target ops",
        "salloc: Granted job allocation 173",
        "sys     0m0.368s",
        "tensor([0.1, 0.2], device='cuda:0')",
        "{'accuracy': 0.84, 'f1': 0.89}",
        "|  No running processes found                 |",
        "<Figure size 432x288 with 1 Axes>",
        "[2519 rows x 12 columns]",
        "out/run-3/best.pt",
        "user@node:~/run$ ",
        ">>> ",
        "node-51",
        "GPU 33.21 Mh/s",
        "[1] TRUE",
        "torch.cuda.is_available() = True",
        "torch 2.1.0 cuda 12.1 cudnn 8902",
        "Device name: NVIDIA GeForce RTX 3090",
        "cuda",
        "pod/train-0 condition met",
        "ninja: no work to do.",
        "  1) gcc/11.2.0   2) cuda/12.2",
        "Post job cleanup.",
        "LOG (gmm-align[5.5]:main():gmm-align.cc:126) Done 1000, retried 2, could not align 0",
        "Note: The following floating-point exceptions are signalling: IEEE_DENORMAL",
        "Keyboard interrupt received, exiting.",
        "Model has 124M parameters",
        "12 tests: shard 3 of 4 passed",
        "Saved the weights to out",
        "Server is listening on port 80",
        "You should probably TRAIN this model on a down-stream task to be able to use it."})
    EXPECT_EQ(after_a_step(end), Verdict::kClean) << end;
}

TEST(LastWords, OfSeveralFilesOneMayEndAnywhere) {
  EXPECT_EQ(
      explain({{"0.log", "step 1 loss 0.3\n", 0}, {"1.log", "step 1 loss 0.3\nand so on\n", 1}}).verdict,
      Verdict::kClean);
}

TEST(LastWords, ALogThatMayGoOnIsNotJudgedByItsLastLine) {
  EXPECT_EQ(explain_so_far("step 1 loss 0.3\nthe wheel of fortune turns\n").verdict, Verdict::kClean);
}

TEST(LastWords, PerplexitiesOfNanAreNotFinite) {
  EXPECT_EQ(root("perplexity: 12 chunks\n[1]nan,[2]nan,[3]nan,\n").cause, Cause::kNonFiniteValue);
}

}  // namespace
}  // namespace trapline
