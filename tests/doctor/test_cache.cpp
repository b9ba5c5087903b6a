#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "doctor/cache.hpp"

namespace trapline::doctor {
namespace {

namespace fs = std::filesystem;

class Cache : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "trapline-cache-test-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    folder_ = root_ / "trapline" / "adapters";
    fs::create_directories(folder_);
    for (const auto& path : {root_ / "trapline", folder_}) ::chmod(path.c_str(), 0700);
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& name, const std::string& text = "x") { std::ofstream(folder_ / name) << text; }
  CacheFolder read() const {
    const std::vector<std::string> environment = {"XDG_CACHE_HOME=" + root_.string(),
                                                  "TMPDIR=" + root_.string()};
    return cache_folders(environment).front();
  }

  fs::path root_, folder_;
};

const char* const kGuard = "trapline_guard-torch2.13.0-abi3-x86_64-linux-gnu-d3f81f989785.so";

TEST_F(Cache, ListsOnlyWhatTraplineMakes) {
  put(kGuard, "12345");
  put(std::string(kGuard) + ".begun");
  put("trapline_guard-torch2.13.0-abi3-x86_64-linux-gnu-d3f81f989785.log");
  put("background.log");
  put(".build.lock");
  put("notes.txt");
  fs::create_directory(folder_ / "trapline_folder.so");
  fs::create_symlink("/etc/passwd", folder_ / "trapline_link.so");
  const CacheFolder folder = read();
  EXPECT_EQ(folder.path, folder_);
  EXPECT_EQ(folder.entries.size(), 4U);
  EXPECT_EQ(folder.foreign, 3U);
  EXPECT_EQ(folder.bytes(), 8U);
}

TEST_F(Cache, CleanRemovesThoseAndTheFoldersThatAreEmptyThen) {
  put(kGuard);
  put(".build.lock", "");
  fs::create_directories(folder_ / ".building-x" / "room");
  const fs::path kept = root_ / "kept";
  std::ofstream(kept) << "text";
  fs::create_symlink(kept, folder_ / ".building-x" / "link");
  const Cleaned done = clean(read());
  EXPECT_EQ(done.files, 2U);
  EXPECT_TRUE(done.problems.empty());
  EXPECT_FALSE(fs::exists(root_ / "trapline"));
  EXPECT_TRUE(fs::exists(kept));
}

TEST_F(Cache, CleanLeavesWhatIsNotOurs) {
  put(kGuard);
  put("notes.txt");
  EXPECT_EQ(clean(read()).files, 1U);
  EXPECT_TRUE(fs::exists(folder_ / "notes.txt"));
}

TEST_F(Cache, ABuildKeepsTheFolder) {
  put(kGuard);
  put(".build.lock", "");
  const int lock = ::open((folder_ / ".build.lock").c_str(), O_RDWR);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  EXPECT_TRUE(read().is_busy);
  const Cleaned done = clean(read());
  ::close(lock);
  EXPECT_EQ(done.files, 0U);
  ASSERT_EQ(done.problems.size(), 1U);
  EXPECT_NE(done.problems[0].find("a guard is being built in it"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder_ / kGuard));
}

TEST_F(Cache, AFolderOfOthersIsRefused) {
  put(kGuard);
  ::chmod(folder_.c_str(), 0777);
  EXPECT_EQ(read().refused, "others may write to it");
  EXPECT_EQ(clean(read()).files, 0U);
  fs::rename(folder_, root_ / "elsewhere");
  fs::create_directory_symlink(root_ / "elsewhere", folder_);
  EXPECT_EQ(read().refused, "it is a link");
  EXPECT_EQ(clean(read()).problems.size(), 1U);
  EXPECT_TRUE(fs::exists(root_ / "elsewhere" / kGuard));
}

TEST_F(Cache, ARelativePathIsIgnored) {
  const std::vector<std::string> environment = {"XDG_CACHE_HOME=relative", "HOME=" + root_.string()};
  EXPECT_EQ(cache_folders(environment).front().path, root_ / ".cache" / "trapline" / "adapters");
}

}  // namespace
}  // namespace trapline::doctor
