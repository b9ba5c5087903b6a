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

TEST(Classes, WhatNcclSaysOfItsNetworkNamesThePeer) {
  const Finding system = of(
      "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2251, unhandled system error "
      "(run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5");
  EXPECT_EQ(system.cause, kPeerFailure);
  EXPECT_EQ(system.certainty, Certainty::kUnknown);
  EXPECT_FALSE(system.fix.empty());
  const Finding cuda = of("ncclUnhandledCudaError: Call to CUDA function failed.");
  EXPECT_EQ(cuda.cause, kInsufficientEvidence);
  EXPECT_FALSE(cuda.fix.empty());
  EXPECT_EQ(
      of("socketStartConnect: Connect to 10.0.0.2<41053> failed : Software caused connection abort").cause,
      kPeerFailure);
}

TEST(Classes, AScatterOfLabelsOnTheHost) {
  const std::string head = "Traceback (most recent call last):\n  File \"loss.py\", line 7, in tp_fp_fn\n";
  const std::string error = "RuntimeError: index 4 is out of bounds for dimension 1 with size 4\n";
  const Finding labels = root(head + "    y_onehot.scatter_(1, gt, 1)\n" + error);
  EXPECT_EQ(labels.cause, kLabelOutOfRange);
  EXPECT_EQ(labels.certainty, Certainty::kLikely);
  EXPECT_EQ(labels.valid->text, "[0, 4)");
  const Finding other = root(head + "    picked = table.gather(1, where)\n" + error);
  EXPECT_EQ(other.cause, kIndexOutOfRange);
  EXPECT_EQ(other.valid->text, "[0, 4)");
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

TEST(Classes, AnExceptionThatHasNothingToDoWithTheGpuOutlivesAWarning) {
  const std::string warning =
      "/opt/torch/cuda/__init__.py:88: UserWarning: CUDA initialization: The NVIDIA driver on your system is "
      "too old (found version 10020).\n  return torch._C._cuda_getDeviceCount() > 0\n";
  const auto raised = [](const std::string& code, const std::string& error) {
    return "Traceback (most recent call last):\n  File \"/srv/fit.py\", line 7, in <module>\n    " + code +
           "\n" + error + "\n";
  };
  const std::string sizes =
      raised("y = a @ b",
             "RuntimeError: The size of tensor a (4) must match the size of tensor b (9) at "
             "non-singleton dimension 1");
  EXPECT_EQ(root(warning + sizes).cause, kShapeMismatch);
  EXPECT_EQ(root(warning + raised("rows = int(text)", "ValueError: invalid literal for int()")).cause,
            kNotCuda);
  // What speaks of a GPU is what the warning told.
  EXPECT_EQ(root(warning + raised("check()", "RuntimeError: this needs a GPU")).cause, kArchMismatch);
  EXPECT_EQ(root(warning + raised("assert torch.cuda.is_available()", "AssertionError")).cause,
            kArchMismatch);
  EXPECT_EQ(root(warning).cause, kArchMismatch);
}

TEST(Classes, WhatALoaderNotesAndGoesOnWith) {
  const std::string_view size =
      "size mismatch for head.weight: copying a param with shape torch.Size([5, 8]) from checkpoint, the "
      "shape in current model is torch.Size([7, 8]).\n";
  const std::string note =
      "2026-01-02 03:04:05,678 - mmcv - WARNING - The model and loaded state dict do not match exactly\n\n";
  EXPECT_EQ(explain(note + std::string(size) + "Epoch [1][10/20] loss: 0.31\n").verdict, Verdict::kClean);
  EXPECT_EQ(
      root("RuntimeError: The model and loaded state dict do not match exactly\n" + std::string(size)).cause,
      kShapeMismatch);
}

TEST(Classes, AKernelThatFailedIsLikelyAnAccessOfItsOwn) {
  for (const std::string_view line :
       {"RuntimeError: CUDA error: unspecified launch failure",
        "cuStreamSynchronize: CUDA_ERROR_LAUNCH_FAILED", "HIP error: hipErrorLaunchFailure"}) {
    const Finding found = of(std::string(line));
    EXPECT_EQ(found.cause, kIllegalMemoryAccess) << line;
    EXPECT_EQ(found.certainty, Certainty::kLikely) << line;
    EXPECT_EQ(found.also.front(), kHardwareOrDriver) << line;
  }
  EXPECT_EQ(of("RuntimeError: CUDA error: the launch timed out and was terminated").cause, kHardwareOrDriver);
}

TEST(Classes, AStuckWatchdogFollowsFromACollective) {
  const Finding found = root(
      "[rank5]:[E626 05:14:36 ProcessGroupNCCL.cpp:1743] [Rank 5] ProcessGroupNCCL's watchdog got stuck for "
      "480 "
      "seconds without making progress in monitoring enqueued collectives.\n"
      "[rank1]:[E626 05:06:30 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation "
      "timeout: "
      "WorkNCCL(SeqNum=12, OpType=_ALLGATHER_BASE, Timeout(ms)=1800000)\n");
  EXPECT_EQ(found.cause, kPeerFailure);
  EXPECT_EQ(of("[rank5]: ProcessGroupNCCL's watchdog got stuck for 480 seconds").cause, kHardwareOrDriver);
}

TEST(Classes, NanThatTheHostRefuses) {
  for (const std::string_view line :
       {"ValueError: cannot convert float NaN to integer",
        "OverflowError: cannot convert float infinity to integer",
        "ValueError: matrix contains invalid numeric entries", "ValueError: Input X contains NaN.",
        "IntCastingNaNError: Cannot convert non-finite values (NA or inf) to integer",
        "ValueError: array must not contain infs or NaNs"}) {
    const Finding found = of(std::string(line));
    EXPECT_EQ(found.cause, kNonFiniteValue) << line;
    EXPECT_EQ(found.certainty, Certainty::kLikely) << line;
    EXPECT_EQ(found.also.front(), kNanToIndex) << line;
  }
  EXPECT_EQ(root("INFO -   global_step = 900, average loss = nan\nINFO - evaluating\n").cause,
            kNonFiniteValue);
  EXPECT_EQ(explain("INFO -   global_step = 900, average loss = 0.3\nINFO - evaluating\n").verdict,
            Verdict::kClean);
}

TEST(Classes, NamesOfAStateDict) {
  EXPECT_EQ(root("RuntimeError: Error(s) in loading state_dict for Net:\n\tUnexpected key(s) in state_dict: "
                 "\"module.fc.weight\".\n")
                .cause,
            kIncompleteCheckpoint);
  EXPECT_EQ(
      of("RuntimeError: linalg.solve: Expected A and B to have the same dtype, but found A of type Float "
         "and B of type Long instead")
          .cause,
      kDtypeMismatch);
  EXPECT_EQ(of("KeyError: 'layer2.1.bn1.running_mean'").cause, kIncompleteCheckpoint);
  EXPECT_EQ(of("KeyError: 'weight'").cause, kNotCuda);
  EXPECT_EQ(of("KeyError: 'loss.total'").cause, kNotCuda);
}

TEST(Classes, LibrariesOfAnotherVersionAndADriverThatRefuses) {
  EXPECT_EQ(of("[TRT] [E] 1: Error Code 1: Myelin (Compiled against cuDNN 8.9.1.0 but running against cuDNN "
               "8.6.0.0.)")
                .cause,
            kArchMismatch);
  EXPECT_EQ(of("cuda driver library failed to get device context 46time=2026-01-02 level=WARN").cause,
            kHardwareOrDriver);
  // The number of a source line is no status.
  EXPECT_EQ(
      of("[TensorRT] ERROR: myelin/myelinGraphContext.h (26) - Myelin Error in MyelinGraphContext: 1 "
         "(myelinVersionMismatch : Compiled against cuBLAS 11.3.0.0 but running against cuBLAS 11.2.1.0.")
          .cause,
      kArchMismatch);
  EXPECT_EQ(of("2026/01/02 03:04:05 Fatal: nvml: Not Supported").cause, kHardwareOrDriver);
}

TEST(Classes, WhatIsNeverClean) {
  for (const std::string_view line :
       {"[TRT] [E] 1: [codeGenerator.cpp::compileGraph::12] Error Code 1: Myelin (No Myelin Error exists)",
        "=========     Host Frame:/usr/lib/libcuda.so.1 (cuLaunchKernel + 0x2cd) [0x24f88d]",
        "WARN: WATCHDOG: T-Rex has a problem with GPU, terminating...", "Terminated: 15",
        "Bailing out, you are on your own. Good luck."})
    EXPECT_EQ(explain("step 1 loss 0.3\n" + std::string(line) + "\n").verdict, Verdict::kUnknown) << line;
  EXPECT_NE(explain("step 1 loss 0.3\n(node:12) UnhandledPromiseRejectionWarning: TypeError: no function\n")
                .verdict,
            Verdict::kClean);
  EXPECT_EQ(of("fit.sh: line 9: syntax error near unexpected token `done'").cause, kNotCuda);
  EXPECT_EQ(of("srun: error: Task launch for 7.0 failed on node n3: Job credential expired").cause, kNotCuda);
}

TEST(Classes, OrdinaryEnds) {
  for (const std::string_view text :
       {"ERROR: pip's dependency resolver does not currently take into account all the packages that are "
        "installed. This behaviour is the source of the following dependency conflicts.\nSuccessfully "
        "installed "
        "torch-2.9\n",
        "You're using a T5TokenizerFast tokenizer. Please note that with a fast tokenizer, using the "
        "`__call__` "
        "method is faster.\n",
        "rm: cannot remove 'out/*': No such file or directory\n", " 12 shortcut 11 8\n",
        "tests/test_op.py ..s\n", "Use `tf.config.list_physical_devices('GPU')` instead.\n",
        "wandb: ERROR Error while calling W&B API: run a/b not found (<Response [404]>)\n",
        "/srv/net.py:9: TracerWarning: Converting a tensor to a Python boolean might cause the trace to be "
        "incorrect.\n  assert x.shape[1] == self.width\n"})
    EXPECT_EQ(explain("step 1 loss 0.3\n" + std::string(text)).verdict, Verdict::kClean) << text;
  EXPECT_NE(explain("step 1 loss 0.3\ntests/test_op.py ..F\n").verdict, Verdict::kClean);
  EXPECT_NE(explain("step 1 loss 0.3\n  assert x.shape[1] == self.width\n").verdict, Verdict::kClean);
}

TEST(Classes, AnAssertThatSurfacesAtACopyTellsNothing) {
  const Finding found = root(
      "Traceback (most recent call last):\n  File \"/srv/fit.py\", line 7, in step\n    mask = "
      "torch.ones(n).to(ids.device)\nRuntimeError: CUDA error: device-side assert triggered\n");
  EXPECT_EQ(found.certainty, Certainty::kUnknown);
}

TEST(Classes, AnOldNumberAloneIsNoProof) {
  const Finding found = of("assertion 'err == cudaSuccess' failed in ~Buffer(); details: CUDA error 77");
  EXPECT_EQ(found.cause, kIllegalMemoryAccess);
  EXPECT_EQ(found.certainty, Certainty::kLikely);
}

constexpr std::string_view kNormal =
    "ValueError: Expected parameter loc (Tensor of shape (4, 3)) of distribution Normal(loc: torch.Size([4, "
    "3]), scale: torch.Size([4, 3])) to satisfy the constraint ";

TEST(Classes, ParametersOfADistributionThatAreNan) {
  // Of the numbers only NaN is none of Real().
  const Finding real = of(std::string(kNormal) + "Real(), but found invalid values:");
  EXPECT_EQ(real.cause, kNonFiniteValue);
  EXPECT_EQ(real.certainty, Certainty::kLikely);
  EXPECT_EQ(real.also, std::vector<Cause>{kInvalidProbability});
  EXPECT_EQ(of(std::string(kNormal) + "IndependentConstraint(Real(), 1), but found invalid values:").cause,
            kNonFiniteValue);
  const std::string scale =
      std::string(kNormal) + "GreaterThan(lower_bound=0.0), but found invalid values:\n";
  EXPECT_EQ(root(scale + "tensor([[nan, nan, nan],\n        [nan, nan, nan]])\n").cause, kNonFiniteValue);
  // A scale that is no NaN, one that the text does not show, and probabilities.
  EXPECT_EQ(root(scale + "tensor([[0.1, -2.0, 0.3]])\n").cause, kInvalidProbability);
  const Finding open = root(scale);
  EXPECT_EQ(open.certainty, Certainty::kLikely);
  EXPECT_EQ(open.also, std::vector<Cause>{kNonFiniteValue});
  const Finding classes =
      of("ValueError: Expected parameter probs (Tensor of shape (2,)) of distribution Categorical(probs: "
         "torch.Size([2])) to satisfy the constraint Simplex(), but found invalid values:");
  EXPECT_EQ(classes.cause, kInvalidProbability);
  EXPECT_EQ(classes.certainty, Certainty::kDetermined);
}

TEST(Classes, AWarningOfADriverIsNoFaultOfARunThatEndedWell) {
  const std::string warning =
      "/opt/torch/cuda/__init__.py:180: UserWarning: CUDA initialization: The NVIDIA driver on your system "
      "is "
      "too old (found version 11040). Please update your GPU driver\n";
  EXPECT_EQ(explain(warning + "  return torch._C._cuda_getDeviceCount() > 0\nrow 1 of 2\n\nResults saved to "
                              "out/a.json\n")
                .verdict,
            Verdict::kClean);
  EXPECT_EQ(root(warning + "row 1 of 2\n").cause, kArchMismatch);
}

TEST(Classes, TensorFlowsSummariesAndLossesOfNan) {
  for (const std::string_view line :
       {"InvalidArgumentError (see above for traceback): Nan in summary histogram for: net/fc/weights",
        "2026-01-02 03:04:05.678: W tensorflow/core/framework/op_kernel.cc:1152] Invalid argument: Nan in "
        "summary histogram for: net/fc/weights",
        "tensorflow.python.framework.errors_impl.InvalidArgumentError: gradients : Tensor had NaN values",
        "step 20, total loss is nan, regularization is nan"})
    EXPECT_EQ(of("step 1, total loss is 2.5\n" + std::string(line)).cause, kNonFiniteValue) << line;
  // A text that breaks off behind them.
  EXPECT_EQ(root("step 20, loss is nan\nTraceback (most recent call last):\n  File \"a.py\", line 3, in f\n"
                 "    return fn(*args)\n")
                .cause,
            kNonFiniteValue);
  EXPECT_EQ(
      explain("step 20, loss is 2.1\nTraceback (most recent call last):\n  File \"a.py\", line 3, in f\n"
              "    return fn(*args)\n")
          .verdict,
      Verdict::kUnknown);
}

TEST(Classes, FilesOfWeightsThatAreCutOff) {
  for (const std::string_view line :
       {"RuntimeError: PytorchStreamReader",
        "RuntimeError: PytorchStreamReader failed locating file data.pkl",
        "safetensors_rust. SafetensorError: Error while de serializing header:MetadataIncompleteBuffer",
        "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not "
        "fully covered",
        "SafetensorError: InvalidHeaderDeserialization"})
    EXPECT_EQ(of(std::string(line)).cause, kIncompleteCheckpoint) << line;
}

TEST(Classes, ChecksOfSpconvAndOfInductor) {
  for (const std::string_view text :
       {"RuntimeError: /tmp/cumm/include/tensorview/cuda/launch.h(53)\nN > 0 assert faild. CUDA kernel "
        "launch "
        "blocks must be positive, but got N= 0\n",
        "Assert failed x. false in file src/spconv/implicit-gemm.cu:12, message: Can not find any matched "
        "kernel 64 x 64\n"}) {
    const Finding found = root(text);
    EXPECT_EQ(found.cause, kCustomKernelAssert) << text;
    EXPECT_EQ(found.certainty, Certainty::kLikely) << text;
  }
  const Finding inductor = root(
      "/tmp/torchinductor_u/ab/cab.py:37: unknown: block:\n [71,0,0], thread: [39,0,0] Assertion `index out "
      "of bounds: 0 <= tl.broadcast_to(tmp10, [XBLOCK]) < 65536` failed.\n");
  EXPECT_EQ(inductor.cause, kCompiledIndexAssert);
  EXPECT_EQ(inductor.certainty, Certainty::kDetermined);
}

TEST(Classes, APeerThatClosedItsEnd) {
  const Finding found = root(
      "n1:12:34 [1] misc/socket.cc:518 NCCL WARN Net : Call to recv from 10.0.0.2<58355> failed : Broken "
      "pipe\n"
      "n1:12:34 [1] proxy.cc:1119 NCCL WARN [Proxy Service 9] Failed to execute operation Connect from rank "
      "9, "
      "retcode 6\n"
      "n1:12:34 [1] misc/socket.cc:538 NCCL WARN Net : Connection closed by remote peer n2<47861>\n");
  EXPECT_EQ(found.cause, kPeerFailure);
  EXPECT_EQ(of("n1:12:34 [1] proxy.cc:1119 NCCL WARN [Proxy Service 9] Failed to execute operation Connect "
               "from rank 9, retcode 6")
                .cause,
            kPeerFailure);
}

TEST(Classes, DriversLibraryAndCompilerThatAreNotThere) {
  EXPECT_EQ(of("error running hook #0: exit status 1, stdout: , stderr: nvidia-container-cli.real: "
               "initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file")
                .cause,
            kHardwareOrDriver);
  EXPECT_EQ(of("error: [Errno 2] No such file or directory: '/usr/local/cuda/bin/nvcc'").cause,
            kArchMismatch);
  EXPECT_EQ(of("local/mfcc.sh: expected file data/train/wav.scp to exist").cause, kNotCuda);
}

TEST(Classes, SignalsFromOutside) {
  const Finding stopped = root(
      "[2026-01-02 03:04:05,678] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 4242\n"
      "[2026-01-02 03:04:05,679] [INFO] [launch.py:328:sigkill_handler] Main process received SIGINT, "
      "exiting\n");
  EXPECT_EQ(stopped.cause, kNotCuda);
  EXPECT_EQ(stopped.certainty, Certainty::kLikely);
  for (const std::string_view line :
       {"W0101 12:00:00.000000 42 site-packages/torch/distributed/elastic/agent/server/api.py:719] Received "
        "15 "
        "death signal, shutting down workers",
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 42 got signal: 15",
        "E0101 12:00:00.000000 42 site-packages/torch/distributed/elastic/multiprocessing/api.py:882] failed "
        "(exitcode: -11) local_rank: 0 (pid: 4242) of binary: /usr/bin/python3"}) {
    const Report report = explain("step 1 loss 0.3\n" + std::string(line) + "\n");
    EXPECT_EQ(report.verdict, Verdict::kUnknown) << line;
    EXPECT_EQ(report.findings.at(0).cause, kNotCuda) << line;
  }
}

TEST(Classes, TypesThatAutogradRefuses) {
  const std::string head =
      "RuntimeError: Expected tensor for argument #1 'grad_output' to have the same type as tensor for "
      "argument #2 'weight'; but type ";
  EXPECT_EQ(of(head + "torch.cuda.HalfTensor does not equal torch.cuda.FloatTensor").cause, kDtypeMismatch);
  EXPECT_EQ(of(head + "torch.HalfTensor does not equal torch.FloatTensor").cause, kDtypeMismatch);
  EXPECT_EQ(of(head + "torch.FloatTensor does not equal torch.cuda.FloatTensor").cause, kDeviceMismatch);
}

TEST(Classes, ALogThatStopsInTheMidstOfItsWork) {
  const std::string head = "fitting\nlayers:  10%|#         | 22/224 [01:03<10:00, 2.97s/it]\n";
  EXPECT_EQ(explain(head + "layers:  67%|######7   | 151/224 [12:17<52:56, 43.51s/it]\n").verdict,
            Verdict::kUnknown);
  EXPECT_EQ(explain_so_far(head).verdict, Verdict::kClean);
  EXPECT_EQ(explain(head + "layers: 100%|##########| 224/224 [12:17<00:00, 2.51s/it]\n").verdict,
            Verdict::kClean);
  EXPECT_EQ(explain(head + "layers:  99%|######### | 223/224 [12:17<00:02, 2.51s/it]\n").verdict,
            Verdict::kClean);
  EXPECT_EQ(explain(head + "Saved the model.\n").verdict, Verdict::kClean);
}

TEST(Classes, MoreOrdinaryEnds) {
  EXPECT_EQ(explain("load the data\ntest acc :: 0.390\n").verdict, Verdict::kClean);
}

}  // namespace
}  // namespace trapline
