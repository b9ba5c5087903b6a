// Frameworks besides PyTorch, the machine, and how a process died.
#include <gtest/gtest.h>

#include <string>

#include "reason_case.hpp"

namespace trapline {
namespace {

using enum Cause;

Cause first_cause(std::string_view log) {
  const Report report = explain(log);
  return report.findings.empty() ? kInsufficientEvidence : report.findings.front().cause;
}

TEST(Machine, AHeaderOfPaddleHoldsDeviceCode) {
  const Report report = explain(
      "Error: /paddle/paddle/fluid/operators/cross_entropy_op.h:173 Assertion `label >= 0 && label < "
      "feature_size_` failed. Variable value (label) of OP(fluid.layers.cross_entropy) expected >= 0 and < "
      "10, "
      "but got 10. Please check label value.\n"
      "terminate called after throwing an instance of 'paddle::platform::EnforceNotMet'\n");
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings.front().cause, kLabelOutOfRange);
  EXPECT_EQ(report.findings.front().device_assert, true);
}

TEST(Machine, AGlibcAssertionInAHeaderIsTheHosts) {
  EXPECT_EQ(first_cause("prog: /src/cross_entropy_op.h:173: void f(int): Assertion `label >= 0 && label < "
                        "feature_size_' failed.\n"),
            kNotCuda);
}

TEST(Machine, SignalsAndExitCodes) {
  for (const std::string_view line :
       {"./run.sh: line 12: 12345 Killed                  python train.py",
        "Segmentation fault (core dumped)", "Process finished with exit code 137",
        "command terminated with exit code 139", "srun: error: node01: task 3: Bus error",
        "train.service: Main process exited, code=killed, status=9/KILL",
        "[launch.py:321] ['/usr/bin/python', 'train.py'] exits with return code = -9",
        "failed (exitcode: -9) local_rank: 5 (pid: 1234) of binary: /usr/bin/python"}) {
    EXPECT_EQ(first_cause(line), kNotCuda) << line;
  }
}

TEST(Machine, AHealthyEndIsNoDeath) {
  for (const std::string_view line :
       {"Process finished with exit code 0", "web exited with code 143", "Exited (0) 3 minutes ago",
        "INFO exited: worker (exit status 0; expected)", "POST /v1/completions finished with code 200",
        "\"OOMKilled\": false,", "killed 3 enemies", "Terminated",
        "train.service: Main process exited, code=killed, status=15/TERM"}) {
    EXPECT_TRUE(explain(line).findings.empty()) << line;
  }
}

TEST(Machine, ADeathAfterItsCauseIsNoCause) {
  EXPECT_EQ(first_cause("RuntimeError: CUDA error: an illegal memory access was encountered\n"
                        "Aborted (core dumped)\nmake: *** [train] Error 134\n"),
            kIllegalMemoryAccess);
}

TEST(Machine, CorrectedErrorsOfTheBusAreNoFault) {
  EXPECT_TRUE(explain("pcieport 0000:c9:01.0: AER: Corrected error received: 0000:b4:00.0\n"
                      "nvidia 0000:77:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer\n")
                  .findings.empty());
  EXPECT_EQ(first_cause("nvidia 0000:77:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal)\n"),
            kHardwareOrDriver);
}

TEST(Machine, WhatTensorFlowSaysWithoutAGpuIsNoFault) {
  EXPECT_TRUE(explain("E cuda_driver.cc:271] failed call to cuInit: UNKNOWN ERROR (303)\n"
                      "W dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; dlerror: "
                      "libcudart.so.11.0: cannot open shared object file: No such file or directory\n")
                  .findings.empty());
}

TEST(Machine, AnAllocatorThatOnlyAsksIsNoFailure) {
  const std::string refused =
      "W bfc_allocator.cc:245] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.20GiB";
  EXPECT_EQ(first_cause(refused + " requested by op Conv2D\n"), kOutOfMemory);
  EXPECT_TRUE(explain(refused + ". The caller indicates that this is not a failure, but may mean\n")
                  .findings.empty());
}

TEST(Machine, AGpuThatDoesNotStartIsTheDriversAtLeast) {
  const Finding init = root("NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x22:0x3f:894)\n");
  EXPECT_EQ(init.cause, kHardwareOrDriver);
  EXPECT_EQ(init.certainty, Certainty::kLikely);
  EXPECT_EQ(root("NVRM: osInitNvMapping: *** Cannot attach gpu\n").cause, kHardwareOrDriver);
  EXPECT_EQ(root("amdgpu 0000:03:00.0: amdgpu: GPU mode1 reset failed\n").cause, kHardwareOrDriver);
  // Also printed when the machine goes to sleep.
  EXPECT_EQ(explain("amdgpu 0000:03:00.0: amdgpu: MODE1 reset\n").verdict, Verdict::kUnknown);
}

}  // namespace
}  // namespace trapline
