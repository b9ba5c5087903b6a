#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "log/read/window.hpp"

namespace trapline {
namespace {

struct Random {
  explicit Random(std::uint32_t seed) : engine(seed) {}
  std::uint32_t operator()() { return static_cast<std::uint32_t>(engine()); }
  std::mt19937 engine;
};

struct Raw {
  std::string text;
  std::int64_t number;
  bool shortened;
  bool operator==(const Raw&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Raw& raw) {
    return out << raw.number << (raw.shortened ? "~" : ":") << raw.text.substr(0, 80);
  }
};

struct RawKept : RawLineSink {
  void raw_line(std::string_view raw, std::int64_t number, bool shortened) override {
    lines.push_back({std::string(raw), number, shortened});
  }
  std::vector<Raw> lines;
};

// `piece`: how many bytes arrive at a time; 0: random sizes.
std::vector<Raw> read(std::string_view text, std::size_t piece, bool prefilter = true, bool unasked = false) {
  RawKept kept;
  Window window(kept, prefilter);
  Random random(7);
  for (std::size_t at = 0; at < text.size();) {
    std::size_t size = 0;
    char* room = window.room(size);
    size = std::min({size, text.size() - at, piece != 0 ? piece : 1 + random() % 70'000});
    std::memcpy(room, text.data() + at, size);
    window.filled(size);
    at += size;
  }
  window.finish(unasked);
  EXPECT_EQ(window.bytes(), text.size());
  EXPECT_EQ(window.lines(),
            std::count(text.begin(), text.end(), '\n') + (text.empty() || text.back() == '\n' ? 0 : 1));
  return kept.lines;
}

std::string filler(std::size_t lines, std::uint32_t seed = 1) {
  Random random(seed);
  std::string text;
  for (std::size_t k = 0; k < lines; ++k) {
    text += "step " + std::to_string(k) + " loss 0." + std::to_string(random() % 10'000) + "\n";
  }
  return text;
}

TEST(ReaderWindow, ALogWithoutAHitDeliversNothing) {
  EXPECT_TRUE(read(filler(100'000), 0).empty());
  EXPECT_TRUE(read("", 0).empty());
}

TEST(ReaderWindow, AShortOneIsDeliveredOnRequest) {
  EXPECT_EQ(read("one\ntwo", 0, true, true), (std::vector<Raw>{{"one", 1, false}, {"two", 2, false}}));
}

TEST(ReaderWindow, AHitBringsItsNumberItsSurroundingsAndTheHead) {
  const std::string before = filler(100'000);
  const std::string after = filler(100'000, 2);
  const std::vector<Raw> lines = read("torch 2.1\n" + before + "RuntimeError: x\n" + after, 0);
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0], (Raw{"torch 2.1", 1, false}));
  const auto hit =
      std::find_if(lines.begin(), lines.end(), [](const Raw& raw) { return raw.text == "RuntimeError: x"; });
  ASSERT_NE(hit, lines.end());
  EXPECT_EQ(hit->number, 100'002);
  EXPECT_EQ((hit - 1)->number, 100'001);
  EXPECT_EQ((hit + 1)->number, 100'003);
  std::size_t around = 0;
  std::size_t head = 0;
  for (const Raw& raw : lines) {
    if (raw.number > 100'002) around += raw.text.size() + 1;
    if (raw.number < 10'000) head += raw.text.size() + 1;
  }
  EXPECT_NEAR(static_cast<double>(around), Window::kAround, 100);
  EXPECT_NEAR(static_cast<double>(head), Window::kHead, 100);
  EXPECT_TRUE(std::is_sorted(lines.begin(), lines.end(),
                             [](const Raw& a, const Raw& b) { return a.number < b.number; }));
}

// What is delivered may not hang on how the bytes arrive: a pipe brings the same finding as the file.
TEST(ReaderWindow, PiecesDoNotMatter) {
  Random random(11);
  std::string text;
  for (int k = 0; k < 60; ++k) {
    text += filler(random() % 3000, random());
    const std::uint32_t kind = random() % 6;
    if (kind == 0) text += "RuntimeError: x\n";
    if (kind == 1)
      text +=
          std::string(random() % 900'000, 'y') + " Assertion " + std::string(random() % 200'000, 'z') + "\n";
    if (kind == 2) text += "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\n";
    if (kind == 3) {
      for (int n = 0; n < 3000; ++n)
        text += "x.cu:1: block: [0,0,0], thread: [1,0,0] Assertion `a` failed.\n";
    }
    if (kind == 4) text += "loss: nan\n";
    if (kind == 5) text += "\n\r\n\n";
  }
  text += "the last line";
  const std::vector<Raw> whole = read(text, Window::kBlock);
  for (const std::size_t piece : {std::size_t{0}, std::size_t{997}, std::size_t{65'536}}) {
    const std::vector<Raw> pieces = read(text, piece);
    std::vector<Raw> short_whole;
    std::vector<Raw> short_pieces;  // a line that is too long is cut where the bytes end
    for (const Raw& raw : whole) {
      if (!raw.shortened) short_whole.push_back(raw);
    }
    for (const Raw& raw : pieces) {
      if (!raw.shortened) short_pieces.push_back(raw);
    }
    EXPECT_EQ(short_pieces, short_whole) << piece;
  }
}

// The prefilter may leave lines out, but none that holds a literal, and it may not change the others.
TEST(ReaderWindow, ThePrefilterDeliversEveryLineThatMatters) {
  Random random(13);
  std::string text;
  for (int k = 0; k < 400; ++k) {
    text += filler(random() % 2000, random());
    for (std::uint32_t n = random() % 40; n > 0; --n) {
      text += random() % 2 == 0 ? "x.cu:1: Assertion `a` failed " : "  File \"a.py\", line ";
      text += std::to_string(random()) + "\n";
    }
  }
  const auto matter = [](const std::vector<Raw>& lines) {
    std::vector<Raw> some;
    for (const Raw& raw : lines) {
      if (raw.text.find("Assertion") != raw.text.npos || raw.text.find("File \"") != raw.text.npos)
        some.push_back(raw);
    }
    return some;
  };
  const std::vector<Raw> on = read(text, 0);
  const std::vector<Raw> off = read(text, 0, false);
  EXPECT_GT(matter(off).size(), 5000U);
  EXPECT_EQ(matter(on), matter(off));
  EXPECT_LT(on.size() * 2, off.size());
  EXPECT_EQ(off.size(), static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')));
}

TEST(ReaderWindow, AFloodKeepsItsLinesAndTheTracebackBehindIt) {
  std::string text;
  for (int k = 0; k < 300'000; ++k) {
    text +=
        k % 10 == 0 ? "x.cu:1: block: [0,0,0], thread: [1,0,0] Assertion `a` failed.\n" : "step 1 loss 0.5\n";
  }
  text +=
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g(x)\nlast "
      "words\nRuntimeError: x\n";
  const std::vector<Raw> lines = read(text, 0);
  EXPECT_EQ(
      std::count_if(lines.begin(), lines.end(), [](const Raw& raw) { return raw.text.starts_with("x.cu"); }),
      30'000);
  EXPECT_LT(lines.size(), 150'000U);
  ASSERT_GT(lines.size(), 5U);
  EXPECT_EQ((lines.end() - 3)->text, "    g(x)");
  EXPECT_EQ((lines.end() - 2)->text, "last words");
  EXPECT_EQ(lines.back(), (Raw{"RuntimeError: x", 300'005, false}));
}

// Even when errors have eaten the budget, a frame keeps its source line.
TEST(ReaderWindow, AFloodOfErrorsKeepsTheLineBehindEachFrame) {
  std::string text;
  for (int k = 0; k < 60'000; ++k)
    text += "error\n" + std::string(80, 'y') + "\n" + std::string(80, 'z') + "\n";
  text += "  File \"a.py\", line 1, in f\n    g(x)\n" + std::string(80, 'w') + "\n";
  const std::vector<Raw> lines = read(text, 0);
  ASSERT_GT(lines.size(), 2U);
  EXPECT_LT(lines.size(), 175'000U);
  const auto frame =
      std::find_if(lines.begin(), lines.end(), [](const Raw& raw) { return raw.text.starts_with("  File"); });
  ASSERT_NE(frame, lines.end());
  ASSERT_NE(frame + 1, lines.end());
  EXPECT_EQ((frame + 1)->text, "    g(x)");
}

TEST(ReaderWindow, AnEndlessLineIsTakenInPiecesAndSaysSo) {
  const std::string text =
      "head " + std::string(3 << 20, 'x') + " RuntimeError: y " + std::string(3 << 20, 'x') + "\nKilled\n";
  const std::vector<Raw> lines = read(text, 0);
  ASSERT_FALSE(lines.empty());
  bool found = false;
  for (const Raw& raw : lines) {
    EXPECT_LE(raw.text.size(), Window::kLongLine);
    EXPECT_EQ(raw.shortened, raw.number == 1);
    found = found || raw.text.find("RuntimeError: y") != raw.text.npos;
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(lines.back(), (Raw{"Killed", 2, false}));
}

TEST(ReaderWindow, TheLastLinesAreDeliveredWithAnyHit) {
  std::string text = "step 1 loss nan\n";
  for (int step = 2; step <= 5000; ++step) text += "step " + std::to_string(step) + " loss 0.5\n";
  const std::vector<Raw> lines = read(text, 0);
  ASSERT_GE(lines.size(), 4U);
  EXPECT_EQ(lines[lines.size() - 3], (Raw{"step 4998 loss 0.5", 4998, false}));
  EXPECT_EQ(lines.back(), (Raw{"step 5000 loss 0.5", 5000, false}));
  EXPECT_LT(lines.size(), 1000U);
}

TEST(ReaderWindow, GlogsLastLineIsDeliveredByItsFirstLetter) {
  const std::string last = "F0101 12:00:00.000000 123 file.cc:12] the table is empty";
  const std::vector<Raw> lines = read(filler(20'000) + last + "\n", 0);
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back(), (Raw{last, 20'001, false}));
  EXPECT_TRUE(read(filler(20'000) + "I0101 12:00:00.000000 123 file.cc:12] read\n", 0).empty());
}

}  // namespace
}  // namespace trapline
