// Files that other processes change while they are mapped, and pages that are given back.
#include "inputs/mapped_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "inputs/reader.hpp"
#include "kept.hpp"

namespace trapline::inputs {
namespace {

constexpr std::size_t kSize = std::size_t{1} << 20U;

class ChangedFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ =
        (std::filesystem::temp_directory_path() / ("trapline-mapped-" + std::to_string(::getpid()))).string();
    std::ofstream(path_) << std::string(kSize, 'x');
    take_changed_file();
  }
  void TearDown() override { std::remove(path_.c_str()); }

  static std::int64_t sum(std::span<const std::byte> bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}, [](std::int64_t all, std::byte one) {
      return all + std::to_integer<std::int64_t>(one);
    });
  }
  std::string path_;
};

TEST_F(ChangedFile, AnUntouchedOneIsNotChanged) {
  { ASSERT_EQ(sum(MappedFile::open(path_)->bytes()), 'x' * static_cast<std::int64_t>(kSize)); }
  EXPECT_FALSE(take_changed_file());
}

TEST_F(ChangedFile, WhatIsGoneIsZerosAndTheFileIsNamed) {
  {
    const Result<MappedFile> file = MappedFile::open(path_);
    ASSERT_EQ(::truncate(path_.c_str(), kSize / 4), 0);
    EXPECT_EQ(sum(file->bytes()), 'x' * static_cast<std::int64_t>(kSize / 4));
  }
  const std::optional<Error> changed = take_changed_file();
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->line(), "cannot read " + path_ +
                                 ": it was changed while it was read, so nothing said of it counts: check it "
                                 "again when nobody writes to it");
  EXPECT_FALSE(take_changed_file());
}

TEST_F(ChangedFile, ItIsToldWhicheverThreadRead) {
  {
    const Result<MappedFile> file = MappedFile::open(path_);
    ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
    std::vector<std::int64_t> sums(4, -1);
    std::vector<std::thread> threads;
    for (std::int64_t& one : sums) threads.emplace_back([&] { one = sum(file->bytes()); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(sums, std::vector<std::int64_t>(4, 0));
  }
  EXPECT_TRUE(take_changed_file());
}

// Shortened and filled up again between two looks at its size: the reading itself has seen it.
TEST_F(ChangedFile, OneThatGrewAgainIsChanged) {
  struct stat before {};
  ASSERT_EQ(::stat(path_.c_str(), &before), 0);
  {
    const Result<MappedFile> file = MappedFile::open(path_);
    ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
    EXPECT_EQ(sum(file->bytes()), 0);
    ASSERT_EQ(::truncate(path_.c_str(), kSize), 0);
    const timespec times[2] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  }
  EXPECT_TRUE(take_changed_file());
}

TEST_F(ChangedFile, OneThatIsWrittenToIsChanged) {
  {
    const Result<MappedFile> file = MappedFile::open(path_);
    std::ofstream(path_, std::ios::app) << "more";
  }
  EXPECT_TRUE(take_changed_file());
}

TEST_F(ChangedFile, OneThatIsReplacedIsNot) {
  {
    const Result<MappedFile> file = MappedFile::open(path_);
    std::ofstream(path_ + ".new") << "new";
    std::filesystem::rename(path_ + ".new", path_);
    EXPECT_EQ(sum(file->bytes()), 'x' * static_cast<std::int64_t>(kSize));
  }
  EXPECT_FALSE(take_changed_file());
}

TEST_F(ChangedFile, ReleasedPagesComeBackAndOtherMemoryStays) {
  const Result<MappedFile> file = MappedFile::open(path_);
  std::vector<std::byte> own(kSize, std::byte{7});
  release_pages(file->bytes());
  release_pages(own);
  release_all_pages();
  EXPECT_EQ(sum(file->bytes()), 'x' * static_cast<std::int64_t>(kSize));
  EXPECT_EQ(sum(own), 7 * static_cast<std::int64_t>(kSize));
}

// A SIGBUS that has nothing to do with a mapped file ends the process as it would have without the handler.
TEST_F(ChangedFile, OtherBusErrorsAreLeftAlone) {
  // A sanitizer's own handler was there before; it ends the process so.
#if defined(__SANITIZE_ADDRESS__)
  const testing::ExitedWithCode left_alone(1);
#elif defined(__SANITIZE_THREAD__)
  const testing::ExitedWithCode left_alone(66);
#else
  const testing::KilledBySignal left_alone(SIGBUS);
#endif
  EXPECT_EXIT(
      {
        const Result<MappedFile> file = MappedFile::open(path_);
        ::raise(SIGBUS);
        ::raise(SIGBUS);
      },
      left_alone, "");
}

}  // namespace
}  // namespace trapline::inputs
