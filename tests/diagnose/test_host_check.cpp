// The words about an argument that an installed package's own check refused.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reading.hpp"

namespace trapline::diagnose {
namespace {

using nlohmann::json;

json facts_of(const json& check, const char* message = "target out of range") {
  json facts = {{"exception", "ValueError"}, {"message", message}, {"check", check}};
  return facts;
}

json value_check() {
  return {{"package", "checker"},
          {"op", "accuracy"},
          {"where", "checker/metric.py:9"},
          {"condition", "target.max() >= num_classes"},
          {"needs", false},
          {"kind", "value"},
          {"name", "target"},
          {"tensor", {{"shape", {4}}, {"dtype", "int64"}, {"device", "cpu"}}},
          {"element", {{"index", {3}}, {"value", 7}, {"bad", 1}, {"total", 4}, {"min", 0}, {"max", 7}}},
          {"values", {{7, 1}}},
          {"upper", 3},
          {"limit", "num_classes"}};
}

TEST(HostCheck, TheVariableTheValueAndWhatIsTaken) {
  json check = value_check();
  check["variable"] = {{"name", "y"}, {"index", {1, 1}}};
  const auto finding = diagnose_host_error(facts_of(check));
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->cause, Cause::kLabelOutOfRange);
  EXPECT_EQ(finding->certainty, Certainty::kDetermined);
  EXPECT_EQ(finding->summary, "accuracy: y[1, 1] is 7; checker takes below 3 (`num_classes`)");
  ASSERT_TRUE(finding->valid);
  EXPECT_EQ(finding->valid->max, Scalar{std::int64_t{2}});
  ASSERT_EQ(finding->evidence.size(), 2U);
  EXPECT_EQ(finding->evidence[1].text, "checker/metric.py:9: checker refuses `target.max() >= num_classes`");
  EXPECT_EQ(finding->fix.back(), "else look at where y[1, 1] comes from: print(y.unique())");
}

TEST(HostCheck, TheLibrarysKnobIsSaid) {
  json facts = facts_of(value_check());
  facts["library"] = {{"caller", "torchmetrics"}, {"callers", {"torchmetrics.metric.Metric"}}};
  const auto finding = diagnose_host_error(facts);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->fix.front(),
            "if there are meant to be more classes: create the metric with num_classes=N");
  json check = value_check();
  check["element"]["value"] = -1;
  check["values"] = {{-1, 1}};
  facts["check"] = check;
  EXPECT_EQ(diagnose_host_error(facts)->fix.front(),
            "if -1 marks what is not to count: create the metric with ignore_index=-1");
  // What most labels are is not what does not count; and -1 and 1 may be the two classes.
  check["element"]["bad"] = 3;
  check["values"] = {{-1, 3}};
  check["allowed"] = {0, 1};
  check.erase("upper");
  check.erase("limit");
  facts["check"] = check;
  const Finding binary = diagnose_host_error(facts).value_or(Finding{});
  ASSERT_FALSE(binary.fix.empty());
  EXPECT_EQ(binary.fix.front(), "if -1 and 1 are the two classes, they have to be 0 and 1 here");
  for (const std::string& fix : binary.fix) EXPECT_EQ(fix.find("ignore_index"), std::string::npos) << fix;
}

TEST(HostCheck, AKnobForClassesIsNoneForAnotherSetting) {
  json check = value_check();
  check["limit"] = "self.config.vocab_size";
  json facts = facts_of(check, "Label values must be <= vocab_size: 3");
  facts["library"] = {{"caller", "torchmetrics"}, {"callers", {"torchmetrics.metric.Metric"}}};
  const Finding f = diagnose_host_error(facts).value_or(Finding{});
  ASSERT_FALSE(f.fix.empty());
  EXPECT_EQ(f.fix.front(),
            "if there are meant to be more: `vocab_size`, which is 3, has to be as large as all data need, 8 "
            "at least (7 is the highest seen here)");
}

TEST(HostCheck, ABoundThatIsANumberIsNoCountOfClasses) {
  json check = value_check();
  check["upper"] = 1;
  check["limit"] = "1";
  check["closed"] = true;
  json facts = facts_of(check);
  facts["library"] = {{"caller", "torchmetrics"}, {"callers", {"torchmetrics.metric.Metric"}}};
  const auto finding = diagnose_host_error(facts);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->summary, "accuracy: target[3] is 7; checker takes at most 1");
  EXPECT_EQ(finding->fix, std::vector<std::string>{"look at where target[3] comes from"});
}

TEST(HostCheck, AnIndexIsNoLabel) {
  json check = value_check();
  check["name"] = "idx_durations";
  check["condition"] = "phi.shape[1] <= idx_durations.max()";
  EXPECT_EQ(diagnose_host_error(facts_of(check, "phi is too small"))->cause, Cause::kIndexOutOfRange);
}

TEST(HostCheck, AnArgumentThatNothingTellsIsLeftOut) {
  json check = value_check();
  check["name"] = "gain";
  check["condition"] = "(gain < 0).any()";
  EXPECT_FALSE(diagnose_host_error(facts_of(check, "gain must be non-negative")));
}

TEST(HostCheck, HalfAFactIsNone) {
  for (const char* member : {"package", "condition", "element"}) {
    json check = value_check();
    check.erase(member);
    EXPECT_FALSE(diagnose_host_error(facts_of(check))) << member;
  }
  json check = value_check();
  check["kind"] = "rows";
  check["element"]["index"] = json::array();
  EXPECT_FALSE(diagnose_host_error(facts_of(check)));
  check["kind"] = "shape";
  EXPECT_FALSE(diagnose_host_error(facts_of(check)));
}

