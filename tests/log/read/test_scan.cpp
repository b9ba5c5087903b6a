#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "../../checks/instruction_sets.hpp"
#include "log/read/scan.hpp"
#include "log/read/scan_literals.hpp"

namespace trapline {
namespace {

class ReaderScan : public testing::WithEveryInstructionSet {};

// The lines (by their start) that hold a hit.
std::set<std::size_t> lines_of(std::string_view block, const std::vector<Hit>& hits) {
  std::set<std::size_t> lines;
  for (const Hit& hit : hits) {
    const std::size_t feed = hit.position == 0 ? block.npos : block.rfind('\n', hit.position - 1);
    lines.insert(feed == block.npos ? 0 : feed + 1);
  }
  return lines;
}

void expect_as_reference(std::string_view block) {
  std::vector<Hit> fast;
  std::vector<Hit> slow;
  EXPECT_EQ(scan_block(block, fast), scan_block_reference(block, slow));
  EXPECT_EQ(lines_of(block, fast), lines_of(block, slow)) << block;
  EXPECT_TRUE(std::is_sorted(fast.begin(), fast.end(),
                             [](const Hit& a, const Hit& b) { return a.position < b.position; }));
}

TEST_P(ReaderScan, FindsEveryLiteralAnywhereInEitherCase) {
  for (const scan::Literal& literal : scan::literals()) {
    std::string upper(literal.text);
    for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    for (std::size_t before = 0; before < 160; ++before) {
      for (const std::string_view text : {literal.text, std::string_view(upper)}) {
        const std::string block =
            std::string(before, 'x') + std::string(text) + std::string(before % 7, '.') + "\n";
        std::vector<Hit> hits;
        EXPECT_EQ(scan_block(block, hits), 1U);
        ASSERT_FALSE(hits.empty()) << text << " behind " << before;
        const bool found = std::any_of(hits.begin(), hits.end(), [&](const Hit& hit) {
          return hit.position == before || hit.kind != HitKind::kWeak;
        });
        EXPECT_TRUE(found) << text << " behind " << before;
      }
    }
  }
}

TEST_P(ReaderScan, AgreesWithTheReferenceOnRandomText) {
  std::mt19937 random(20261121);
  const auto literals = scan::literals();
  for (int round = 0; round < 400; ++round) {
    std::string block;
    const std::size_t size = random() % 3000;
    while (block.size() < size) {
      switch (random() % 6) {
        case 0:
          block += literals[random() % literals.size()].text;
          break;
        case 1:
          block += literals[random() % literals.size()].text.substr(random() % 4);
          break;
        case 2:
          block += '\n';
          break;
        case 3:
          block += std::string(random() % 90, 'a');
          break;
        default:
          for (int k = 0; k < 12; ++k)
            block += static_cast<char>(random() % 3 == 0 ? random() : 'a' + random() % 26);
      }
    }
    expect_as_reference(block);
  }
}

TEST_P(ReaderScan, SkipsTheRestOfALineButNotOfAnEndlessOne) {
  std::vector<Hit> hits;
  scan_block("error error error\nerror\n", hits);
  ASSERT_EQ(hits.size(), 2U);
  EXPECT_EQ(hits[0].position, 1U);
  EXPECT_EQ(hits[1].position, 19U);
  hits.clear();
  const std::string endless = "error" + std::string(3 * kHitStride, 'x') + "Assertion";
  scan_block(endless, hits);
  ASSERT_EQ(hits.size(), 2U);
  EXPECT_EQ(hits[1].position, endless.size() - 8);
  EXPECT_EQ(hits[1].kind, HitKind::kFlood);
}

TEST_P(ReaderScan, HealthyLogsHaveNoHits) {
  constexpr std::string_view kHealthy =
      "2024-05-11 21:05:25,123 - INFO - train.py:120 - epoch 12 step 482 loss 2.1439 lr 0.000394 grad_norm "
      "1.27\n"
      "Epoch 3:  45%|####5     | 45/100 [00:12<00:15,  3.61it/s, loss=0.423, v_num=12]\n"
      "INFO:     127.0.0.1:52144 - \"POST /v1/completions HTTP/1.1\" 200 OK\n"
      "Loading checkpoint shards: 100%|##########| 4/4 [00:04<00:00,  1.02s/it]\n"
      "node1:4711:4711 [0] NCCL INFO Channel 00/24 :    0   1   2   3   4   5   6   7\n"
      "GPU available: True (cuda), used: True\nTPU available: False, using: 0 TPU cores\n"
      "Using bfloat16 Automatic Mixed Precision (AMP)\nsaving model to outputs/checkpoint-1500\n"
      "{'loss': 0.5312, 'grad_norm': 1.25, 'learning_rate': 4.6e-05, 'epoch': 0.26}\n";
  std::vector<Hit> hits;
  EXPECT_EQ(scan_block(kHealthy, hits), 10U);
  EXPECT_TRUE(hits.empty()) << kHealthy.substr(hits.empty() ? 0 : hits[0].position, 20);
}

TEST_P(ReaderScan, FaultsHaveHits) {
  for (const std::string_view line :
       {"x.cu:1: f: block: [0,0,0], thread: [1,0,0] Assertion `t >= 0 && t < n_classes` failed.",
        "RuntimeError: CUDA error: device-side assert triggered",
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "NVRM: Xid (PCI:0000:65:00): 31, pid=9, name=python",
        "Killed",
        "Aborted (core dumped)",
        "terminate called after throwing an instance of 'c10::Error'",
        "torch.OutOfMemoryError: CUDA out of memory.",
        "CUBLAS_STATUS_NOT_INITIALIZED when calling cublasCreate(handle)",
        "cuDNN error: CUDNN_STATUS_MAPPING_ERROR",
        "Watchdog caught collective operation timeout",
        "Memory access fault by GPU node-1",
        "no kernel image is available for execution on the device",
        "cuda runtime error (59)",
        "HSA_STATUS_ERROR_EXCEPTION",
        "Segmentation fault",
        "exitcode: -6 (pid: 3)",
        "NCCL WARN Cuda failure 'x'",
        "x.cu: block: [0,0,0], thread: [1,0,0] \u65ad\u8a00\u5931\u8d25\u3002",
        "========= Invalid __global__ read of size 4 bytes",
        "ggml-cuda.cu:1: GGML_ASSERT(x) failed",
        "index 15 is out of bounds for dimension 0 with size 10",
        "Cuda failure: 222",
        "unspecified launch failure"}) {
    std::vector<Hit> hits;
    scan_block(line, hits);
    EXPECT_FALSE(hits.empty()) << line;
  }
}

TEST_P(ReaderScan, CountsLineFeeds) {
  for (std::size_t size = 0; size < 200; ++size) {
    std::string text(size, 'x');
    for (std::size_t k = 0; k < size; k += 3) text[k] = '\n';
    EXPECT_EQ(count_newlines(text), (size + 2) / 3);
    std::vector<Hit> hits;
    EXPECT_EQ(scan_block(text, hits), (size + 2) / 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ReaderScan, testing::every_instruction_set(), testing::name_of_set);

}  // namespace
}  // namespace trapline
