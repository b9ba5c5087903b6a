// No surer than the text: what a line leaves open is told beside the likeliest, or as unknown.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "reason_case.hpp"

namespace trapline {
namespace {

using enum Cause;

bool has_also(const Finding& finding, Cause cause) {
  return std::ranges::find(finding.also, cause) != finding.also.end();
}

TEST(Certainty, ACollectiveThatDidNotEndMayBeThePeerTheCodeOrTheLink) {
  const Finding f = root(
      "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7306, OpType=ALLREDUCE, "
      "Timeout(ms)=1800000) ran for 1800192 milliseconds before timing out.\n");
  EXPECT_EQ(f.cause, kPeerFailure);
  EXPECT_EQ(f.certainty, Certainty::kLikely);
  EXPECT_TRUE(has_also(f, kHardwareOrDriver));
  EXPECT_TRUE(has_also(f, kNotCuda));
}

TEST(Certainty, ALostPeerIsAPeersFailure) {
  for (const std::string_view line :
       {"ncclRemoteError: A call failed possibly due to a network error or a remote process exiting "
        "prematurely.\n",
        "RuntimeError: [gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:43112\n",
        "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients "
        "joined.\n"}) {
    const Finding f = root(line);
    EXPECT_EQ(f.cause, kPeerFailure) << line;
    EXPECT_EQ(f.certainty, Certainty::kLikely) << line;
    EXPECT_TRUE(has_also(f, kHardwareOrDriver)) << line;
  }
}

TEST(Certainty, AStatusThatSaysOnlyThatACallFailedIsUnknown) {
  for (const std::string_view line :
       {"RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:825, unhandled system error, NCCL version 2.7.8\n",
        "ncclInternalError: Internal check failed.\n",
        "RuntimeError: UR backend failed. UR backend returns:40 (UR_RESULT_ERROR_OUT_OF_RESOURCES)\n",
        "clEnqueueNDRangeKernel failed: OUT_OF_RESOURCES\n"}) {
    EXPECT_EQ(root(line).certainty, Certainty::kUnknown) << line;
  }
  // Another process that holds the GPU, its mode, or the machine: nothing that the program did.
  EXPECT_EQ(root("RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable\n").certainty,
            Certainty::kLikely);
  EXPECT_TRUE(has_also(root("RuntimeError: UR backend failed. UR backend returns:40\n"), kOutOfMemory));
}

TEST(Certainty, WordsThatARuntimeHasForTheHostAsWellAreLikely) {
  for (const std::string_view line :
       {"RuntimeError: Resource exhausted: Out of memory while trying to allocate 24 bytes.\n",
        "[E:onnxruntime:, cuda_call.cc:123 CudaCall] CUDA failure 101: invalid device ordinal ; GPU=-1\n"})
    EXPECT_EQ(root(line).certainty, Certainty::kLikely) << line;
}

TEST(Certainty, ANumberWithoutItsNameIsLikely) {
  for (const std::string_view line : {"CUDA error 700 at main.cu:12\n", "CUDA error 2\n"})
    EXPECT_EQ(root(line).certainty, Certainty::kLikely) << line;
  EXPECT_EQ(root("CUDA error 700: an illegal memory access was encountered\n").certainty,
            Certainty::kDetermined);
}

TEST(Certainty, ATinyRefusalOfMetalIsLikely) {
  const std::string tail = " on shared pool.\n";
  const std::string head = "RuntimeError: MPS backend out of memory (MPS allocated: ";
  EXPECT_EQ(
      root(head + "1.00 KB, other allocations: 0 bytes, max allowed: 9.07 GB). Tried to allocate 256 bytes" +
           tail)
          .certainty,
      Certainty::kLikely);
  EXPECT_EQ(
      root(head + "9.05 GB, other allocations: 0 bytes, max allowed: 9.07 GB). Tried to allocate 256 bytes" +
           tail)
          .certainty,
      Certainty::kDetermined);
}

TEST(Certainty, AnXidSaysNoMoreThanItsNumber) {
  const auto xid = [](int number) {
    return root("[12.5] NVRM: Xid (PCI:0000:65:00): " + std::to_string(number) + ", pid=4711, name=python\n");
  };
  EXPECT_EQ(xid(62).cause, kHardwareOrDriver);
  EXPECT_EQ(xid(62).certainty, Certainty::kLikely);
  EXPECT_EQ(xid(119).certainty, Certainty::kLikely);
  EXPECT_EQ(xid(48).certainty, Certainty::kDetermined);
  EXPECT_EQ(xid(63).certainty, Certainty::kUnknown);  // a record of what was mended
}

TEST(Certainty, AnXidTellsWhyAProcessDied) {
  const Finding f = root(
      "[12.5] NVRM: Xid (PCI:0000:65:00): 31, pid=4711, name=python\nsrun: error: node7: task 0: Killed\n");
  EXPECT_EQ(f.cause, kIllegalMemoryAccess);
  EXPECT_EQ(f.certainty, Certainty::kLikely);
}

TEST(Certainty, AnAssertionOfHostCodeMayBeOfWhatAGpuGave) {
  for (const std::string_view line :
       {"RuntimeError: assertion (kernel.dim() > 0) failed. kernel must not be empty\n",
        "assertion (kernel.dim() > 0) failed. kernel must not be empty\n", "ASSERTION FAILED: n_tokens > 0\n",
        "server: /src/queue.cc:12: void push(): Assertion `size < capacity' failed.\n"}) {
    const Finding f = root(line);
    EXPECT_EQ(f.cause, kNotCuda) << line;
    EXPECT_EQ(f.certainty, Certainty::kLikely) << line;
  }
}

TEST(Certainty, JobLinesOfShellsAndSchedulers) {
  for (const std::string_view line :
       {"[1]    13708 killed     python train.py", "[1]  + 13708 killed     python train.py",
        "[1]  + killed     python train.py", "> [1]    13708 killed     python train.py", "+ Killed",
        "Killed: 9", "[1]    Segmentation fault            python train.py (core dumped)",
        "Segmentation fault: 11",
        "slurmstepd: error: *** JOB 42 ON node01 CANCELLED AT 2026-01-02T03:04:05 ***",
        "    Exit_status = 265", "job 42.1 died through signal KILL (9)",
        "Job terminated of its own accord at 2026-01-02T03:04:05Z with signal 9",
        "/var/spool/slurm/job42/slurm_script: line 31:  6521 Killed python train.py",  // blanks folded on a
                                                                                       // page
        "run.sh: line 3: 77 Segmentation fault python train.py",
        "Thread 1 \"python\" received signal SIGSEGV, Segmentation fault."}) {
    EXPECT_EQ(root(std::string(line) + "\n").cause, kNotCuda) << line;
  }
  for (const std::string_view line :
       {"[1]    13708 abort (core dumped)  python train.py", "Abort trap: 6",
        "fish: Job 1, 'python train.py' terminated by signal SIGABRT (Abort)",
        "run.sh: line 3: 77 Aborted python train.py", "srun: error: Node failure on node01",
        "failed       100 : assumedly after job", "      Reason:       Error", "    Exit_status = 271"}) {
    EXPECT_EQ(explain(std::string(line) + "\n").verdict, Verdict::kUnknown) << line;
  }
  for (const std::string_view line :
       {"    Exit_status = 0", "failed       0", "      Reason:       Completed",
        "Job terminated of its own accord at 2026-01-02T03:04:05Z with exit-code 0."}) {
    EXPECT_EQ(explain(std::string(line) + "\n").verdict, Verdict::kClean) << line;
  }
}

}  // namespace
}  // namespace trapline
