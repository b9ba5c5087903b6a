// What every reader owes, on small files made by hand: the formats' own tools are at work in the Python
// tests.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "inputs/mapped_file.hpp"
#include "kept.hpp"

namespace trapline::inputs {
namespace {

using Values = std::vector<double>;
using namespace std::string_literals;

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string out;
  for (const T value : values) out.append(reinterpret_cast<const char*>(&value), sizeof(T));
  return out;
}

std::string npy(const std::string& descr, const std::string& order, const std::string& shape,
                const std::string& data) {
  const std::string header =
      "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
  return "\x93NUMPY\x01\x00"s + static_cast<char>(header.size()) + '\0' + header + data;
}

std::string safetensors(const std::string& header, const std::string& data) {
  return bytes_of<std::uint64_t>({header.size()}) + header + data;
}

TEST(Readers, EachHasAName) {
  std::vector<std::string_view> names;
  for (const Reader* reader : readers()) names.push_back(reader->name());
  EXPECT_EQ(names,
            (std::vector<std::string_view>{"compressed", "npy", "arrow", "sqlite", "duckdb", "hdf5", "npz",
                                           "torch", "gguf", "safetensors", "png", "tfrecord", "webdataset",
                                           "csv", "jsonl", "json", "json columns", "yolo", "image folder"}));
}

TEST(Readers, NothingIsKnownOfEmptyBytesWithoutAName) {
  Kept kept;
  EXPECT_EQ(read_bytes("no-such-folder/file", "", kept), "unknown");
  EXPECT_EQ(read_bytes("no-such-folder/file", "hello", kept), "unknown");
}

TEST(Readers, AnArrayIsNotCopied) {
  const std::string data = npy("<i8", "False", "(3,)", bytes_of<std::int64_t>({5, -1, 7}));
  // Where the elements lie is not for the header's length to say, so align them here.
  std::vector<std::uint64_t> room(64);
  char* start = reinterpret_cast<char*>(room.data()) + (8 - (data.size() - 24) % 8) % 8;
  std::memcpy(start, data.data(), data.size());
  struct Where final : Sink {
    bool begin(const Column&) override { return true; }
    bool piece(const Piece& piece) override {
      data = piece.view.data;
      return true;
    }
    void malformed(const Column&, std::int64_t, std::int64_t, std::string_view) override {}
    const void* data = nullptr;
  } where;
  EXPECT_EQ(read_bytes("a.npy", {start, data.size()}, where), "");
  EXPECT_EQ(where.data, start + data.size() - 24);
}

TEST(Readers, UnalignedAndBigEndianNumbersAreTheSame) {
  Kept kept;
  EXPECT_EQ(read_bytes("a.npy", npy(">i2", "False", "(2, 2)", "\0\1\0\2\xff\xff\1\0"s), kept), "");
  EXPECT_EQ(kept.values[""], (Values{1, 2, -1, 256}));
}

TEST(Readers, FortranOrderIsRowMajorForTheSink) {
  Kept kept;
  EXPECT_EQ(read_bytes("a.npy", npy("|i1", "True", "(2, 3)", "\0\3\1\4\2\5"s), kept), "");
  EXPECT_EQ(kept.values[""], (Values{0, 1, 2, 3, 4, 5}));
}

TEST(Readers, UnsignedNumbersThatDoNotFitAreTheLargest) {
  Kept kept;
  EXPECT_EQ(read_bytes("a.npy", npy("<u8", "False", "(1,)", std::string(8, '\xff')), kept), "");
  EXPECT_EQ(kept.values[""], (Values{static_cast<double>(std::numeric_limits<std::int64_t>::max())}));
}

TEST(Readers, WhatIsNotWantedIsNotDecoded) {
  Kept kept;
  kept.wanted = false;
  EXPECT_EQ(read_bytes("a.csv", "a,b\n1,2\n", kept), "");
  EXPECT_EQ(kept.begun.size(), 2U);
  EXPECT_EQ(kept.pieces, 0);
}

TEST(Readers, ASinkThatHasEnoughGetsNoMore) {
  std::string text = "a\n";
  for (int i = 0; i < 200'000; ++i) text += "1\n";
  Kept kept;
  kept.most_pieces = 1;
  EXPECT_EQ(read_bytes("a.csv", text, kept), "");
  EXPECT_EQ(kept.pieces, 1);
}

TEST(Readers, StoppingIsNoError) {
  std::string text = "a\n";
  for (int i = 0; i < 200'000; ++i) text += "1\n";
  Kept kept;
  kept.stop_after = 1;
  EXPECT_EQ(read_bytes("a.csv", text, kept), "stopped");
  EXPECT_LT(kept.pieces, 4);
}

TEST(Readers, ErrorsNameFileAndOffset) {
  struct Case {
    std::string path, bytes, error;
  };
  const std::vector<Case> cases{
      {"a.npy", "\x93NUMPY\x01\x00\xff\xff{"s,
       "the .npy header ends too early: it claims 65535 bytes (at byte 11)"},
      {"a.npy", npy("<i8", "False", "(2,)", "12345678"), "8 are there (at byte 76)"},
      {"a.safetensors", safetensors("{}", "x"), "there are bytes that belong to no tensor (at byte 10)"},
      {"a.npz", "PK\3\4", "the archive has no directory at its end: it is not whole (at byte 4)"},
      {"a.pt", "PK\3\4", "the archive has no directory at its end: it is not whole (at byte 4)"},
      {"a.csv", "a\n\"", "a quoted field does not end (at byte 2)"},
      {"a.jsonl", "1\n2\n]\n", "line 3: no valid JSON"},
      {"a.json", "[{\"a\":1},", "no valid JSON"},
      {"a.txt", "0 0.5 0.5 1 1\n7\n",
       "line 2 has 1 fields, not a class and a box or an outline (at byte 14)"},
      {"a.png", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0"s, "(at byte "},
  };
  for (const Case& c : cases) {
    Kept kept;
    const std::string error = read_bytes(c.path, c.bytes, kept);
    EXPECT_TRUE(error.starts_with("cannot read " + c.path + ": ")) << error;
    EXPECT_NE(error.find(c.error), error.npos) << error;
    EXPECT_EQ(error.find('\n'), error.npos);
  }
}

TEST(Readers, CutAnywhereIsAnErrorOrLess) {
  const std::vector<std::pair<std::string, std::string>> files{
      {"a.npy", npy("<i4", "False", "(4,)", bytes_of<std::int32_t>({1, 2, 3, 4}))},
      {"a.safetensors", safetensors(R"({"a":{"dtype":"I32","shape":[4],"data_offsets":[0,16]}})",
                                    bytes_of<std::int32_t>({1, 2, 3, 4}))},
      {"a.csv", "a,b\n1,\"2\"\n3,4\n"},
      {"a.jsonl", "{\"a\":1,\"b\":[2,3]}\n{\"a\":4}\n"},
      {"a.json", "[{\"a\":1,\"b\":[2,3]},{\"a\":4}]"},
      {"a.txt", "0 0.5 0.5 1 1\n1 0.5 0.5 1 1\n"},
  };
  for (const auto& [path, whole] : files) {
    Kept all;
    ASSERT_EQ(read_bytes(path, whole, all), "") << path;
    for (std::size_t size = 0; size < whole.size(); ++size) {
      // Its own allocation, so that a sanitizer sees a read behind the end.
      const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      Kept kept;
      const std::string error = read_bytes(path, {cut.data(), cut.size()}, kept);
      EXPECT_EQ(error.find('\n'), error.npos);
      for (const auto& [name, values] : kept.values)
        EXPECT_LE(values.size(), all.values[name].size()) << path;
    }
  }
}

TEST(Readers, EveryByteOfASmallFileMayBeWrong) {
  const std::string whole =
      safetensors(R"({"a":{"dtype":"F8_E4M3","shape":[2,2],"data_offsets":[0,4]}})", "\x38\xb8\x7f\x01");
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char wrong : {'\0', '\x7f', '\xff', '9', '"'}) {
      std::string bytes = whole;
      bytes[at] = wrong;
      Kept kept;
      const std::string error = read_bytes("a.safetensors", bytes, kept);
      if (error.empty()) {
        EXPECT_LE(kept.values.size(), 1U);
      }
    }
  }
}

TEST(MappedFile, AMissingFileIsNamed) {
  const Result<MappedFile> file = MappedFile::open("no-such-file");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().line(), "cannot read no-such-file: No such file or directory: check the path");
}

TEST(MappedFile, AFolderHasNoBytes) {
  const Result<MappedFile> file = MappedFile::open("/");
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->is_folder());
  EXPECT_TRUE(file->bytes().empty());
}

TEST(MappedFile, ADeviceIsNotWaitedFor) {
  const Result<MappedFile> file = MappedFile::open("/dev/null");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().why, "it is neither a file nor a folder");
}

}  // namespace
}  // namespace trapline::inputs
