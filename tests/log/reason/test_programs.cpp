// What programs of any kind say of a failure: a status wherever it stands, a runtime's words in an exception,
// last words that tell no more, and lines of healthy runs beside them.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "reason_case.hpp"

namespace trapline {
namespace {

using enum Cause;

Finding of(std::string_view line) { return root(std::string(line) + "\n"); }

TEST(Programs, AStatusIsKnownWhereverItStandsBehindAWordOfItsRuntime) {
  for (const std::string_view line :
       {"Crash while rendering: CUDA Driver API error out of memory code 2",
        "CUDA error at cuCtxCreate: Out of memory",
        "cuda-0 Error CUDA mining: CUDA error in func init at line 126 out of memory",
        "OptiX error: out of memory (render.cpp:12)", "error: musaErrorMemoryAllocation in alloc",
        "mcErrorMemoryAllocation: failed", "MUSA error: out of memory"}) {
    EXPECT_EQ(of(line).cause, kOutOfMemory) << line;
    EXPECT_EQ(of(line).certainty, Certainty::kDetermined) << line;
  }
  EXPECT_EQ(of("CUDA.CuError(code=CUDA.cudaError_enum(0x000002bc), details=nothing)").cause,
            kIllegalMemoryAccess);
  EXPECT_EQ(of("error: mcErrorIllegalAddress").cause, kIllegalMemoryAccess);
  EXPECT_EQ(explain("GPU 0 error: the engine hung\n").verdict, Verdict::kUnknown);
  // Not of the GPU, and no failure of its own.
  for (const std::string_view line : {"CUDA error in the worker: the host is out of memory",
                                      "GPU job failed: the node was not out of memory"})
    EXPECT_NE(of(line).cause, kOutOfMemory) << line;
}

// A dying program's last words, whatever it was written in and whatever started it.
TEST(Programs, WhatDiedIsNeverClean) {
  for (const std::string_view line :
       {"omegaconf.errors.MissingMandatoryValue: Missing mandatory value: data.path",
        "exit status 2",
        "FAILURE: Build failed with an exception.",
        "npm error code ELIFECYCLE",
        "lua: train.lua:3: attempt to index a nil value\nstack traceback:",
        "train.rb:3:in `run': undefined method `x' for nil:NilClass (NoMethodError)",
        "Fortran runtime error: End of file",
        " *** caught segfault ***",
        "thread 123 panic: index out of bounds",
        "[  FAILED  ] Gather.OutOfRange (3 ms)",
        "50% tests passed, 1 tests failed out of 2",
        "test result: FAILED. 3 passed; 1 failed; 0 ignored",
        "--- FAIL: TestGather (0.00s)",
        "train-0  0/1   Error    0   3m",
        "train-0  0/1   Evicted   0   3m",
        "rpc error: code = Unavailable desc = connection error",
        "Finished: FAILURE",
        "Error executing job with overrides: ['a=1']",
        "./train.sh: line 3: DATA: unbound variable",
        "Command terminated by signal 9",
        "Exception in worker process",
        "IndexError                    Traceback (most recent call last)",
        "[e5d1ed26:00503] [24] /usr/lib/bindings.so(+0xcd949)[0x7fc8da6aa949]"}) {
    EXPECT_NE(explain(std::string(line) + "\n").verdict, Verdict::kClean) << line;
  }
}

TEST(Programs, ALevelThatIsAnErrorsIsKeptWithItsLine) {
  for (const std::string_view line :
       {"F0101 12:00:00.000000 123 file.cc:12] the table is empty",
        "E0101 12:00:00.000000   123 file.cc:12] could not load",
        "[2026-01-02 03:04:05.678] [main] [critical] no model", "[2026-01-02 03:04:05.678] [error] no model",
        "2026-01-02 03:04:05,678 - main - ERROR - no model",
        "2026-01-02 03:04:05.678 | CRITICAL | __main__:run:12 - no model"})
    EXPECT_EQ(explain(std::string(line) + "\n").verdict, Verdict::kUnknown) << line;
  for (const std::string_view line : {"I0101 12:00:00.000000 123 file.cc:12] the table is read",
                                      "[2026-01-02 03:04:05.678] [main] [info] no model",
                                      "2026-01-02 03:04:05,678 - main - WARNING - no model"})
    EXPECT_EQ(explain(std::string(line) + "\n").verdict, Verdict::kClean) << line;
  EXPECT_EQ(explain_so_far("E0101 of the list\n").verdict, Verdict::kClean);
}

TEST(Programs, LastWordsWithoutTheWordErrorAreNotClean) {
  for (const std::string_view line :
       {"STOP 1", "ERROR STOP", "** (Ecto.NoResults) expected one", "RESOURCE_EXHAUSTED: quota",
        "** (MatchError) no match", "** (exit) shutdown", "** (EXIT from #PID<0.1.0>) killed by its link",
        "queue.Empty", "_queue.Empty", "socket.timeout: timed out",
        "subprocess.TimeoutExpired: Command 'nvcc' took long",
        "2026/01/02 03:04:05 open x.bin: no such file or directory"})
    EXPECT_NE(explain(std::string(line) + "\n").verdict, Verdict::kClean) << line;
  for (const std::string_view line :
       {"STOP", "STOP 0", "** (optional) skip this", "** note **", "torch.nn.Linear",
        "queue.Empty is raised when nothing is there", "collections.OrderedDict"})
    EXPECT_EQ(explain_so_far(std::string(line) + "\n").verdict, Verdict::kClean) << line;
}

TEST(Programs, AWordInTheNameOfAFileIsNoFault) {
  for (const std::string_view line :
       {"FileNotFoundError: [Errno 2] No such file or directory: '/data/CUDA out of memory/a.pt'",
        "KeyError: 'CUDA error: an illegal memory access was encountered'"})
    EXPECT_EQ(of(line).cause, kNotCuda) << line;
}

TEST(Programs, FramesAloneAreNotClean) {
  for (const std::string_view line :
       {"  File \"train.py\", line 3, in main", "----> 1 run(model)", "---> 12 loss = f(x)",
        "             at src/a.rs:12:5", "\t/app/main.go:12 +0x1d",
        "\tat org.apache.spark.Foo.bar(Foo.java:12)", "    at Object.<anonymous> (/app/index.js:12:3)",
        "   at Program.Main() in C:\\a\\b.cs:line 12", "#3  0x00007f1234 in foo () from /lib/libc.so.6",
        "#1 main (argc=1) at a.cc:12", "frame #3: c10::foo() + 0x12 (0x7f12 in /usr/lib/libc10.so)",
        "    @     0x7f1234567890  raise"})
    EXPECT_NE(explain(std::string(line) + "\n").verdict, Verdict::kClean) << line;
  for (const std::string_view line : {"train.py\nqueue.py\nmain.go", "--> 12 files", "    at /data/train.bin",
                                      "#1 first\n#2 second", "  see main.go:12"})
    EXPECT_EQ(explain_so_far(std::string(line) + "\n").verdict, Verdict::kClean) << line;
}

TEST(Programs, ALineThatOnlySpeaksAboutAnErrorIsNone) {
  for (const std::string_view line :
       {"# If you see `CUDA error: device-side assert triggered`, check your labels.",
        "Note: if you get \"CUDA out of memory\", reduce the batch size.",
        "To avoid CUDA out of memory errors, use gradient checkpointing.",
        "Q: What does 'an illegal memory access was encountered' mean?",
        "| Xid 79 | GPU has fallen off the bus | replace it |",
        "  --max-oom-retries INT   How often to retry after CUDA out of memory (default: 3)",
        "HEAD is now at 1a2b3c4 Handle CUDA error 700",
        "WARNING: CUDA out of memory, retrying with batch size 4",
        "AutoBatch: CUDA out of memory. Tried batch size 64; using batch size 32",
        "========= ERROR SUMMARY: 0 errors"}) {
    EXPECT_EQ(explain(std::string(line) + "\nepoch 1 done\n").verdict, Verdict::kClean) << line;
  }
  // NCCL's own words begin like advice.
  EXPECT_EQ(explain("To avoid data inconsistency, we are taking the entire process down.\n").verdict,
            Verdict::kFault);
}

TEST(Programs, WhatOtherFrameworksRefuseIsNamed) {
  const std::pair<std::string_view, Cause> lines[] = {
      {"TypeError: add got incompatible shapes for broadcasting: (3,), (4,).", kShapeMismatch},
      {"ValueError: Shapes (None, 1) and (None, 10) are incompatible", kShapeMismatch},
      {"ValueError: For 'MatMul', the input dimensions must be equal, but got 'x1_col': 3 and 'x2_row': 4.",
       kShapeMismatch},
      {"ValueError: [matmul] Last dimension of first input with shape (2,3) must match second to last "
       "dimension "
       "of second input with shape (4,5).",
       kShapeMismatch},
      {"TypeError: lax.dot_general requires arguments to have the same dtypes, got float32, int32.",
       kDtypeMismatch},
      {"Error: dtype mismatch in add, lhs: F32, rhs: F16", kDtypeMismatch},
      {"Error: device mismatch in matmul, lhs: Cpu, rhs: Cuda { gpu_id: 0 }", kDeviceMismatch},
      {"\tMissing key(s) in state_dict: \"layer1.weight\".", kIncompleteCheckpoint}};
  for (const auto& [line, cause] : lines) {
    EXPECT_EQ(of(line).cause, cause) << line;
    EXPECT_EQ(of(line).certainty, Certainty::kLikely) << line;
  }
}

TEST(Programs, AnAllocationThatWasRefusedIsLikelyMemory) {
  const Finding device = of("CUDA error - cannot allocate big buffer for DAG.");
  EXPECT_EQ(device.cause, kOutOfMemory);
  EXPECT_EQ(device.certainty, Certainty::kLikely);
  EXPECT_EQ(of("CUDA: could not allocate 2 GiB of pinned memory").cause, kNotCuda);
  // An arena of the host's, too.
  EXPECT_EQ(of("onnxruntime::BFCArena Failed to allocate memory for requested buffer of size 4585").certainty,
            Certainty::kLikely);
}

TEST(Programs, AnInvalidContextBeforeARefusedAllocationLeavesItOpen) {
  const Report report = explain(
      "Invalid value in cuCtxPushCurrent(device->cuContext) (util.cpp:26)\n"
      "System is out of GPU and shared host memory\n");
  EXPECT_EQ(report.findings.front().certainty, Certainty::kUnknown);
  EXPECT_EQ(of("System is out of GPU and shared host memory").cause, kOutOfMemory);
}

TEST(Programs, AnExceptionInARuntimesWordsIsNotTheProgramsOwn) {
  for (const std::string_view line :
       {"RuntimeError: NPU function error: call aclnnInplaceCopy failed, error code is 561103",
        "RuntimeError: The Inner error is reported as above. The current working operator name is Conv2D.",
        "RuntimeError: the Level Zero loader gave up",
        "OSError: [WinError 1114] failed. Error loading \"c10.dll\"",
        "Native API failed. Native API returns: -6 (PI_ERROR_OUT_OF_HOST_MEMORY)", "Aborted (core dumped)"})
    EXPECT_EQ(of(line).cause, kInsufficientEvidence) << line;
  for (const std::string_view line :
       {"KeyError: 'CUDA_VISIBLE_DEVICES'", "AttributeError: 'Config' object has no attribute 'cuda'",
        "RuntimeError: CUDA_VISIBLE_DEVICES: not a list", "RuntimeError: /opt/cuda_utils.h 25",
        "train.py: error: unrecognized arguments: --local-rank=2"})
    EXPECT_EQ(of(line).cause, kNotCuda) << line;
  // A number beside them tells more.
  EXPECT_EQ(of("RuntimeError: NPU function error: call aclrtMalloc failed, error code is 207001").cause,
            kOutOfMemory);
}

TEST(Programs, LastWordsAreNeverClean) {
  for (const std::string_view line :
       {"Check failed: num_cuda_devices > 0 (0 vs. 0)", "make: *** [Makefile:12: all] Error 2",
        "a.cu(12): error: identifier \"foo\" is undefined", "Execution halted",
        "bash: line 3: nvcc: command not found", "python.exe has stopped working",
        "Faulting application name: python.exe, version: 3.11.4", "Training failed.", "Aborting.",
        "Traceback (most recent call last):", "memory allocation of 12 bytes failed",
        "cp: error writing 'a.pt': No space left on device",
        "===== 1 failed, 3 passed in 1.20s =====", "Device lost", "D3D12: Removing Device.",
        "Inconsistency in user input:", "Magick: abort due to signal 11 (SIGSEGV) \"Segmentation Fault\"..."})
    EXPECT_NE(explain("step 1 loss 0.3\n" + std::string(line) + "\n").verdict, Verdict::kClean) << line;
  for (const std::string_view line :
       {"===== 3 passed in 1.20s =====", "0 failed, 3 passed", "train error: 0.25",
        "-- Looking for a.h - not found", "Reached the time limit, stopping", "Job 3 finished. failed=0",
        "all processes exited"})
    EXPECT_EQ(explain("step 1 loss 0.3\n" + std::string(line) + "\n").verdict, Verdict::kClean) << line;
}

TEST(Programs, AWeakWordHidesNoExceptionAndNoOtherLine) {
  EXPECT_EQ(of("worker: error: ValueError: no such key").cause, kNotCuda);
  EXPECT_EQ(root("/usr/bin/ld: cannot find -lcuda: No such file or directory\n"
                 "collect2: error: ld returned 1 exit status\n")
                .cause,
            kArchMismatch);
  // Two lines of one logger are two lines.
  EXPECT_EQ(root("amdgpu 0000:2b:00.0: ring gfx_0.0.0 timeout, signaled seq=41207, emitted seq=41210\n"
                 "amdgpu 0000:2b:00.0: Ring gfx_0.0.0 reset failed, and nothing else came of it at all\n")
                .cause,
            kHardwareOrDriver);
}

TEST(Programs, WhatIsScatteredTellsWhetherItIsALabel) {
  const std::string head = "Traceback (most recent call last):\n  File \"/home/u/a.py\", line 7, in f\n    ";
  const std::string tail = "\nRuntimeError: CUDA error: device-side assert triggered\n";
  const Finding label = root(head + "y.scatter_(1, target.view(-1, 1), 1)" + tail);
  EXPECT_EQ(label.cause, kLabelOutOfRange);
  EXPECT_EQ(label.certainty, Certainty::kLikely);
  EXPECT_EQ(root(head + "torch.full((n, num_classes), off).scatter_(1, x, on)" + tail).certainty,
            Certainty::kUnknown);
}

TEST(Programs, TensorsOfTwoDevicesAreAMismatchWhoeverSaysSo) {
  for (const std::string_view line :
       {"Cannot assign node feature \"h\" on device cuda:0 to a graph on device cpu. Call DGLGraph.to()",
        "ValueError: Received incompatible devices for jitted computation. Got argument x of f",
        "RuntimeError: Error launching kernel 'f', trying to launch on device='cuda:0', but input array for "
        "argument 'a' is on device=cpu.",
        "RuntimeError: points must be a CUDA tensor"})
    EXPECT_EQ(of(line).cause, kDeviceMismatch) << line;
}

TEST(Programs, NcclWithoutAnOptionalLibraryIsHealthy) {
  for (const std::string_view line :
       {"gpu07:9120:9201 [0] misc/ibvwrap.cu:63 NCCL WARN Failed to open libibverbs.so[.1]",
        "gpu07:1:1 [0] misc/gdrwrap.cc:73 NCCL WARN Failed to open libgdrapi.so - not found",
        "gpu07:1:1 [0] NCCL WARN NET/IB : mlx5_0:1 Got non-fatal async event: port error(10)"})
    EXPECT_EQ(explain(std::string(line) + "\n").verdict, Verdict::kClean) << line;
}

TEST(Programs, ABuildThatFailedIsNoFaultOfTheGpu) {
  for (const std::string_view line :
       {"ops.cpp:12:7: error: 'AT_CHECK' was not declared in this scope",
        "csrc/ops.h:3:10: fatal error: cuda_runtime.h: No such file or directory",
        "kernel.cu(12): error: identifier \"foo\" is undefined",
        "ops.cpp(12): error C2065: 'foo': undeclared identifier",
        "/usr/bin/ld: ops.o: in function `f': undefined reference to `launch(float*)'",
        "ops.obj : error LNK2019: unresolved external symbol f", "ninja: build stopped: subcommand failed.",
        "RuntimeError: Error compiling objects for extension"}) {
    const Finding found = of(line);
    EXPECT_EQ(found.cause, kNotCuda) << line;
    EXPECT_EQ(found.certainty, Certainty::kLikely) << line;
  }
  // What the compiler of device code says of the GPU tells more.
  EXPECT_EQ(of("nvcc fatal   : Unsupported gpu architecture 'compute_120'").cause, kArchMismatch);
}

TEST(Programs, AnOperatorWithoutAKernelIsTheProgramsOrTheBuilds) {
  const Finding aten =
      of("NotImplementedError: Could not run 'aten::view' with arguments from the 'CUDA' backend.");
  EXPECT_EQ(aten.cause, kNotCuda);
  EXPECT_EQ(aten.certainty, Certainty::kLikely);
  EXPECT_EQ(
      of("NotImplementedError: Could not run 'my_ops::scan' with arguments from the 'CUDA' backend.").cause,
      kArchMismatch);
  EXPECT_EQ(of("RuntimeError: output with backend CPU and dtype Float doesn't match the desired backend CUDA "
               "and dtype Float")
                .cause,
            kDeviceMismatch);
  EXPECT_EQ(of("RuntimeError: output with backend CUDA and dtype Float doesn't match the desired backend "
               "CUDA and dtype Half")
                .cause,
            kDtypeMismatch);
}

}  // namespace
}  // namespace trapline
