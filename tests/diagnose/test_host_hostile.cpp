// Hostile messages and malformed facts: always an answer, in bounded time, never a crash.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "diagnose/host/errors.hpp"
#include "reading.hpp"

namespace trapline::diagnose {
namespace {

using nlohmann::json;

TEST(HostileMessages, HugeOnesAreCutNotSearched) {
  const std::string filler(8U << 20U, '(');
  EXPECT_EQ(find_host_error("RuntimeError", filler), nullptr);
  const std::string digits = "Target size (torch.Size([" + std::string(1U << 20U, '9') + "]))";
  EXPECT_EQ(find_host_error("ValueError", digits), nullptr);
}

TEST(HostileMessages, NulsAndInvalidUtf8) {
  const std::string nul("mat1 and mat2 \0 shapes cannot be multiplied (32x400 and 256x10)", 62);
  EXPECT_EQ(find_host_error("RuntimeError", nul), nullptr);
  std::string tail = "mat1 and mat2 shapes cannot be multiplied (32x400 and 256x10)";
  tail.push_back('\0');
  tail += "\xff\xfe";
  ASSERT_NE(find_host_error("RuntimeError", tail), nullptr);
  EXPECT_TRUE(diagnose_host_error({{"exception", "RuntimeError"}, {"message", tail}}));
}

TEST(HostileMessages, NumbersBeyondTheirRange) {
  const auto finding = diagnose_host_error(
      {{"exception", "RuntimeError"},
       {"message",
        "mat1 and mat2 shapes cannot be multiplied (99999999999999999999x9223372036854775807 and 0x0)"}});
  ASSERT_TRUE(finding);
  EXPECT_FALSE(finding->summary.empty());
  EXPECT_TRUE(diagnose_host_error(
      {{"exception", "IndexError"},
       {"message", "index 9223372036854775807 is out of bounds for dimension 99 with size 0"}}));
  EXPECT_TRUE(
      diagnose_host_error({{"exception", "RuntimeError"},
                           {"message", "shape '[-9223372036854775808, 0]' is invalid for input of size 0"}}));
}

TEST(HostileFacts, MalformedMembersAreIgnored) {
  EXPECT_FALSE(diagnose_host_error(json(nullptr)));
  EXPECT_FALSE(diagnose_host_error(json::array()));
  EXPECT_FALSE(diagnose_host_error({{"exception", 3}, {"message", json::array()}}));
  for (const HostErrorRow* row : host_error_rows()) {
    if (row->when != nullptr) continue;  // it asks for members that are none here
    const auto finding = diagnose_host_error(
        {{"exception", row->exceptions.substr(0, row->exceptions.find('|'))},
         {"message", row->samples.front()},
         {"operands", {1, nullptr, json::object(), {{"shape", {0, "x", -1}}, {"name", 7}}}},
         {"module", {{"name", 1}, {"attributes", "none"}}},
         {"stack", {{{"line", "x"}}, 5}},
         {"origin", {{"line", -5}}},
         {"process", {{"rank", "a"}}},
         {"call", json::object()}});
    EXPECT_TRUE(finding) << row->id;
  }
}

// Every sample, cut and mutated: any answer will do, but there must be one.
TEST(HostileMessages, MutatedSamples) {
  std::mt19937 random(7);
  std::size_t known = 0;
  for (const HostErrorRow* row : host_error_rows()) {
    for (const std::string_view sample : row->samples) {
      for (int round = 0; round < 12; ++round) {
        std::string text(sample);
        for (int edits = round % 4; edits >= 0 && !text.empty(); --edits) {
          text[random() % text.size()] = static_cast<char>(random());
        }
        if (round % 3 == 0) text.resize(random() % (text.size() + 1));
        const auto exception = row->exceptions.substr(0, row->exceptions.find('|'));
        known += diagnose_host_error({{"exception", exception}, {"message", text}}).has_value() ? 1 : 0;
      }
    }
  }
  EXPECT_GT(known, 0U);
}

}  // namespace
}  // namespace trapline::diagnose
