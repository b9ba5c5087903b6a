#include <gtest/gtest.h>

#include "log/clean/prefix.hpp"

namespace trapline {
namespace {

struct Case {
  std::string_view raw, text;
  int rank = -1;
  std::int64_t pid = -1;
  std::string_view host = "";
};

constexpr std::string_view kFrame = "  File \"train.py\", line 3, in <module>";

const Case kCases[] = {
    // launchers
    {"[rank0]:   File \"train.py\", line 3, in <module>", kFrame, 0},
    {"[rank12]: RuntimeError: x", "RuntimeError: x", 12},
    {"[Rank 3]: RuntimeError: x", "RuntimeError: x", 3},
    {"[rank: 5] Seed set to 1", "[rank: 5] Seed set to 1", 5},
    {"rank 2: RuntimeError: x", "RuntimeError: x", 2},
    {"rank7: RuntimeError: x", "RuntimeError: x", 7},
    {"rank:  3 | 11:45:18 CRITICAL |   File \"train.py\", line 3, in <module>", kFrame, 3},
    {"[default1]:RuntimeError: x", "RuntimeError: x", 1},
    {"[default1]:[rank9]: RuntimeError: x", "RuntimeError: x", 9},
    {"[1,3]<stderr>:RuntimeError: x", "RuntimeError: x", 3},
    {"[1,3]<stderr>:  File \"train.py\", line 3, in <module>", kFrame, 3},
    {"[1,mpirank:2,algo-1]<stderr>:RuntimeError: x", "RuntimeError: x", 2, -1, "algo-1"},
    {"[prterun-node1-77@1,4]<stdout>: RuntimeError: x", "RuntimeError: x", 4},
    {"3: RuntimeError: x", "RuntimeError: x", 3},
    {" 11: RuntimeError: x", "RuntimeError: x", 11},
    {"(RayWorkerVllm pid=22809) RuntimeError: x", "RuntimeError: x", -1, 22809},
    {"(RayWorkerVllm pid=22809, ip=10.0.0.7) RuntimeError: x", "RuntimeError: x", -1, 22809, "10.0.0.7"},
    {"(VllmWorker rank=1 pid=527) RuntimeError: x", "RuntimeError: x", 1, 527},
    {"(Worker_TP3 pid=91) RuntimeError: x", "RuntimeError: x", 3, 91},
    {"(EngineCore_0 pid=5) ERROR 01-22 09:02:21 [core.py:236]   File \"train.py\", line 3, in <module>",
     kFrame, -1, 5},
    {"(VllmWorkerProcess pid=527) ERROR 01-22 09:02:21 multiproc_worker_utils.py:236] x", "x", -1, 527},
    {"node12: RuntimeError: x", "RuntimeError: x", -1, -1, "node12"},
    {"10.0.0.5: RuntimeError: x", "RuntimeError: x", -1, -1, "10.0.0.5"},
    // containers
    {"trainer-1  | RuntimeError: x", "RuntimeError: x", -1, -1, "trainer-1"},
    {"trainer_2  |   File \"train.py\", line 3, in <module>", kFrame, -1, -1, "trainer_2"},
    {"[pod/trainer-0/main] RuntimeError: x", "RuntimeError: x", -1, -1, "trainer-0"},
    {"2024-05-11T21:05:25.123456789Z RuntimeError: x", "RuntimeError: x"},
    {"2024-05-11T21:05:25.123456789Z stderr F   File \"train.py\", line 3, in <module>", kFrame},
    {"2024-05-11T21:05:25.123456789+02:00 stdout P RuntimeError: x", "RuntimeError: x"},
    {"2024-05-11T21:05:25Z stderr F [rank3]: RuntimeError: x", "RuntimeError: x", 3},
    {"2025-04-17 17:32:22\tstdout   File \"train.py\", line 3, in <module>", kFrame},
    {"2025-04-17 17:32:22\terror stdout RuntimeError: x", "RuntimeError: x"},
    // journals and the kernel
    {"Nov 21 10:03:39 node7 python3[4711]: RuntimeError: x", "RuntimeError: x", -1, 4711, "node7"},
    {"Nov  1 10:03:39 node7 kernel: [  123.456789] NVRM: Xid (PCI:0000:65:00): 31, pid=9, name=python",
     "NVRM: Xid (PCI:0000:65:00): 31, pid=9, name=python", -1, -1, "node7"},
    {"2024-11-21T10:03:39+0000 node-7 train[12]: RuntimeError: x", "RuntimeError: x", -1, 12, "node-7"},
    {"[  123.456789] NVRM: Xid (PCI:0000:65:00): 31", "NVRM: Xid (PCI:0000:65:00): 31"},
    {"[Mon Nov 11 10:22:19 2024] NVRM: Xid (PCI:0000:65:00): 31", "NVRM: Xid (PCI:0000:65:00): 31"},
    {"<6>NVRM: Xid (PCI:0000:65:00): 31", "NVRM: Xid (PCI:0000:65:00): 31"},
    // loggers
    {"2024-05-11 21:05:25 | ERROR | stderr |   File \"train.py\", line 3, in <module>", kFrame},
    {"2024-05-11 21:05:25.118 | ERROR    | yolox.core:launch:98 - An error has been caught",
     "An error has been caught"},
    {"2024-05-11 21:05:25,123 - mmcls - ERROR - RuntimeError: x", "RuntimeError: x"},
    {"[2024-05-11 21:05:25,123][train][ERROR] - RuntimeError: x", "RuntimeError: x"},
    {"[2024-11-11 10:22:19] [INFO] File \"train.py\", line 3, in <module>",
     "File \"train.py\", line 3, in <module>"},
    {"[2024-05-01 10:00:00 TP3] Scheduler hit an exception", "Scheduler hit an exception", 3},
    {"[2024-05-01 10:00:00 DP1 TP2] RuntimeError: x", "RuntimeError: x", 2},
    // people and their tools
    {"> RuntimeError: x", "RuntimeError: x"},
    {"> >   File \"train.py\", line 3, in <module>", kFrame},
    {"10888:/pytorch/aten/x.cu:16: y", "/pytorch/aten/x.cu:16: y"},
    {"   12\tRuntimeError: x", "RuntimeError: x"},
    {"[1743] RuntimeError: x", "RuntimeError: x"},
    // no prefixes
    {"RuntimeError: CUDA error: x", "RuntimeError: CUDA error: x"},
    {"  File \"train.py\", line 3, in <module>", kFrame},
    {"    return F.linear(x, w)", "    return F.linear(x, w)"},
    {"    0: 'cat',", "    0: 'cat',"},
    {":226: void softmax", ":226: void softmax"},
    {">>> train()", ">>> train()"},
    {"python3: can't open file", "python3: can't open file"},
    {"12:30:45 is a time", "12:30:45 is a time"},
    {"2024-05-11 10:00:00 Training failed: no data", "Training failed: no data"},
    {"2023-06-22T02:08:30.620935Z ERROR text_generation_launcher: Method Decode",
     "ERROR text_generation_launcher: Method Decode"},
    // tags that stay, but say who it was
    {"[E ProcessGroupNCCL.cpp:916] [Rank 7] NCCL watchdog thread terminated",
     "[E ProcessGroupNCCL.cpp:916] [Rank 7] NCCL watchdog thread terminated", 7},
    {"[Rank 2] Watchdog caught collective", "[Rank 2] Watchdog caught collective", 2},
    {"ERROR shard-manager: Shard 1 failed rank=1", "ERROR shard-manager: Shard 1 failed rank=1", 1},
    {"", ""},
};

TEST(ReaderPrefix, EachIsTakenOffAndSaysWho) {
  for (const Case& one : kCases) {
    Origin origin;
    EXPECT_EQ(without_prefix(one.raw, origin), one.text) << one.raw;
    EXPECT_EQ(origin.rank, one.rank) << one.raw;
    EXPECT_EQ(origin.pid, one.pid) << one.raw;
    EXPECT_EQ(origin.host, one.host) << one.raw;
  }
}

TEST(ReaderPrefix, NeverGoesOnForEver) {
  std::string nested;
  for (int k = 0; k < 50; ++k) nested += "[rank1]: ";
  Origin origin;
  EXPECT_EQ(without_prefix(nested, origin).size(), nested.size() - 8 * 9);
  EXPECT_EQ(origin.rank, 1);
}

TEST(ReaderPrefix, FileNamesSayRankOrProcess) {
  const std::pair<std::string_view, int> ranks[] = {
      {"logs/rank3.log", 3},
      {"rank_12.txt.gz", 12},
      {"job-rank-7.err", 7},
      {"worker2.log", 2},
      {"run/attempt_0/5/stderr.log", 5},
      {"out/1/rank.6/stderr", 6},
      {"rank3/stdout.log", 3},
      {"4.log", 4},
      {"127.log", 127},
      {"048.log", -1},    // the forty-eighth of something
      {"12345.out", -1},  // a job
      {"train.log", -1},
      {"slurm-81234.out", -1},
      {"2024/train.log", -1},
      {"frank3.log", -1},
      {"20240511.log", -1},
      {"", -1},
  };
  for (const auto& [path, rank] : ranks) EXPECT_EQ(origin_of_path(path).rank, rank) << path;
  const Origin ray = origin_of_path(
      "logs/worker-0123456789abcdef0123456789abcdef0123456789abcdef01234567-01000000-4711.err");
  EXPECT_EQ(ray.pid, 4711);
  EXPECT_EQ(ray.rank, -1);
}

}  // namespace
}  // namespace trapline
