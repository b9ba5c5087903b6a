#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/cause.hpp"

namespace trapline {
namespace {

TEST(Cause, CodesAndSlugsAreUniqueAndWellFormed) {
  std::set<std::string_view> codes, slugs;
  for (const CauseInfo& row : all_causes()) {
    EXPECT_EQ(row.code.size(), 5u) << row.code;
    EXPECT_EQ(row.code.substr(0, 2), "TL") << row.code;
    EXPECT_TRUE(codes.insert(row.code).second) << row.code;
    EXPECT_TRUE(slugs.insert(row.slug).second) << row.slug;
    EXPECT_FALSE(row.title.empty());
    EXPECT_EQ(&info(row.cause), &row) << "the table is in the order of the enumeration";
  }
}

TEST(Cause, IsFoundByCodeInAnyCaseAndBySlug) {
  EXPECT_EQ(find_cause("TL101"), Cause::kLabelOutOfRange);
  EXPECT_EQ(find_cause("tl107"), Cause::kInvalidProbability);
  EXPECT_EQ(find_cause("nan_to_index"), Cause::kNanToIndex);
  EXPECT_EQ(find_cause("TL999"), std::nullopt);
  EXPECT_EQ(find_cause(""), std::nullopt);
}

// Codes are promised to users: this list may only grow.
TEST(Cause, CodesAreStable) {
  EXPECT_EQ(info(Cause::kLabelOutOfRange).code, "TL101");
  EXPECT_EQ(info(Cause::kNumClassesMismatch).code, "TL102");
  EXPECT_EQ(info(Cause::kEmbeddingIndexOutOfRange).code, "TL103");
  EXPECT_EQ(info(Cause::kPositionIndexOutOfRange).code, "TL104");
  EXPECT_EQ(info(Cause::kIndexOutOfRange).code, "TL105");
  EXPECT_EQ(info(Cause::kLossInputOutOfRange).code, "TL106");
  EXPECT_EQ(info(Cause::kInvalidProbability).code, "TL107");
  EXPECT_EQ(info(Cause::kNanToIndex).code, "TL108");
  EXPECT_EQ(info(Cause::kNonFiniteValue).code, "TL109");
  EXPECT_EQ(info(Cause::kShapeMismatch).code, "TL201");
  EXPECT_EQ(info(Cause::kDeviceMismatch).code, "TL202");
  EXPECT_EQ(info(Cause::kDtypeMismatch).code, "TL203");
  EXPECT_EQ(info(Cause::kIncompleteCheckpoint).code, "TL204");
}

}  // namespace
}  // namespace trapline
