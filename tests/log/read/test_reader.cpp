#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "log/read/encoding.hpp"
#include "log/read/order.hpp"
#include "reader_kept.hpp"

namespace trapline {
namespace {

using Texts = std::vector<std::string>;

std::string utf16(std::u16string_view text, bool big, bool mark) {
  std::string bytes;
  if (mark) bytes = big ? "\xfe\xff" : "\xff\xfe";
  for (const char16_t unit : text) {
    const char low = static_cast<char>(unit & 0xff);
    const char high = static_cast<char>(unit >> 8);
    bytes += big ? high : low;
    bytes += big ? low : high;
  }
  return bytes;
}

TEST(ReaderFiles, Utf16IsReadInEitherOrderWithAndWithoutItsMark) {
  for (const bool big : {false, true}) {
    for (const bool mark : {false, true}) {
      const Kept kept = read_text(utf16(u"Traceback:\r\nRuntimeError: caf\u00e9 \U0001F525\r\n", big, mark));
      EXPECT_EQ(kept.texts(), (Texts{"Traceback:", "RuntimeError: caf\u00e9 \U0001F525"})) << big << mark;
      EXPECT_EQ(kept.lines[1].number, 2);
    }
  }
  const Kept broken = read_text(utf16(u"error \xd83d x", false, true) + "y");
  EXPECT_EQ(broken.texts(), (Texts{"error \uFFFD x\uFFFD"}));
}

// Hardly a zero byte in it: the line ends and the Latin words tell.
TEST(ReaderFiles, Utf16OfOtherScriptsIsReadWithoutItsMark) {
  for (const bool big : {false, true}) {
    const Kept kept = read_text(
        utf16(u"\u6b63\u5728\u52a0\u8f7d\u6a21\u578b\r\n\u8bf7\u7a0d\u5019\u8bf7\u7a0d\u5019\r\nerror 1\r\n",
              big, false));
    ASSERT_EQ(kept.lines.size(), 3U);
    EXPECT_EQ(kept.lines[0].text, "\u6b63\u5728\u52a0\u8f7d\u6a21\u578b");
    EXPECT_EQ(kept.lines[2].text, "error 1");
  }
}

// "> log" of PowerShell, then ">> log" of cmd, then PowerShell again.
TEST(ReaderFiles, BytesBehindUtf16AreText) {
  for (const std::string_view bytes :
       {"RuntimeError: CUDA error: an odd length\n", "RuntimeError: CUDA error: an even length\n"}) {
    const Kept kept = read_text(utf16(u"first error\n", false, true) + std::string(bytes) +
                                utf16(u"last error\n", false, false));
    EXPECT_EQ(kept.texts(),
              (std::vector<std::string>{"first error", std::string(bytes.substr(0, bytes.size() - 1)),
                                        "last error"}));
  }
}

TEST(ReaderFiles, AMarkOfUtf8IsNoText) {
  EXPECT_EQ(read_text("\xef\xbb\xbf"
                      "error\n")
                .texts(),
            (Texts{"error"}));
}

// What holds none of ASCII's blanks is in no encoding that is read: EBCDIC, with either of its line ends.
TEST(ReaderFiles, TextInAnEncodingThatIsNotReadIsNoLog) {
  for (const char feed : {'\x25', '\x15', '\x0a'}) {
    std::string ebcdic;
    for (int i = 0; i < 40; ++i) {  // "Assertion index out of bounds failed"
      ebcdic +=
          "\xc1\xa2\xa2\x85\x99\xa3\x89\x96\x95\x40\x89\x95\x84\x85\xa7\x40\x96\xa4\xa3\x40\x96\x86\x40"
          "\x82\x96\xa4\x95\x84\xa2\x40\x86\x81\x89\x93\x85\x84";
      ebcdic += feed;
    }
    const Kept kept = read_text(ebcdic);
    ASSERT_EQ(kept.ends.size(), 1U);
    EXPECT_TRUE(kept.ends[0].binary) << static_cast<int>(feed);
  }
  std::string letters;
  for (int i = 0; i < 4000; ++i) letters += static_cast<char>(0xa1 + i * 7919 % 90);
  EXPECT_TRUE(read_text(letters).ends.at(0).binary);
}

// The other encodings hold ASCII, and a fault's words with it.
TEST(ReaderFiles, EightBitTextOfAnyLanguageIsRead) {
  const std::string cp1251 = "\xce\xf8\xe8\xe1\xea\xe0 \xef\xf0\xe8 \xe7\xe0\xe3\xf0\xf3\xe7\xea\xe5\n";
  const std::string gbk = "\xd1\xb5\xc1\xb7\xcd\xea\xb3\xc9\xa3\xac\xbf\xaa\xca\xbc\xb1\xa3\xb4\xe6\n";
  const std::string shift_jis = "\x8a\x77\x8f\x4b\x81\x40\x8a\xae\x97\xb9\x81\x40\x95\xdb\x91\xb6\x81\x40\n";
  for (const std::string& line : {cp1251, gbk, shift_jis}) {
    std::string log;
    for (int i = 0; i < 300; ++i) log += line;
    const Kept kept = read_text(log + "RuntimeError: x\n");
    ASSERT_FALSE(kept.lines.empty()) << line;
    EXPECT_EQ(kept.lines.back().text, "RuntimeError: x") << line;
  }
}

TEST(ReaderFiles, ZerosOfACutLogAreNoBinary) {
  const Kept kept = read_text(std::string(100'000, '\0') + "\nRuntimeError: x\n");
  ASSERT_FALSE(kept.lines.empty());
  EXPECT_EQ(kept.lines.back().text, "RuntimeError: x");
  EXPECT_EQ(kept.lines.back().number, 2);
}

TEST(ReaderFiles, TheEndSaysHowItWas) {
  const Kept kept = read_text("one\nerror caf\xe9\nunfinished");
  ASSERT_EQ(kept.ends.size(), 1U);
  EXPECT_EQ(kept.ends[0].bytes, 25U);
  EXPECT_EQ(kept.ends[0].lines, 3);
  EXPECT_TRUE(kept.ends[0].unfinished);
  EXPECT_TRUE(kept.ends[0].replaced);
  EXPECT_FALSE(kept.ends[0].problem);
  EXPECT_EQ(kept.texts(), (Texts{"one", "error caf\uFFFD", "unfinished"}));
}

TEST(ReaderFiles, AFolderIsReadInNaturalOrderAndItsBinariesAreSkipped) {
  const Folder folder;
  folder.write("rank10.log", "RuntimeError: ten\n");
  folder.write("rank2.log", "RuntimeError: two\n");
  folder.write("deep/er/rank3.log", "RuntimeError: three\n");
  folder.write("model.pt", std::string("PK\x03\x04\0\0\x08\x08", 8) + "error");
  folder.write(".hidden", "error\n");
  folder.write("report.json", "error\n");
  std::filesystem::create_directory_symlink(folder.path(), folder.path("deep/loop"));
  ReadOptions options;
  options.skip = [](const std::string& path) { return path.ends_with(".json"); };
  Kept kept;
  LogReader reader(kept, options);
  EXPECT_TRUE(reader.read_path(folder.path()));
  EXPECT_EQ(kept.texts(), (Texts{"RuntimeError: three", "RuntimeError: two", "RuntimeError: ten"}));
  EXPECT_EQ(kept.lines[0].rank, 3);
  EXPECT_EQ(kept.lines[2].rank, 10);
  EXPECT_EQ(kept.lines[2].source, folder.path("rank10.log"));
  EXPECT_EQ(reader.summary().sources, 3);
  EXPECT_EQ(reader.summary().skipped, 1);
  EXPECT_EQ(reader.summary().omissions,
            (Texts{folder.path("model.pt") + ": skipped: this is a ZIP archive"}));
  EXPECT_EQ(reader.summary().notes,
            (Texts{folder.path() + ": 1 hidden entry was not read: name what you mean"}));
  EXPECT_TRUE(reader.summary().problems.empty());
}

TEST(ReaderFiles, FilesOfOneNameInSeveralFoldersAreTold) {
  const Folder folder;
  const std::string one = folder.write("a/rank0.log", "error a\n");
  const std::string two = folder.write("a/b/rank0.log", "error ab\n");
  const std::string three = folder.write("c/rank0.log", "error c\n");
  Kept kept;
  LogReader reader(kept);
  for (const std::string& path : {one, two, one, three, two, three}) EXPECT_TRUE(reader.read_path(path));
  EXPECT_TRUE(reader.read_path(folder.path()));
  EXPECT_EQ(kept.texts(), (Texts{"error a", "error ab", "error a", "error c", "error ab", "error c",
                                 "error ab", "error a", "error c"}));
}

TEST(ReaderFiles, AFileOfZerosIsNoLog) {
  const Folder folder;
  const std::string zeros = folder.write("zeros.log", std::string(300'000, '\0'));
  const std::string begun = folder.write("begun.log", std::string(300'000, '\0') + "error\n");
  Kept kept;
  LogReader reader(kept);
  reader.read_path(zeros);
  ASSERT_EQ(reader.summary().problems.size(), 1U);
  EXPECT_EQ(reader.summary().problems[0].error.line(),
            zeros + ": it holds zero bytes only: name another copy: this one was not written to its end");
  reader.read_path(begun);
  EXPECT_EQ(reader.summary().problems.size(), 1U);
  EXPECT_EQ(kept.texts().back(), "error");
}

TEST(ReaderFiles, TooManyFilesAreSaid) {
  const Folder folder;
  for (int k = 0; k < 5; ++k) folder.write("rank" + std::to_string(k) + ".log", "error\n");
  ReadOptions options;
  options.max_files = 3;
  Kept kept;
  LogReader reader(kept, options);
  EXPECT_TRUE(reader.read_path(folder.path()));
  EXPECT_EQ(reader.summary().sources, 3);
  EXPECT_EQ(reader.summary().omissions,
            (Texts{folder.path() + ": 2 files were not read: there are more than 3"}));
}

// Shortens the file, as logrotate's copytruncate does, when its first line arrives.
struct Shortening : Kept {
  explicit Shortening(std::string file) : file_(std::move(file)) {}
  void line(const Line& line) override {
    if (lines.empty()) std::filesystem::resize_file(file_, 0);
    Kept::line(line);
  }

 private:
  std::string file_;
};

TEST(ReaderFiles, OneThatIsShortenedWhileItIsReadIsAProblem) {
  const Folder folder;
  std::string log = "error\n";
  while (log.size() < 8U << 20U) log += std::string(1000, 'x') + "\n";
  const std::string path = folder.write("job.log", log + "RuntimeError: x\n");
  Shortening kept(path);
  LogReader reader(kept);
  reader.read_path(path);
  ASSERT_EQ(kept.ends.size(), 1U);
  EXPECT_TRUE(problem_of(kept.ends[0]).starts_with(path + ": it became shorter while it was read"))
      << problem_of(kept.ends[0]);
  EXPECT_EQ(kept.lines.front().text, "error");
  EXPECT_NE(kept.lines.back().text, "RuntimeError: x");
}

TEST(ReaderFiles, WhatCannotBeReadIsAProblemAndTheRestIsRead) {
  const Folder folder;
  Kept kept;
  LogReader reader(kept);
  EXPECT_FALSE(reader.read_path(folder.path("missing.log")));
  std::filesystem::create_directory(folder.path("empty"));
  EXPECT_FALSE(reader.read_path(folder.path("empty")));
  EXPECT_FALSE(reader.read_path(folder.write("core",
                                             "\x7f"
                                             "ELF\x02\x01\x01")));
  std::string noise;
  for (int k = 0; k < 4096; ++k) noise += static_cast<char>(k * 37 + k / 256 * 11);
  EXPECT_FALSE(reader.read_path(folder.write("noise", noise)));
  EXPECT_TRUE(reader.read_path(folder.write("job.log", "error\n")));
  EXPECT_TRUE(reader.read_path(folder.write("nothing.log", "")));
  EXPECT_FALSE(reader.read_path(folder.path("job.log/rank0.log")));
  EXPECT_FALSE(reader.read_path(""));
  EXPECT_EQ(kept.texts(), (Texts{"error"}));
  Texts problems;
  for (const ReadProblem& problem : reader.summary().problems) problems.push_back(problem.error.line());
  EXPECT_EQ(problems,
            (Texts{folder.path("missing.log") + ": No such file or directory: check the name",
                   folder.path("empty") + ": no logs in this folder: name the files, or another folder",
                   folder.path("core") + ": this is an ELF program or core dump: name the program's log",
                   folder.path("noise") + ": not a text: name the program's log",
                   folder.path("job.log/rank0.log") + ": Not a directory: check the name",
                   "a path is empty: check the variable that should hold it"}));
}

TEST(ReaderFiles, NaturalOrder) {
  Texts names = {"rank10", "rank2", "rank02", "a", "rank1b", "rank1a", "rank"};
  std::sort(names.begin(), names.end(), natural_less);
  EXPECT_EQ(names, (Texts{"a", "rank", "rank1a", "rank1b", "rank02", "rank2", "rank10"}));
  EXPECT_TRUE(natural_less("job/rank129.log", "job/rank1210.log"));
  EXPECT_TRUE(natural_less("run01/rank1", "run1/rank2"));
  EXPECT_TRUE(natural_less("run1/rank1", "run01/rank2"));
  EXPECT_TRUE(natural_less("job/rank00", "job/rank001"));
  EXPECT_FALSE(natural_less("job/rank7", "job/rank7"));
}

// A pipe whose writer goes on: lines come while it is open, and quiet() when it pauses.
struct Live : Kept {
  void line(const Line& line) override {
    Kept::line(line);
    ++seen;
  }
  void quiet() override {
    Kept::quiet();
    ++pauses;
  }
  std::atomic<int> seen = 0, pauses = 0;
};

void wait_for(const std::atomic<int>& counter, int value) {
  for (int k = 0; k < 10'000 && counter < value; ++k) ::usleep(1000);
}

TEST(ReaderFiles, ALivePipeDeliversAsLinesArrive) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Live live;
  std::thread reading([&] {
    LogReader reader(live);
    EXPECT_TRUE(reader.read_stream(ends[0], "<stdin>"));
  });
  const auto write = [&](std::string_view text) {
    ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  };
  write("a");  // less than a magic number
  write(" line\nRuntimeError: one\n");
  wait_for(live.seen, 2);
  wait_for(live.pauses, 1);
  EXPECT_EQ(live.seen, 2);
  EXPECT_EQ(live.pauses, 1);
  write("Runtime");
  write("Error: two\nhalf");
  wait_for(live.seen, 3);
  wait_for(live.pauses, 2);
  EXPECT_EQ(live.seen, 3);
  ::close(ends[1]);
  reading.join();
  ::close(ends[0]);
  EXPECT_EQ(live.texts(), (Texts{"a line", "RuntimeError: one", "RuntimeError: two", "half"}));
  EXPECT_EQ(live.pauses, 2);
}

// 300 MiB through a pipe: an allocator's arenas and the process's peak hardly move.
TEST(ReaderFiles, MemoryIsFlat) {
  struct Count : LineSink {
    void line(const Line&) override { ++lines; }
    void end_of_source(std::string_view, const SourceEnd&) override {}
    std::int64_t lines = 0;
  };
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  constexpr std::size_t kPieces = 300;
  std::thread writing([&] {
    std::string piece;
    while (piece.size() < (1 << 20)) {
      piece += piece.size() % 7 == 0 ? "x.cu:1: block: [0,0,0], thread: [1,0,0] Assertion `a` failed.\n"
                                     : "step 1 loss 0.5\n";
      if (piece.size() % 5 == 0) piece += std::string(3000, 'y') + " error \xff\n";
    }
    for (std::size_t k = 0; k < kPieces; ++k) {
      for (std::size_t at = 0; at < piece.size();) {
        const ssize_t wrote = ::write(ends[1], piece.data() + at, piece.size() - at);
        if (wrote <= 0) break;
        at += static_cast<std::size_t>(wrote);
      }
    }
    ::close(ends[1]);
  });
  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  Count count;
  LogReader reader(count);
  EXPECT_TRUE(reader.read_stream(ends[0], "<stdin>"));
  writing.join();
  ::close(ends[0]);
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_GE(reader.summary().bytes, kPieces << 20);
  EXPECT_GT(count.lines, 100'000);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 16 * 1024);  // KiB
}

}  // namespace
}  // namespace trapline
