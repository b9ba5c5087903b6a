// Lines of JSON that are read in stretches on several threads, beside the same lines one after the other.
#include "inputs/json_lines.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <utility>

#include "column_log.hpp"

namespace trapline::inputs {
namespace {

using namespace std::string_literals;

struct Told {
  std::string outcome;
  ColumnLog log;
};

Told read(const std::string& text, std::size_t stretch, int most_texts = 1 << 30, int most_pieces = 1 << 30) {
  const Source source{"t.jsonl", {reinterpret_cast<const std::byte*>(text.data()), text.size()}};
  Told told;
  told.log.threads = true;
  told.log.most_texts = most_texts;
  told.log.most_pieces = most_pieces;
  told.outcome = outcome(read_json_lines(source, told.log, stretch));
  return told;
}

constexpr std::size_t kAlone = std::numeric_limits<std::size_t>::max();

// What both readings of the text said.
Told expect_same(const std::string& text, std::size_t stretch, int most_texts = 1 << 30,
                 int most_pieces = 1 << 30) {
  Told alone = read(text, kAlone, most_texts, most_pieces);
  const Told together = read(text, stretch, most_texts, most_pieces);
  EXPECT_EQ(alone.log.loops, 0);
  EXPECT_EQ(alone.outcome, together.outcome);
  EXPECT_EQ(alone.log.order, together.log.order);
  EXPECT_EQ(alone.log.told, together.log.told);
  EXPECT_EQ(alone.log.odd, together.log.odd);
  if (::testing::Test::HasFailure()) ADD_FAILURE() << text;
  alone.log.loops = together.log.loops;
  return alone;
}

std::string repeated(const std::string& line, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += line;
  return text;
}

TEST(JsonLines, StretchesSayWhatLinesSay) {
  const std::string usual = "{\"a\": 1, \"b\": [1, 2], \"text\": \"cat\", \"o\": {\"x\": 1.5, \"y~\": 3}}\n";
  const Told told = expect_same(repeated(usual, 100), 256);
  EXPECT_GT(told.log.loops, 1);
  EXPECT_EQ(told.outcome, "whole");
  EXPECT_NE(told.log.told.at("a").find("\none 99 100 int64 1"), std::string::npos);
  EXPECT_NE(told.log.told.at("b").find("\nsome 99 100 int64 2"), std::string::npos);
}

TEST(JsonLines, OneLineThatIsOther) {
  const std::string usual = "{\"a\": 1, \"b\": [1, 2], \"text\": \"cat\", \"o\": {\"x\": 1.5, \"y~\": 3}}\n";
  for (const std::string& other : {"{\"a\": null, \"b\": [], \"text\": null, \"o\": {}}"s,
                                   "{}"s,
                                   "{\"late\": 7}"s,
                                   "{\"a\": [1], \"b\": 3, \"text\": 5, \"o\": 4}"s,
                                   "{\"a\": \"dog\", \"b\": [\"x\"], \"text\": \"\\u00e9\"}"s,
                                   "{\"a\": {\"deep\": 1}, \"b\": [[3]]}"s,
                                   "{\"a\": 1, \"a\": 2}"s,
                                   "{\"a\": 18446744073709551615}"s,
                                   "{\"a\": NaN, \"o\": {\"x\": -Infinity}}"s,
                                   "{\"a\": 1e999}"s,
                                   "{\"a\": -0, \"o\": {\"x\": -0.0}}"s,
                                   "{\"a\": 01}"s,
                                   "{\"a\": 1.}"s,
                                   "{\"a\": 1 2}"s,
                                   "{\"a\": tru}"s,
                                   "{\"a\": true, \"b\": [false]}"s,
                                   "{\"a\": 1},"s,
                                   "{\"a\": 1"s,
                                   "[1, 2]"s,
                                   "7"s,
                                   "\"word\""s,
                                   "null"s,
                                   "\t \r"s,
                                   ""s,
                                   "{\"a\": 1}\r"s,
                                   "{ \"a\" :\t1 , \"b\" : [ 1 ,2 ] }"s,
                                   "{\"text\": \"\xff\"}"s,
                                   "{\"text\": \"\xc3\xa9\"}"s,
                                   "{\"text\": \"a\tb\"}"s,
                                   "{\"t\\u0065xt\": \"x\"}"s,
                                   "{\"o\": {\"y~\": \"\\q\"}}"s,
                                   "{\"o\": {\"y~\": 1.2.3}}"s,
                                   "{\"o\": {\"y~\": tru}}"s,
                                   "{\"a\": 1,}"s,
                                   "{\"b\": [1,]}"s,
                                   "\0"s,
                                   "{\"a\": 123456789012345678901234567890}"s,
                                   "{\"a\": 999999999999999999}"s,
                                   "{\"a\": 2.5}"s}) {
    for (const int before : {3, 12, 40}) {
      expect_same(repeated(usual, before) + other + "\n" + repeated(usual, 40), 200);
      expect_same(repeated(usual, before) + repeated(other + "\n", 90) + repeated(usual, 40), 200);
      expect_same(repeated(usual, before) + other, 200);
    }
    ASSERT_FALSE(HasFailure()) << other;
  }
}

// The other record has all keys, so that nothing but the one value tells it from the usual ones.
TEST(JsonLines, OneValueThatIsOther) {
  const auto record = [](const std::string& key, const std::string& value) {
    std::string line = "{";
    for (const auto& [name, usual] : {std::pair{"a"s, "1"s},
                                      {"b"s, "[1, 2]"s},
                                      {"text"s, "\"cat\""s},
                                      {"u"s, "\"dog\""s},
                                      {"n"s, "null"s},
                                      {"y~"s, "3"s},
                                      {"\xc3\xa9"s, "1.5"s}}) {
      line += (line.size() > 1 ? ", \"" : "\"") + name + "\": " + (name == key ? value : usual);
    }
    return line + "}\n";
  };
  const std::string usual = record("", "");
  for (const std::string& value : {"null"s,
                                   "true"s,
                                   "fals"s,
                                   "\"x\""s,
                                   "\"\xff\""s,
                                   "\"\xc3\xa9\""s,
                                   "\"a\tb\""s,
                                   "\"a\\\"b\""s,
                                   "\"\\q\""s,
                                   "\"a very long text, of more than eight bytes\""s,
                                   "\"a very long text \x01, of more than that\""s,
                                   "\"a very long text with an escape \\u00e9\""s,
                                   "\"open"s,
                                   "[]"s,
                                   "[3]"s,
                                   "[\"x\"]"s,
                                   "[\"x\", 4]"s,
                                   "[[]]"s,
                                   "[1, ]"s,
                                   "[1 2]"s,
                                   "{}"s,
                                   "{\"k\": 1}"s,
                                   "{\"k\": 1"s,
                                   "-7"s,
                                   "-0"s,
                                   "-0.0"s,
                                   "0.1"s,
                                   "1e2"s,
                                   "1E+2"s,
                                   "1e"s,
                                   "1."s,
                                   ".5"s,
                                   "+1"s,
                                   "01"s,
                                   "1e999"s,
                                   "1e-999"s,
                                   "999999999999999999"s,
                                   "-999999999999999999"s,
                                   "1000000000000000000"s,
                                   "9223372036854775808"s,
                                   "NaN"s,
                                   "-Infinity"s,
                                   "1, \"a\": 2"s,
                                   "1, \"a\": 2, \"z\": 1"s,
                                   "1x"s,
                                   "1 "s,
                                   "1\f"s,
                                   "\xff"s}) {
    for (const std::string key : {"a", "b", "text", "u", "n", "y~", "\xc3\xa9"}) {
      const std::string other = record(key, value);
      expect_same(repeated(usual, 90) + other + repeated(usual, 40) + other + other + repeated(usual, 9),
                  500);
      ASSERT_FALSE(HasFailure()) << other;
    }
  }
}

TEST(JsonLines, ListsOfTextsThatHoldNumbersLater) {
  const std::string before = repeated("{\"text\": \"a\", \"b\": 1}\n", 90);
  expect_same(before + repeated("{\"text\": [\"a\"], \"b\": 1}\n", 9) + "{\"text\": 7, \"b\": 1}\n", 500);
}

TEST(JsonLines, TheLineOfWhatIsBroken) {
  const std::string text = repeated("{\"a\": 1}\r\n\r\n", 500) + "{\"a\": \n" + repeated("{\"a\": 1}\n", 99);
  const Told told = expect_same(text, 128);
  EXPECT_NE(told.outcome.find("line 1001: no valid JSON"), std::string::npos) << told.outcome;
  EXPECT_NE(told.log.told.at("a").find("\none 499 999 int64 1"), std::string::npos);
}

TEST(JsonLines, KeysThatManyRecordsLackAreOptionalAndOthersMissing) {
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    text += "{\"id\": " + std::to_string(i) + (i % 10 != 3 ? ", \"often\": 1" : "") +
            (i % 10 == 3 ? ", \"rarely\": 2" : "") + "}\n";
  }
  const Told told = expect_same(text, 512);
  EXPECT_EQ(told.log.odd.count("rarely"), 0U);
  EXPECT_EQ(std::count(told.log.odd.at("often").begin(), told.log.odd.at("often").end(), '\n'), 300);
}

TEST(JsonLines, ARecordLongerThanAStretch) {
  const std::string row = "{\"ids\": [" + repeated("7, ", 5000) + "8]}\n";
  const Told told =
      expect_same(repeated("{\"ids\": [1]}\n", 20) + row + repeated("{\"ids\": [1]}\n", 20), 64);
  EXPECT_NE(told.log.told.at("ids").find("\nsome 20 21 int64 8"), std::string::npos);
}

TEST(JsonLines, NobodyWantsMore) {
  const std::string usual = "{\"a\": 1, \"text\": \"cat\"}\n";
  for (const int pieces : {1, 2, 3}) expect_same(repeated(usual, 60000), 4096, 10000, pieces);
}

// Records of a few kinds of values, mangled here and there.
TEST(JsonLines, WhateverStandsThere) {
  std::mt19937 random(7);
  const auto pick = [&](std::size_t most) { return random() % most; };
  const std::vector<std::string> keys{"a", "b~", "text", "t2", "o", "\xc3\xa9", "list"};
  const std::vector<std::string> values{"1",
                                        "-7",
                                        "2.5",
                                        "1e3",
                                        "null",
                                        "true",
                                        "\"cat\"",
                                        "\"\\n\"",
                                        "[1, 2]",
                                        "[]",
                                        "[{\"k\": 1}, {}]",
                                        "{\"x\": 1}",
                                        "{}",
                                        "\"\xc3\xa9\"",
                                        "[[3], 4]",
                                        "NaN",
                                        "99999999999999999999",
                                        "[\"x\", null]"};
  for (int round = 0; round < 400; ++round) {
    std::string text;
    std::vector<std::size_t> kinds;
    for (std::size_t i = 0; i < keys.size(); ++i) kinds.push_back(pick(values.size()));
    const std::size_t rare = 1 + pick(200);
    for (int row = 0; row < 150; ++row) {
      std::string line = "{";
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (pick(rare) == 0) continue;
        const std::size_t kind = pick(rare) == 0 ? pick(values.size()) : kinds[i];
        line += (line.size() > 1 ? ", \"" : "\"") + keys[i] + "\": " + values[kind];
      }
      line += "}";
      if (round % 4 == 3 && pick(150) == 0) line[pick(line.size())] = static_cast<char>(random());
      text += line + (pick(20) == 0 ? "\r\n" : "\n");
    }
    expect_same(text, 1 + pick(2000));
    ASSERT_FALSE(HasFailure()) << round;
  }
}

}  // namespace
}  // namespace trapline::inputs
