// With what an ordinary log ends, and with what none does.
#include "catalogue/ends.hpp"

#include <gtest/gtest.h>

#include <string>

#include "catalogue/last_words.hpp"
#include "catalogue/patterns.hpp"
#include "catalogue/wordings.hpp"

namespace trapline {
namespace {

TEST(Ends, EverySampleIsWhatItsFormIs) {
  for (const EndForm& form : end_forms()) {
    const bool is_ordinary = form.weight == EndWeight::kSurely || form.weight == EndWeight::kPerhaps;
    EXPECT_EQ(ends_ordinarily(form.sample), is_ordinary) << form.id;
  }
}

TEST(Ends, AFormThatIsCertainOutweighsAComplaintAndAnotherDoesNot) {
  EXPECT_TRUE(ends_ordinarily("step 12 loss 0.4, no better than before"));
  EXPECT_FALSE(ends_ordinarily("total memory: not what it should be, 12"));
  EXPECT_FALSE(ends_ordinarily("the decoder went away"));
  EXPECT_TRUE(ends_ordinarily("https://example.org/issues/not/found"));
}

// Every message of a failure that the catalogue knows, as if it did not: where no word speaks of a failure
// either, the form of the line decides. The share is measured, and may not grow.
TEST(Ends, AFailureThatNoRowKnewSeldomLooksOrdinary) {
  int open = 0, ordinary = 0;
  std::string which;
  const auto look = [&](const WordingRow& row) {
    const std::string_view sample = row.sample;
    if (!row.is_failure() || sample.find(' ') == std::string_view::npos) return;
    if (judge_last(sample, true) == LastLine::kBad) return;
    ++open;
    if (!ends_ordinarily(sample)) return;
    ++ordinary;
    which += std::string(row.id) + ": " + std::string(sample) + "\n";
  };
  for (const WordingRow& row : wording_rows()) look(row);
  for (const PatternRow& row : pattern_rows()) look(row.wording);
  EXPECT_GT(open, 150);
  EXPECT_LT(ordinary * 4, open) << ordinary << " of " << open << "\n" << which;
}

}  // namespace
}  // namespace trapline
