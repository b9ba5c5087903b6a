#include "supervise/requests.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "supervise/samples.hpp"

namespace trapline::supervise {
namespace {

class Requests : public ::testing::Test {
 protected:
  Requests() {
    std::string name = (std::filesystem::temp_directory_path() / "requests-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Requests() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, std::vector<std::string> slots) {
    std::ofstream file(folder_ / name, std::ios::binary);
    for (std::string& slot : slots) {
      slot.resize(256, '\0');
      file << slot;
    }
  }
  std::filesystem::path folder_;
};

TEST_F(Requests, InFlightOldestFirst) {
  write("inflight-20", {"", "ab12 1700000002.500000 second", ""});
  write("inflight-7", {"cd34 1700000001.000000 first one", std::string("\0ab 1 freed", 11)});
  const auto found = requests_in_flight(folder_);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].fingerprint, "cd34");
  EXPECT_EQ(found[0].id, "first one");
  EXPECT_EQ(found[0].pid, 7);
  EXPECT_EQ(found[1].since, 1700000002.5);
}

TEST_F(Requests, WhatMakesNoSenseIsPassedOver) {
  write("inflight-1", {"not-hex 1.0 id", "ab12", "ab12 1.0", " 1.0 id", std::string(256, 'a')});
  write("inflight-x", {"ab12 1.0 id"});
  write("inflight-2x", {"ab12 1.0 id"});
  std::filesystem::create_symlink("/etc/passwd", folder_ / "inflight-3");
  std::filesystem::create_directory(folder_ / "inflight-4");
  std::ofstream(folder_ / "inflight-5") << "ab12 1.0 shorter than a slot";
  EXPECT_TRUE(requests_in_flight(folder_).empty());
  EXPECT_TRUE(requests_in_flight("/nowhere").empty());
}

// Whatever a process that was shot while it wrote has left.
TEST_F(Requests, AnyBytes) {
  std::mt19937 random(1);
  const std::string whole = "{\"dataset_index\": 5, \"code\": \"TL101\", \"op\": \"cross_entropy\"}\n";
  Finding root;
  root.cause = Cause::kLabelOutOfRange;
  root.op = "cross_entropy";
  std::size_t lines = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = "ab12 1700000001.000000 id";
    bytes.resize(random() % 1200, '\0');
    std::string samples = whole + whole.substr(0, random() % whole.size()) + "\n" + whole;
    for (auto i = random() % 6; i > 0; --i) {
      if (!bytes.empty()) bytes[random() % bytes.size()] = static_cast<char>(random() & 0xffU);
      samples[random() % samples.size()] = static_cast<char>(random() & 0xffU);
    }
    std::ofstream(folder_ / "inflight-9", std::ios::binary) << bytes;
    std::ofstream(folder_ / "samples-9.jsonl", std::ios::binary) << samples;
    for (const RequestInFlight& one : requests_in_flight(folder_)) {
      EXPECT_EQ(one.fingerprint.find_first_not_of("0123456789abcdefABCDEF"), std::string::npos);
      EXPECT_EQ(one.id.find('\n'), std::string::npos);
    }
    for (const std::string& line : proposed_samples(folder_, root)) {
      EXPECT_TRUE(nlohmann::json::parse(line)["dataset_index"].is_number());
      ++lines;
    }
  }
  EXPECT_GT(lines, 1000U) << "most rounds leave a whole line";
}

TEST_F(Requests, IdsAreMadePrintable) {
  write("inflight-1", {"ab12 1.0 evil\x1b[31m\nid"});
  ASSERT_EQ(requests_in_flight(folder_).size(), 1U);
  EXPECT_EQ(requests_in_flight(folder_)[0].id, "evil\\x1b[31m\\nid");
}

TEST_F(Requests, RefusedIsOneLineOfJson) {
  ASSERT_TRUE(refuse(folder_, {"ab12", 0, "id \"quoted\"", 1}, "TL103", "input[0] is\n5"));
  ASSERT_TRUE(refuse(folder_, {"cd34", 0, "other", 1}, "", ""));
  EXPECT_EQ(count_refused(folder_), 2U);
  std::ifstream file(folder_ / "refused.jsonl");
  std::string line;
  std::getline(file, line);
  const auto read = nlohmann::json::parse(line);
  EXPECT_EQ(read["fingerprint"], "ab12");
  EXPECT_EQ(read["request"], "id \"quoted\"");
  EXPECT_EQ(read["code"], "TL103");
  EXPECT_EQ(read["summary"], "input[0] is\\n5");
}

TEST_F(Requests, FilesOfTheDeadAreForgotten) {
  write("inflight-1", {"ab12 1.0 a"});
  write("inflight-2", {"cd34 1.0 b"});
  forget_requests_in_flight(folder_, {2});
  const auto left = requests_in_flight(folder_);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].pid, 2);
}

}  // namespace
}  // namespace trapline::supervise
