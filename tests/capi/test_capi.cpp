// The C face: what an adapter without our headers' C++ types can do, and that nothing it sends can break it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "trapline/capi.h"

namespace {

using nlohmann::json;

json diagnose(const char* facts) {
  char* text = trapline_diagnose(facts);
  const json answer = json::parse(text);
  trapline_free(text);
  return answer;
}

const trapline_contract* row(const std::string& id) {
  std::size_t count = 0;
  const trapline_contract* rows = trapline_contracts(&count);
  for (std::size_t i = 0; i < count; ++i) {
    if (rows[i].id == id) return &rows[i];
  }
  return nullptr;
}

TEST(CApi, ChecksACallByARowOfTheTable) {
  const std::int64_t ids[] = {0, 5, 4}, size[] = {3}, stride[] = {1}, table[] = {5, 2}, strides[] = {2, 1};
  trapline_arg argument{};
  argument.kind = TRAPLINE_ARG_TENSOR;
  argument.tensor = {ids, size, stride, 1, TRAPLINE_INT64};
  trapline_arg weight{};
  weight.kind = TRAPLINE_ARG_TENSOR;
  weight.tensor = {nullptr, table, strides, 2, TRAPLINE_FLOAT32};
  trapline_scan scan{};
  ASSERT_NE(row("embedding.indices"), nullptr);
  EXPECT_EQ(trapline_check(row("embedding.indices"), &argument, &weight, nullptr, nullptr, &scan),
            TRAPLINE_VIOLATED);
  EXPECT_EQ(scan.first, 1);
  EXPECT_EQ(scan.ivalue, 5);
  EXPECT_EQ(scan.hi, 5);
  EXPECT_EQ(scan.imin, 0);
  EXPECT_EQ(scan.imax, 5);
  const trapline_contract copy = *row("embedding.indices");
  EXPECT_EQ(trapline_check(&copy, &argument, &weight, nullptr, nullptr, &scan), TRAPLINE_VIOLATED);
}

TEST(CApi, MissingPointersAreNotApplicable) {
  trapline_scan scan{};
  EXPECT_EQ(trapline_check(nullptr, nullptr, nullptr, nullptr, nullptr, &scan), TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(trapline_check(row("embedding.indices"), nullptr, nullptr, nullptr, nullptr, &scan),
            TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(trapline_check(row("embedding.indices"), nullptr, nullptr, nullptr, nullptr, nullptr),
            TRAPLINE_NOT_APPLICABLE);
  EXPECT_NE(trapline_contracts(nullptr), nullptr);
  trapline_free(nullptr);
}

TEST(CApi, DiagnosesAViolation) {
  const json answer = diagnose(R"({"kind": "violation", "contract": "nll_loss_forward.target",
      "scan": {"bad": 1, "total": 32, "first": 3, "value": 195, "min": 0, "max": 195, "lo": 0, "hi": 195,
               "also": -100, "list_position": null, "reason": 2, "is_float": false},
      "index": [3], "tensor": {"shape": [32], "dtype": "int64", "device": "cpu"}, "values": [[195, 1]]})");
  const json& finding = answer.at("finding");
  EXPECT_EQ(finding.at("code"), "TL101");
  EXPECT_EQ(finding.at("certainty"), "proven");
  EXPECT_EQ(finding.at("element").at("index"), json::array({3}));
  EXPECT_EQ(finding.at("valid").at("text"), "[0, 195) or -100");
  EXPECT_EQ(finding.at("valid").at("max"), 194);
  EXPECT_EQ(finding.at("summary"),
            "cross_entropy: target[3] is 195, but the input has 195 classes: valid labels are [0, 195)");
}

TEST(CApi, DiagnosesAHostErrorAndLeavesOthersAlone) {
  const auto host_error = [](const char* exception, const char* message) {
    return diagnose(
        json{{"kind", "host_error"}, {"exception", exception}, {"message", message}}.dump().c_str());
  };
  EXPECT_EQ(host_error("KeyError", "'epoch'"), json({{"finding", nullptr}}));
  const json answer =
      host_error("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (32x400 and 256x10)");
  EXPECT_EQ(answer.at("finding").at("cause"), "shape_mismatch");
}

TEST(CApi, HostileFactsGiveAnErrorLine) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  const std::string huge(std::size_t{17} << 20U, ' ');
  const std::string deep_member = R"({"kind": "violation", "args": )" + deep + "}";
  for (const std::string& facts :
       {std::string(), std::string("{"), std::string("null"), std::string("[]"), std::string("7"),
        std::string(R"({"kind": 7})"), std::string(R"({"kind": "violation")"), std::string("\xff\xfe"),
        std::string(R"({"kind": "violation", "contract": 5})"),
        std::string(R"({"kind": "violation", "contract": "no.such"})"),
        std::string(R"({"kind": "violation", "contract": "embedding.indices", "scan": []})"),
        std::string(R"({"kind": "violation", "contract": "embedding.indices", "scan": {"bad": "1e9"}})"),
        deep, deep_member, huge}) {
    const json answer = diagnose(facts.c_str());
    ASSERT_TRUE(answer.contains("error")) << facts.substr(0, 80);
    EXPECT_EQ(answer.at("error").get<std::string>().substr(0, 5), "facts") << facts.substr(0, 80);
  }
  EXPECT_TRUE(diagnose(nullptr).contains("error"));
}

TEST(CApi, RendersAFindingAsText) {
  const char* finding =
      R"({"code": "TL105", "cause": "index_out_of_range", "certainty": "proven", "role": "root",
          "summary": "x[index]: index[0] is 9", "fix": ["check it"]})";
  char* text = trapline_render(finding, -1);
  ASSERT_NE(text, nullptr);
  EXPECT_TRUE(std::string(text).starts_with("error[TL105]: x[index]: index[0] is 9\n"));
  EXPECT_NE(std::string(text).find("help: check it"), std::string::npos);
  trapline_free(text);
  for (const char* wrong : {"", "{", "[]", "null", "{}"})
    EXPECT_EQ(trapline_render(wrong, 2), nullptr) << wrong;
  EXPECT_EQ(trapline_render(nullptr, 2), nullptr);
}

TEST(CApi, NamesDtypes) {
  EXPECT_STREQ(trapline_dtype_name(TRAPLINE_BOOL), "bool");
  EXPECT_STREQ(trapline_dtype_name(TRAPLINE_BFLOAT16), "bfloat16");
  EXPECT_STREQ(trapline_dtype_name(TRAPLINE_FLOAT64), "float64");
  for (const int other : {-1, 10, 255}) EXPECT_STREQ(trapline_dtype_name(other), "other");
}

}  // namespace
