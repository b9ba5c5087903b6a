#include "report/json.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "jsonio/scalar.hpp"
#include "report/sentences.hpp"

namespace trapline {
namespace {

using nlohmann::json;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

Finding full_finding() {
  Finding finding;
  finding.cause = Cause::kNumClassesMismatch;
  finding.also = {Cause::kLabelOutOfRange};
  finding.certainty = Certainty::kProven;
  finding.role = Role::kConsequence;
  finding.device_assert = true;
  finding.contained = false;
  finding.summary = "a sentence";
  finding.op = "cross_entropy";
  finding.argument = "target";
  finding.element = Element{{3, 1}, Scalar(std::int64_t{195}), 1, 32, Scalar(std::int64_t{0}), Scalar(0.5)};
  finding.valid = Valid{"[0, 195)", Scalar(std::int64_t{0}), Scalar(std::int64_t{194}), {-100, 0.5}};
  finding.tensor = TensorInfo{{32, 2}, "int64", "cuda:0"};
  finding.origin = Frame{"train.py", 41, "step", "  loss = f(x)", true, 10, 14};
  finding.stack = {Frame{"a.py", 1, "main", "go()", false, 0, 0}, *finding.origin};
  finding.surfaced = Frame{"train.py", 44, "", "", std::nullopt, 0, 0};
  finding.layer = Layer{"fc.5", "Linear", "out_features", 195, 196};
  finding.sample = Sample{4711, 12, 3, "abc"};
  finding.process = Process{2, 4242, "gpu7", "cuda:0"};
  finding.progress = Progress{1200, Scalar(2.4), "train", "bert", "Trainer"};
  finding.evidence = {{"contract", 7, "text"}};
  finding.fix = {"first", "second"};
  finding.history = {{"embedding", {"weight float32 [100, 16]"}, "train.py:31"}};
  finding.last_steps = {{7, Scalar(0.5), {}}, {8, Scalar(std::nan("")), Scalar(2.0)}};
  return finding;
}

std::string report_text(const std::string& findings) {
  return R"({"trapline":{"version":"9.9.9","schema":1},"command":"run","verdict":"fault","findings":[)" +
         findings + "]}";
}

const std::string kSmall =
    R"({"code":"TL101","cause":"label_out_of_range","certainty":"proven","role":"root","summary":"s","fix":[]EXTRA})";

std::string small_with(const std::string& extra) {
  std::string text = kSmall;
  return report_text(text.replace(text.find("EXTRA"), 5, extra));
}

std::string why(const std::string& text) {
  const auto report = parse_report(text);
  return report ? "" : report.error().why;
}

TEST(Json, EveryFieldSurvivesARoundTrip) {
  Report report;
  report.command = Command::kSupervise;
  report.verdict = Verdict::kFault;
  report.findings = {full_finding()};
  report.notes = {"a note"};
  const json once = to_json(report);
  const auto back = parse_report(once.dump());
  ASSERT_TRUE(back) << back.error().line();
  EXPECT_EQ(to_json(*back), once);
  // Equality alone would hold if a field were written and read by nobody.
  const json& finding = once["findings"][0];
  EXPECT_EQ(finding["code"], "TL102");
  EXPECT_EQ(finding["cause"], "num_classes_mismatch");
  EXPECT_EQ(finding["also"], json::array({"label_out_of_range"}));
  EXPECT_EQ(finding["role"], "consequence");
  EXPECT_EQ(finding["element"],
            json::parse(R"({"index":[3,1],"value":195,"bad":1,"total":32,"min":0,"max":0.5})"));
  EXPECT_EQ(finding["valid"], json::parse(R"J({"text":"[0, 195)","min":0,"max":194,"also":[-100,0.5]})J"));
  EXPECT_EQ(finding["origin"]["column"], 10);
  EXPECT_EQ(finding["origin"]["end_column"], 14);
  EXPECT_EQ(finding["stack"][0]["user"], false);
  EXPECT_FALSE(finding["stack"][0].contains("column"));
  EXPECT_EQ(finding["layer"]["needed"], 196);
  EXPECT_EQ(finding["sample"]["dataset_index"], 4711);
  EXPECT_EQ(finding["process"]["rank"], 2);
  EXPECT_EQ(finding["progress"],
            json::parse(R"({"step":1200,"epoch":2.4,"phase":"train","model":"bert","trainer":"Trainer"})"));
  EXPECT_EQ(finding["history"][0]["args"][0], "weight float32 [100, 16]");
  EXPECT_EQ(finding["last_steps"],
            json::parse(R"([{"step":7,"loss":0.5},{"step":8,"loss":"nan","gradient_norm":2.0}])"));
  EXPECT_EQ(once["command"], "supervise");
  EXPECT_EQ(once["trapline"]["schema"], 1);
}

TEST(Json, ACodeIsTheHeadlines) {
  Report report;
  report.findings = {full_finding()};
  report.findings.front().certainty = Certainty::kUnknown;
  const json finding = to_json(report)["findings"][0];
  EXPECT_EQ(finding["code"], "TL901");
  EXPECT_EQ(finding["cause"], "num_classes_mismatch") << "the likeliest";
}

TEST(Json, EmptyFindingHasOnlyRequiredFields) {
  const json out = to_json(Finding{});
  EXPECT_EQ(out.size(), 6U) << out;
  for (const char* key : {"code", "cause", "certainty", "role", "summary", "fix"})
    EXPECT_TRUE(out.contains(key));
}

TEST(Json, ValuesThatNumbersCannotHoldAreStrings) {
  EXPECT_EQ(jsonio::to_json(Scalar(std::int64_t{1} << 53U)), json(std::int64_t{1} << 53U));
  EXPECT_EQ(jsonio::to_json(Scalar((std::int64_t{1} << 53U) + 1)), json("9007199254740993"));
  EXPECT_EQ(jsonio::to_json(Scalar(kMax)), json("9223372036854775807"));
  EXPECT_EQ(jsonio::to_json(Scalar(std::numeric_limits<std::int64_t>::min())), json("-9223372036854775808"));
  EXPECT_EQ(jsonio::to_json(Scalar(std::nan(""))), json("nan"));
  EXPECT_EQ(jsonio::to_json(Scalar(-kInf)), json("-inf"));
  EXPECT_EQ(jsonio::to_json(Scalar(0.25)), json(0.25));
}

TEST(Json, ReadsThoseStringsBack) {
  const auto report =
      parse_report(small_with(R"(,"element":{"value":"9223372036854775807","min":"-inf","max":"nan"})"));
  ASSERT_TRUE(report) << report.error().line();
  const Element& element = *report->findings[0].element;
  EXPECT_EQ(std::get<std::int64_t>(*element.value), kMax);
  EXPECT_EQ(std::get<double>(*element.min), -kInf);
  EXPECT_TRUE(std::isnan(std::get<double>(*element.max)));
}

TEST(Json, ReplacesWhatIsNotUtf8) {
  Finding finding;
  finding.summary = "caf\xe9 \xff";
  EXPECT_EQ(to_json(finding)["summary"], "caf\xef\xbf\xbd \xef\xbf\xbd");
  EXPECT_NO_THROW(to_json(finding).dump());
  std::string text = small_with("");
  text.replace(text.find("\"s\""), 3, "\"\xff\"");
  const auto report = parse_report(text);
  ASSERT_TRUE(report) << report.error().line();
  EXPECT_EQ(report->findings[0].summary, "\xef\xbf\xbd");
}

TEST(Json, EveryTruncationIsAnErrorAndNeverACrash) {
  const std::string whole = to_json([] {
                              Report report;
                              report.findings = {full_finding()};
                              return report;
                            }())
                                .dump();
  ASSERT_TRUE(parse_report(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(parse_report(std::string_view(whole).substr(0, size))) << size;
  }
}

TEST(Json, NamesWhatIsWrong) {
  EXPECT_EQ(why(small_with("")), "");
  EXPECT_EQ(why(small_with(R"(,"element":{"bad":"many"})")), "bad is not an integer");
  EXPECT_EQ(why(small_with(R"(,"element":{"bad":18446744073709551615})")), "bad is not an integer");
  EXPECT_EQ(why(small_with(R"(,"element":[])")), "element is not an object");
  EXPECT_EQ(why(small_with(R"(,"element":{"value":"seven"})")), "value is neither a number nor its text");
  EXPECT_EQ(why(small_with(R"(,"origin":{"file":"a.py"})")), "line is missing");
  EXPECT_EQ(why(small_with(R"(,"stack":[1])")), "stack holds something that is not an object");
  EXPECT_EQ(why(small_with(R"(,"contained":1)")), "contained is not true or false");
  EXPECT_EQ(why(report_text(R"({"cause":"label_out_of_range","certainty":"proven","role":"root","fix":[]})")),
            "summary is missing");
  EXPECT_EQ(
      why(report_text(R"({"cause":"new_cause","certainty":"proven","role":"root","summary":"","fix":[]})")),
      "cause is one that this version does not know");
  EXPECT_EQ(why("[]"), "it is not a JSON object");
  EXPECT_EQ(why("{}"), "it was not written by Trapline");
  EXPECT_EQ(why(""), "it is truncated or not JSON");
}

TEST(Json, RefusesANewerSchemaWithBothVersions) {
  const std::string text =
      R"({"trapline":{"version":"9.9.9","schema":2},"command":"run","verdict":"clean","findings":[]})";
  EXPECT_NE(why(text).find("9.9.9 wrote it with schema 2"), std::string::npos) << why(text);
  EXPECT_NE(why(text).find("schema 1"), std::string::npos);
}

TEST(Json, IgnoresFieldsOfNewerVersions) { EXPECT_TRUE(parse_report(small_with(R"(,"colour":[{"a":1}])"))); }

TEST(Json, StaysWithinItsLimits) {
  ReadLimits limits;
  limits.bytes = 1000;
  EXPECT_EQ(parse_report(std::string(1001, ' '), limits).error().why, "it is larger than 1000 bytes");
  EXPECT_EQ(why(std::string(100000, '[')), "it is nested too deeply");
  EXPECT_EQ(why(small_with(",\"x\":" + std::string(5000, '[') + std::string(5000, ']'))),
            "it is nested too deeply");
  // Brackets inside strings are text.
  EXPECT_EQ(why(small_with(R"(,"op":"\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[")")), "");
  limits = {};
  limits.items = 2;
  limits.text = 64;
  const auto report = parse_report(
      small_with(R"(,"op":")" + std::string(63, 'a') +
                 R"(\u00e9","stack":[{"file":"","line":1},{"file":"","line":2},{"file":"","line":3}])"),
      limits);
  ASSERT_TRUE(report) << report.error().line();
  EXPECT_EQ(report->findings[0].stack.size(), 2U);
  EXPECT_EQ(report->findings[0].op, std::string(63, 'a')) << "cut between characters";
}

TEST(Json, ANotebooksCellAndTheCallersVariableAreReadWrittenAndSaid) {
  const auto report = parse_report(small_with(
      R"(,"argument":"index","element":{"index":[2],"value":400,"variable":{"name":"edge_index","index":[1,3]}},)"
      R"("origin":{"file":"/tmp/ipykernel_1/18.py","line":3,"function":"<module>","cell":4})"));
  ASSERT_TRUE(report) << report.error().line();
  const Finding& finding = report->findings[0];
  EXPECT_EQ(place_text(*finding.origin), "Cell In[4], line 3");
  EXPECT_EQ(found_text(finding), "index[2] is 400; it is edge_index[1, 3]");
  const json again = to_json(*report)["findings"][0];
  EXPECT_EQ(again["origin"]["cell"], 4);
  EXPECT_EQ(again["element"]["variable"], json({{"name", "edge_index"}, {"index", {1, 3}}}));
}

}  // namespace
}  // namespace trapline
