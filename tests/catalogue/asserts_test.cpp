#include "catalogue/asserts.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace trapline {
namespace {

// The parts of a sample line in the plain form "path:line: kernel: block: ..., thread: ... Assertion `c`
// failed."
AssertSite site_of(std::string_view sample) {
  AssertSite site;
  const std::size_t assertion = sample.find("Assertion `");
  if (assertion != std::string_view::npos) {
    const std::size_t begin = assertion + 11;
    site.condition = sample.substr(begin, sample.rfind("` failed") - begin);
  }
  std::size_t colon = sample.find(".cu");
  for (const std::string_view end : {".h:", ".py:"}) {
    if (colon == std::string_view::npos) colon = sample.find(end);
  }
  if (colon == std::string_view::npos) return site;
  colon = sample.find(':', colon);
  site.file = base_name(sample.substr(0, colon));
  site.line = std::stoll(std::string(sample.substr(colon + 1, 6)));
  const std::size_t kernel = sample.find(": ", colon);
  if (kernel != std::string_view::npos && sample.find(": block") > kernel)
    site.kernel = sample.substr(kernel + 2, sample.find(": block") - kernel - 2);
  return site;
}

TEST(Asserts, TableIsComplete) {
  // 313 places were read in PyTorch's sources and in logs of all its releases.
  std::size_t torch = 0;
  for (const AssertRow& row : assert_rows()) {
    EXPECT_FALSE(row.sample.empty());
    EXPECT_FALSE(row.versions.empty()) << row.sample;
    torch += row.sample.find("paddle") == std::string_view::npos ? 1 : 0;
  }
  EXPECT_GE(torch, 313U);
}

TEST(Asserts, EverySampleFindsItsRow) {
  for (const AssertRow& row : assert_rows()) {
    if (row.condition.empty() || row.sample.find("Assertion `") == std::string_view::npos) continue;
    const AssertMatch match = find_assert(site_of(row.sample));
    ASSERT_NE(match.row, nullptr) << row.sample;
    // The same place may stand in several rows, one per release; they must mean the same.
    EXPECT_EQ(match.row->cause, row.cause) << row.sample << "\n" << match.row->sample;
    EXPECT_EQ(match.row->argument, row.argument) << row.sample << "\n" << match.row->sample;
    EXPECT_TRUE(match.by_condition) << row.sample;
  }
}

TEST(Asserts, ConditionWithoutPlace) {
  EXPECT_EQ(find_assert({"", 0, "", "t >= 0 && t < n_classes"}).row->cause, Cause::kLabelOutOfRange);
  EXPECT_EQ(find_assert({"", 0, "", "srcIndex < srcSelectDimSize"}).row->cause,
            Cause::kEmbeddingIndexOutOfRange);
}

TEST(Asserts, WordsThatAnyFileCanHoldNeedTheirOwn) {
  EXPECT_EQ(find_assert({"my_kernel.cu", 12, "k", "false"}).row, nullptr);
  EXPECT_EQ(find_assert({"my_kernel.cu", 12, "k", "end >= begin"}).row, nullptr);
  EXPECT_EQ(find_assert({"EmbeddingBag.cu", 57, "", "end >= begin"}).row->op, "embedding_bag");
}

TEST(Asserts, HipAndCudaNameOneSource) {
  const AssertMatch match =
      find_assert({"IndexKernel.hip", 94, "operator()",
                   "-sizes[i] <= index && index < sizes[i] && \"index out of bounds\""});
  ASSERT_NE(match.row, nullptr);
  EXPECT_EQ(match.row->op, "index");
}

TEST(Asserts, PlaceAloneIsLessThanTheCondition) {
  const AssertMatch match = find_assert({"ClassNLLCriterion.cu", 105, "", ""});
  ASSERT_NE(match.row, nullptr);
  EXPECT_EQ(match.row->cause, Cause::kLabelOutOfRange);
  EXPECT_FALSE(match.by_condition);
}

TEST(Asserts, TheLineTellsGatherFromScatter) {
  const std::string_view condition = "idx_dim >= 0 && idx_dim < index_size && \"index out of bounds\"";
  EXPECT_EQ(find_assert({"ScatterGatherKernel.cu", 115, "operator()", condition}).row->op, "gather");
  EXPECT_EQ(find_assert({"ScatterGatherKernel.cu", 365, "operator()", condition}).row->op, "scatter");
  EXPECT_EQ(find_assert({"ScatterGatherKernel.cu", 314, "operator()", condition}).row->op, "scatter");
}

TEST(Asserts, CompiledBoundMayBeAnything) {
  EXPECT_EQ(find_assert({"ck4.py", 30, "unknown", "index out of bounds: 0 <= tmp4 < 50304"}).row->cause,
            Cause::kCompiledIndexAssert);
  EXPECT_EQ(find_assert({"unknown", 0, "unknown", "index out of bounds: 0 <= tmp11 < 1 + ks0"}).row->cause,
            Cause::kCompiledIndexAssert);
}

TEST(Asserts, LongSignaturesNameTheirKernel) {
  const AssertMatch match = find_assert(
      {"", 0, "void cunn_SpatialClassNLLCriterion_updateOutput_kernel(T *, T *, long) [with T = float]", ""});
  ASSERT_NE(match.row, nullptr);
  EXPECT_EQ(match.row->op, "nll_loss2d");
}

}  // namespace
}  // namespace trapline
