#include <bzlib.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "bytes/decompress.hpp"
#include "reader_kept.hpp"

namespace trapline {
namespace {

std::string gzip(std::string_view text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::string bzip2(std::string_view text) {
  std::string out(text.size() + text.size() / 50 + 1024, '\0');
  auto size = static_cast<unsigned>(out.size());
  BZ2_bzBuffToBuffCompress(out.data(), &size, const_cast<char*>(text.data()),
                           static_cast<unsigned>(text.size()), 9, 0, 0);
  out.resize(size);
  return out;
}

std::string xz(std::string_view text) {
  std::string out(lzma_stream_buffer_bound(text.size()), '\0');
  std::size_t size = 0;
  lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t*>(text.data()),
                          text.size(), reinterpret_cast<std::uint8_t*>(out.data()), &size, out.size());
  out.resize(size);
  return out;
}

struct Format {
  std::string_view name;
  Compression compression;
  std::string (*pack)(std::string_view);
};

const Format kFormats[] = {{"gzip", Compression::kGzip, gzip},
                           {"zstd", Compression::kZstd, zstd},
                           {"bzip2", Compression::kBzip2, bzip2},
                           {"xz", Compression::kXz, xz}};

std::string sample() {
  std::string text;
  for (int k = 0; k < 20'000; ++k) text += "error " + std::to_string(k * 7919) + "\n";
  return text;
}

TEST(ReaderArchive, EachFormatIsKnownByItsMagicAndReadInFull) {
  const std::string text = sample();
  for (const Format& format : kFormats) {
    const std::string packed = format.pack(text);
    EXPECT_EQ(compression_of(packed.substr(0, kMagicSize)), format.compression);
    EXPECT_EQ(name_of(format.compression), format.name);
    const Kept kept = read_text(packed);
    ASSERT_EQ(kept.lines.size(), 20'000U) << format.name;
    EXPECT_EQ(kept.lines[0].text, "error 0");
    EXPECT_EQ(kept.lines[19'999].text, "error " + std::to_string(19'999 * 7919));
    EXPECT_EQ(kept.lines[19'999].number, 20'000);
    ASSERT_EQ(kept.ends.size(), 1U);
    EXPECT_EQ(kept.ends[0].bytes, text.size());
    EXPECT_FALSE(kept.ends[0].problem) << problem_of(kept.ends[0]);
  }
  EXPECT_EQ(compression_of("BZhello"), Compression::kNone);
  EXPECT_EQ(compression_of(""), Compression::kNone);
}

TEST(ReaderArchive, AnArchiveCutWithinItsMagicIsNoEmptyLog) {
  for (const Format& format : kFormats) {
    for (std::size_t size = 2; size <= 4; ++size) {
      const Kept kept = read_text(format.pack("error\n").substr(0, size));
      ASSERT_EQ(kept.ends.size(), 1U);
      EXPECT_TRUE(kept.ends[0].problem) << format.name << " of " << size << " bytes";
      EXPECT_NE(problem_of(kept.ends[0]).find("ends too early, at offset " + std::to_string(size)),
                std::string::npos)
          << problem_of(kept.ends[0]);
    }
  }
}

TEST(ReaderArchive, MembersInARowAreOneText) {
  for (const Format& format : kFormats) {
    const Kept kept = read_text(format.pack("error one\n") + format.pack("error two\n"));
    EXPECT_EQ(kept.texts(), (std::vector<std::string>{"error one", "error two"})) << format.name;
    EXPECT_FALSE(kept.ends.at(0).problem) << problem_of(kept.ends.at(0));
  }
}

// Parallel compressors put what is for other readers before and between the frames of a text.
TEST(ReaderArchive, SkippableFramesOfZstdAreSkipped) {
  for (const char kind : {'\x50', '\x5f'}) {
    const std::string skippable = kind + std::string("\x2a\x4d\x18\x04\0\0\0abcd", 11);
    const Kept kept = read_text(skippable + zstd("error one\n") + skippable + zstd("error two\n"));
    EXPECT_EQ(kept.texts(), (std::vector<std::string>{"error one", "error two"}));
    EXPECT_FALSE(kept.ends.at(0).problem) << problem_of(kept.ends.at(0));
  }
}

TEST(ReaderArchive, ATruncatedArchiveGivesWhatItHasAndSaysWhereItEnds) {
  const std::string text = sample();
  for (const Format& format : kFormats) {
    const std::string packed = format.pack(text);
    const std::size_t size = packed.size() - 5;
    const Folder folder;
    Kept kept;
    LogReader reader(kept);
    reader.read_path(folder.write("job.log", packed.substr(0, size)));
    ASSERT_EQ(kept.ends.size(), 1U);
    EXPECT_TRUE(kept.ends[0].problem);
    const std::string problem = folder.path("job.log") + ": the " + std::string(format.name) +
                                " data ends too early, at offset " + std::to_string(size) +
                                ": the text before it was read; copy the file again";
    EXPECT_EQ(problem_of(kept.ends[0]), problem);
    ASSERT_EQ(reader.summary().problems.size(), 1U);
    EXPECT_EQ(reader.summary().problems[0].error.line(), problem);
    if (format.compression == Compression::kGzip || format.compression == Compression::kXz) {
      EXPECT_GT(kept.lines.size(), 19'000U) << format.name;
    }
  }
}

TEST(ReaderArchive, ABrokenArchiveNamesTheOffsetAndTheRestOfTheInputsIsRead) {
  const std::string text = sample();
  for (const Format& format : kFormats) {
    std::string packed = format.pack(text);
    for (std::size_t k = 0; k < 64; ++k)
      packed[packed.size() / 2 + k] = static_cast<char>(~packed[packed.size() / 2 + k]);
    const Folder folder;
    Kept kept;
    LogReader reader(kept);
    reader.read_path(folder.write("job.log", packed));
    reader.read_path(folder.write("next.log", "error next\n"));
    ASSERT_EQ(kept.ends.size(), 2U) << format.name;
    EXPECT_TRUE(kept.ends[0].problem) << format.name;
    EXPECT_NE(problem_of(kept.ends[0]).find(" in the " + std::string(format.name) + " data at offset "),
              std::string::npos)
        << problem_of(kept.ends[0]);
    EXPECT_FALSE(kept.ends[1].problem);
    EXPECT_EQ(kept.lines.back().text, "error next");
  }
}

TEST(ReaderArchive, EveryTruncationEndsWithAProblemAndNothingElse) {
  for (const Format& format : kFormats) {
    const std::string packed = format.pack("error one\nerror two\n");
    for (std::size_t size = kMagicSize; size < packed.size(); ++size) {
      const Kept kept = read_text(packed.substr(0, size));
      ASSERT_EQ(kept.ends.size(), 1U);
      EXPECT_TRUE(kept.ends[0].problem) << format.name << " cut at " << size;
    }
  }
}

TEST(ReaderArchive, PaddingBehindGzipIsFineAndGarbageIsSaid) {
  EXPECT_FALSE(read_text(gzip("error\n") + std::string(512, '\0')).ends.at(0).problem);
  EXPECT_TRUE(read_text(gzip("error\n") + "garbage").ends.at(0).problem);
}

TEST(ReaderArchive, ABinaryInsideIsNoLog) {
  const Folder folder;
  Kept kept;
  LogReader reader(kept);
  std::string tar(600, '\0');
  tar.replace(257, 5, "ustar");
  EXPECT_FALSE(reader.read_path(folder.write("logs.tar.gz", gzip(tar))));
  EXPECT_EQ(reader.summary().problems.at(0).error.line(),
            folder.path("logs.tar.gz") + ": this is a tar archive: name the program's log");
}

}  // namespace
}  // namespace trapline