json shape_check(const char* condition, bool needs, const json& sides, const json& tensors) {
  return {{"package", "checker"},
          {"op", "loss"},
          {"where", "checker/loss.py:9"},
          {"condition", condition},
          {"needs", needs},
          {"kind", "shape"},
          {"name", ""},
          {"sides", sides},
          {"tensors", tensors}};
}

json sized(const char* name, const json& shape) {
  return {{"name", name}, {"shape", shape}, {"dtype", "int64"}, {"device", "cpu"}};
}

TEST(HostCheck, LongerThanThePositionTableIsALength) {
  const auto cause = [](const char* setting) {
    const std::string condition = std::string("labels.shape[1] > self.") + setting;
    return diagnose_host_error(
               facts_of(shape_check(condition.c_str(), false,
                                    json::array({json::array({"labels.shape[1]", 15}),
                                                 json::array({std::string("self.") + setting, 12})}),
                                    json::array({sized("labels", {4, 15})}))))
        ->cause;
  };
  EXPECT_EQ(cause("max_target_positions"), Cause::kPositionIndexOutOfRange);
  EXPECT_EQ(cause("config.max_position_embeddings"), Cause::kPositionIndexOutOfRange);
  EXPECT_EQ(cause("block_size"), Cause::kPositionIndexOutOfRange);
  EXPECT_EQ(cause("num_channels"), Cause::kShapeMismatch);
  EXPECT_EQ(cause("max_batch"), Cause::kShapeMismatch);
}

TEST(HostCheck, LabelsAtAnotherRate) {
  const auto of = [](const json& predictions, const json& targets) {
    return diagnose_host_error(
        facts_of(shape_check("abs(difference) > allowed", false,
                             json::array({json::array({"abs(difference)", 50}), json::array({"allowed", 3})}),
                             json::array({sized("logits", predictions), sized("target", targets)}))));
  };
  const auto found = of({6, 50}, {6, 100});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->fix.front(),
            "target is 2 times as long in dimension 1: where strides or poolings shorten what it belongs to, "
            "make it at that rate, too: target[:, ::2]");
  EXPECT_EQ(of({6, 50}, {6, 90})->fix.size(), 1U);   // no multiple
  EXPECT_EQ(of({50, 6}, {100, 6})->fix.size(), 1U);  // another batch
  EXPECT_EQ(of({6, 50, 2}, {6, 100, 4})->fix.size(), 1U);
}

TEST(HostCheck, ClassNumbersWhereAChannelForEachIsExpected) {
  json facts =
      facts_of(shape_check("target.shape != input.shape", false,
                           json::array({json::array({"target.shape", {4, 1, 32, 32}}),
                                        json::array({"input.shape", {4, 3, 32, 32}})}),
                           json::array({sized("y", {4, 1, 32, 32}), sized("input", {4, 3, 32, 32})})),
               "ground truth has different shape");
  facts["library"] = {{"caller", "monai"}, {"callers", {"monai.losses.dice.DiceLoss"}}};
  const Finding f = diagnose_host_error(facts).value_or(Finding{});
  ASSERT_EQ(f.fix.size(), 2U);
  EXPECT_EQ(f.fix[0],
            "create the loss with to_onehot_y=True: the labels are class numbers, and it wants a channel for "
            "each class");
  EXPECT_EQ(f.fix[1], "the check is in checker/loss.py:9: it refuses `target.shape != input.shape`");
  // Two sizes differ: no matter of class numbers alone.
  facts["check"]["tensors"][0] = sized("y", {4, 1, 16, 32});
  EXPECT_EQ(diagnose_host_error(facts)->fix.size(), 1U);
}

TEST(HostCheck, WhatIsLongerThanASettingIsCut) {
  const auto first = [](const char* condition, bool needs, const json& sides) {
    const auto finding = diagnose_host_error(
        facts_of(shape_check(condition, needs, sides, json::array({sized("labels", {4, 61})})), "too long"));
    return finding ? finding->fix.front() : "";
  };
  const json sides = json::array({json::array({"labels.shape[1]", 61}), json::array({"self.most", 48})});
  EXPECT_EQ(first("labels.shape[1] > self.most", false, sides),
            "labels may have 48 at most in dimension 1 (`self.most`): cut or leave out what is longer");
  EXPECT_EQ(first("labels.shape[1] >= self.most", false, sides),
            "labels may have 47 at most in dimension 1 (`self.most`): cut or leave out what is longer");
  EXPECT_EQ(first("self.most >= labels.size(1)", true,
                  json::array({json::array({"self.most", 48}), json::array({"labels.size(1)", 61})})),
            "labels may have 48 at most in dimension 1 (`self.most`): cut or leave out what is longer");
  const json same = json::array({json::array({"labels.shape[1]", 61}), json::array({"self.size", 48})});
  EXPECT_EQ(first("labels.shape[1] != self.size", false, same),
            "the check is in checker/loss.py:9: it refuses `labels.shape[1] != self.size`");
}

TEST(HostCheck, ATensorOfTheLibrarysOwnIsNotToBeAskedByTheUser) {
  json check = value_check();
  check["kind"] = "nan";
  check["name"] = "f0";
  check["element"]["value"] = "nan";
  check["tensor"]["dtype"] = "float32";
  const auto last = [&] {
    const auto finding = diagnose_host_error(facts_of(check, "underflow"));
    return finding ? finding->fix.back() : "";
  };
  EXPECT_EQ(last(), "f0 is checker's own, made of what it was given: look for the first NaN there");
  check["variable"] = {{"name", "y"}, {"index", {3}}};
  EXPECT_EQ(last(), "look for the first NaN before the call: `torch.isfinite(y).all()`");
}

}  // namespace
}  // namespace trapline::diagnose
