// Whole lines as the sources of programs print them: loaders, schedulers, installers, runtimes, frameworks.
#include <gtest/gtest.h>

#include <string>

#include "reason_case.hpp"

namespace trapline {
namespace {

using enum Cause;

TEST(Sources, LinesTellTheirCause) {
  struct Case {
    std::string_view text;
    Cause cause;
    Certainty certainty;
  };
  const Case cases[] = {
      // llama.cpp
      {"llama_init_from_model: V cache quantization requires flash_attn\ncommon_init_from_params: failed to "
       "create context with model 'm.gguf'\n",
       kNotCuda, Certainty::kDetermined},
      {"/src/ggml-cuda/cpy.cu:540: ggml_cuda_cpy: unsupported type combination (q4_0 to f16)\n", kNotCuda,
       Certainty::kLikely},
      {"/src/ggml-rpc/ggml-rpc.cpp:512: Remote RPC server crashed or returned malformed response\n",
       kInsufficientEvidence, Certainty::kUnknown},
      // the driver's module and the kernel
      {"Error! Bad return status for module build on kernel: 6.8.0-45-generic (x86_64)\nConsult "
       "/var/lib/dkms/nvidia/550.54/build/make.log for more information.\n",
       kHardwareOrDriver, Certainty::kLikely},
      {"nvidia: version magic '6.8.0-45-generic SMP preempt ' should be '6.8.0-40-generic SMP preempt '\n",
       kHardwareOrDriver, Certainty::kLikely},
      // Slurm, Kubernetes, Ray
      {"sbatch: error: Batch job submission failed: Requested GRES option unsupported by configured "
       "SelectType plugin\n",
       kNotCuda, Certainty::kLikely},
      {"slurmd: fatal: can't stat gres.conf file /dev/nvidia0: No such file or directory\n",
       kHardwareOrDriver, Certainty::kLikely},
      {"Warning  DeadlineExceeded  2m  job-controller  Job was active longer than specified deadline\n",
       kNotCuda, Certainty::kLikely},
      // Windows' boxes
      {"The application was unable to start correctly (0xc000007b). Click OK to close the application.\n",
       kNotCuda, Certainty::kLikely},
      {"The instruction at 0x00007FFB0A10 referenced memory at 0x0000000000000000. The memory could not be "
       "written.\n",
       kNotCuda, Certainty::kLikely},
      // runtimes
      {"Abort was called at 287 line in file:\n./shared/source/memory_manager/host_ptr_manager.cpp\n",
       kInsufficientEvidence, Certainty::kUnknown},
      {"RuntimeError: synStatus=26 [Generic failure] Device acquire failed.\n", kInsufficientEvidence,
       Certainty::kUnknown},
      {"what():  No device of requested type available.\n", kHardwareOrDriver, Certainty::kLikely},
      // frameworks
      {"MemoryError: Allocation of 17.18 GB failed on CUDA. Used: 3.2 GB\n", kOutOfMemory,
       Certainty::kDetermined},
      {"FloatingPointError: invalid value (nan) encountered in jit(mul)\n", kNonFiniteValue,
       Certainty::kLikely},
      {"Error: unexpected dtype, expected: F32, got: F16\n", kDtypeMismatch, Certainty::kLikely},
      {"torch._dynamo.exc.Unsupported: Graph break under fullgraph=True\n", kNotCuda, Certainty::kLikely},
      {"onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented: [ONNXRuntimeError] : 9 : "
       "NOT_IMPLEMENTED : Could not find an implementation for ConvInteger(10) node with name 'c'\n",
       kNotCuda, Certainty::kLikely},
      {"RuntimeError: q must be on CUDA\n", kDeviceMismatch, Certainty::kDetermined},
  };
  for (const Case& c : cases) {
    const Finding f = root(std::string("loading run.yaml\n").append(c.text));
    EXPECT_EQ(f.cause, c.cause) << c.text;
    EXPECT_EQ(f.certainty, c.certainty) << c.text;
  }
}

// Its own traceback is whole: what another one lacks came later, and killed nothing.
TEST(Sources, ADeathWithItsWholeTracebackIsNotDoubtedForALaterOneThatIsCut) {
  const std::string whole =
      "Traceback (most recent call last):\n  File \"run.py\", line 10, in <module>\n    "
      "subprocess.run(cmd, check=True)\nsubprocess.CalledProcessError: Command '['python', 'train.py']' died "
      "with <Signals.SIGSEGV: 11>.\n";
  const std::string cut =
      "Traceback (most recent call last):\n  File \"train.py\", line 12, in <module>\n    finish()\n  File "
      "\"train.py\", line 20, in finish\n    torch.save(x, p)\n";
  EXPECT_EQ(root(whole + cut).certainty, Certainty::kLikely);
  EXPECT_EQ(root(cut + whole).certainty, Certainty::kUnknown);
}

TEST(Sources, SeveralRanksThatOnlyWaitedInACollectiveAreTheLinkOrThePeer) {
  const std::string_view line =
      "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE)\n";
  const Report all = explain({{"rank0.log", line, 0}, {"rank1.log", line, 1}});
  ASSERT_FALSE(all.findings.empty());
  EXPECT_EQ(all.findings[0].cause, kHardwareOrDriver);
  EXPECT_EQ(all.findings[0].also.front(), kPeerFailure);
  const Finding one = root(std::string("[Rank 1] ").append(line));
  EXPECT_EQ(one.cause, kPeerFailure);
  EXPECT_EQ(one.also.front(), kHardwareOrDriver);
  EXPECT_EQ(root("[Rank 1] NET/Socket: remote connection closed by peer node35\n").cause, kPeerFailure);
}

}  // namespace
}  // namespace trapline
