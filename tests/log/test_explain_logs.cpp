// Whole logs, the whole way from bytes to the verdict: what only shows when reader and reasoner work
// together.
#include <gtest/gtest.h>

#include <string>

#include "explain_bytes.hpp"

namespace trapline {
namespace {

constexpr std::string_view kIndex =
    "/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:142: operator(): block: [0,0,0], thread: [86,0,0] "
    "Assertion "
    "`index >= -sizes[i] && index < sizes[i] && \"index out of bounds\"` failed.\n";

// The reader takes the bar off the line; what it said must not be lost.
TEST(ExplainLogs, ABarGluedToTheAssertionSpeaksOfTheFirstBatch) {
  const std::string header = "     Epoch   gpu_mem       box       obj       cls    labels  img_size\n";
  const std::string first = "  0%|          | 0/2750 [00:00<?, ?it/s]",
                    later = " 40%|####      | 40/99 [00:09<00:12, 4it/s]";
  for (const std::string& log :
       {header + first + std::string(kIndex), header + first + "\r" + std::string(kIndex)}) {
    const Finding f = root_of(log);
    EXPECT_EQ(f.cause, Cause::kLabelOutOfRange) << log;
    EXPECT_EQ(f.certainty, Certainty::kLikely) << log;
  }
  for (const std::string& log :
       {header + later + std::string(kIndex), header + later + "\r" + std::string(kIndex),
        header + first + "\r" + later + std::string(kIndex)})
    EXPECT_EQ(root_of(log).cause, Cause::kIndexOutOfRange) << log;
}

}  // namespace
}  // namespace trapline
