// Findings about exceptions where the facts say more than the message: shapes, operands.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "reading.hpp"

namespace trapline::diagnose {
namespace {

using nlohmann::json;

Finding of_message(const std::string& message, json facts) {
  facts["exception"] = "RuntimeError";
  facts["message"] = message;
  const auto finding = diagnose_host_error(facts);
  EXPECT_TRUE(finding) << message;
  return finding.value_or(Finding{});
}

TEST(HostErrors, SamplesThatCannotBeStackedInAWorker) {
  const json stack = {
      {{"file", "/v/torch/utils/data/_utils/collate.py"}, {"line", 274}, {"function", "collate"}}};
  json facts = {{"stack", stack}};
  const Finding bare = of_message("Trying to resize storage that is not resizable", facts);
  EXPECT_TRUE(bare.fix.back().starts_with("with num_workers=0")) << bare.summary;
  facts["uneven"] = {{"usual", {3, 32, 32}}, {"odd", {3, 32, 30}}, {"entry", 2}, {"of", 4},
                     {"entries", {2}},       {"field", "image"}};
  const Finding told = of_message("Trying to resize storage that is not resizable", facts);
  EXPECT_EQ(
      told.summary,
      "stack: the samples of a batch must have one shape, but `image` of entry 2 has [3, 32, 30], the others "
      "have [3, 32, 32]");
  for (const std::string& fix : told.fix) EXPECT_EQ(fix.find("num_workers"), fix.npos) << fix;
}

TEST(HostErrors, TheBlankOfCtc) {
  const Finding finding = of_message(
      "blank must be in label range",
      {{"operands", {{{"name", "lp"}, {"as", "log_probs"}, {"shape", {12, 2, 9}}, {"dtype", "float32"}}}}});
  EXPECT_EQ(finding.cause, Cause::kNumClassesMismatch);
  EXPECT_EQ(finding.summary,
            "ctc_loss: blank is not one of the classes of log_probs, which has 9: valid are [0, 9)");
}

TEST(HostErrors, TheInputOfALayerIsNamedOnce) {
  const Finding finding = of_message(
      "mat1 and mat2 must have the same dtype, but got Double and Float",
      {{"module",
        {{"name", "fc"}, {"type", "Linear"}, {"attributes", {{"in_features", 4}, {"out_features", 2}}}}},
       {"operands",
        {{{"name", "x"}, {"shape", {3, 4}}, {"dtype", "float32"}},
         {{"name", "x.double()"}, {"as", "input"}, {"shape", {3, 4}}, {"dtype", "float64"}}}}});
  EXPECT_EQ(finding.summary, "linear: x.double() is float64 but the weight of `fc` Linear(4, 2) is float32");
  EXPECT_EQ(finding.fix.front(), "use `x.float()` in place of `x.double()`");
}

}  // namespace
}  // namespace trapline::diagnose
