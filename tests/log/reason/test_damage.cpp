// Every assertion that a user can reach, through every way in which a log is damaged on its way: the cause
// must survive, or at least never turn into another one that is claimed with certainty.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "../log_damage.hpp"
#include "catalogue/asserts.hpp"
#include "catalogue/fold.hpp"
#include "reason_case.hpp"

namespace trapline {
namespace {

// Conditions that only their file tells ("false", "end >= begin") may be lost with it.
bool distinctive(const AssertRow& row) { return fold(row.condition).size() >= 9; }

TEST(Damage, TheCauseSurvives) {
  for (const AssertRow& row : assert_rows()) {
    if (row.reach != Reach::kUser || row.condition.empty() || row.cause == Cause::kInsufficientEvidence ||
        row.sample.find("block: [") == std::string_view::npos || row.sample.starts_with("RuntimeError"))
      continue;
    for (const LogDamage& damage : line_damages()) {
      const std::string text = damage.apply(std::string(row.sample));
      const Report report = explain(text + "\n");
      const Finding f = report.findings.empty() ? Finding{} : report.findings.front();
      const bool sure = f.certainty == Certainty::kDetermined || f.certainty == Certainty::kProven;
      if (distinctive(row)) {
        EXPECT_EQ(f.cause, row.cause) << damage.name << ": " << text;
        EXPECT_EQ(f.device_assert, true) << damage.name << ": " << text;
        if (damage.keeps_op) {
          EXPECT_EQ(f.op, row.op) << damage.name << ": " << text;
        }
      } else if (sure) {
        EXPECT_EQ(f.cause, row.cause) << damage.name << ": " << text;
      }
    }
  }
}

TEST(Damage, MessagesSurvive) {
  for (const std::string message :
       {"RuntimeError: CUDA error: an illegal memory access was encountered",
        "RuntimeError: CUDA error: misaligned address",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device"}) {
    const Cause cause = root(message).cause;
    for (const LogDamage& damage : line_damages()) {
      if (!damage.for_messages) continue;
      const std::string text = damage.apply(message);
      EXPECT_EQ(root(text + "\n").cause, cause) << damage.name << ": " << text;
    }
  }
}

TEST(Damage, TwoRanksTornInsideOneLine) {
  const std::string_view text =
      "0,0:115: operator(): block: [3374,0,0], thread: "
      "[29/p/aten/src/ATen/native/cuda/ScatterGatherKernel.cu/p/aten/src/ATen/native/"
      "cuda/ScatterGatherKernel.cu:115: operator(): block: [5859,0,0], thread: [7,0,0] Assertion `idx_dim >= "
      "0 && idx_dim < index_size && "
      "\"index out of bounds\"` failed.\n"
      "/p/aten/src/ATen/native/cuda/ScatterGatherKernel.cu], thread: [105,0,0] Assertion `idx_dim >= 0 && "
      "idx_dim < index_size && \"index "
      "out of bounds\"` failed.\n";
  const Finding f = root(text);
  EXPECT_EQ(f.cause, Cause::kIndexOutOfRange);
  EXPECT_EQ(f.op, "gather");
}

TEST(Damage, TranslatedWithoutItsCondition) {
  const Finding f = root(
      "../aten/src/ATen/native/cuda/IndexKernel.cu\uFF1A92\uFF1A operator\uFF08\uFF09\uFF1A block\uFF1A "
      "[16,0,0]\uFF0C "
      "thread\uFF1A [15,0,0] \u65AD\u8A00\u5931\u8D25\u3002\n");
  EXPECT_EQ(f.cause, Cause::kIndexOutOfRange);
  EXPECT_EQ(f.certainty, Certainty::kLikely);  // the condition is lost
}

TEST(Damage, CutInTheMiddleOfThePlace) {
  const Finding f = root(
      "/pytorch/aten/src/THCUNN/ClassNLLCriterion.cu:105: void "
      "cunn_ClassNLLCriterion_updateOutput_kernel(Dtype *, long       "
      "   *, int) [with Dtype = float]: block: [0,0,0], thread: [");
  EXPECT_EQ(f.cause, Cause::kLabelOutOfRange);
  EXPECT_EQ(f.certainty, Certainty::kLikely);
}

}  // namespace
}  // namespace trapline
