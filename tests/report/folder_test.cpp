#include "report/folder.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace {

namespace fs = std::filesystem;

// How often the random letters of a name can be told before: the C library's function is replaced below.
int g_known = 0;

}  // namespace

extern "C" ssize_t getrandom(void* bytes, size_t size, unsigned flags) {
  if (g_known == 0) return ::syscall(SYS_getrandom, bytes, size, flags);
  --g_known;
  std::memset(bytes, 0, size);
  return static_cast<ssize_t>(size);
}

namespace trapline {
namespace {

std::string content(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class SharedFolder : public testing::Test {
 protected:
  SharedFolder() {
    std::string name = (fs::temp_directory_path() / "trapline-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
    std::ofstream(victim()) << "mine";
  }
  ~SharedFolder() override {
    g_known = 0;
    fs::remove_all(path_);
  }
  fs::path victim() const { return path_ / "victim"; }
  fs::path temporary() const { return path_ / "guard-h-1.json.tmpaaaaaaaaaaaa"; }
  Result<std::string> write() const { return write_into_folder(path_.string(), "guard-h-1.json", "{}"); }

  fs::path path_;
};

// Somebody else who may write there puts links under the names that are used next.
TEST_F(SharedFolder, ALinkUnderTheTemporaryNameIsNotFollowed) {
  fs::create_symlink(victim(), temporary());
  g_known = 1;
  const auto written = write();
  ASSERT_EQ(g_known, 0);
  ASSERT_TRUE(written) << written.error().line();
  EXPECT_EQ(content(*written), "{}");
  EXPECT_EQ(content(victim()), "mine");
  EXPECT_TRUE(fs::is_symlink(temporary())) << "it was not ours";
}

TEST_F(SharedFolder, ALinkToNothingIsNotFilled) {
  fs::create_symlink(path_ / "new", temporary());
  g_known = 1;
  EXPECT_TRUE(write());
  EXPECT_FALSE(fs::exists(path_ / "new"));
}

TEST_F(SharedFolder, WhereEveryNameIsTakenNothingIsWritten) {
  fs::create_symlink(victim(), temporary());
  g_known = 1000;
  const auto written = write();
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().why, "File exists");
  EXPECT_EQ(content(victim()), "mine");
  EXPECT_FALSE(fs::exists(path_ / "guard-h-1.json"));
}

TEST_F(SharedFolder, ALinkUnderTheLastNameIsReplaced) {
  fs::create_symlink(victim(), path_ / "guard-h-1.json");
  ASSERT_TRUE(write());
  EXPECT_FALSE(fs::is_symlink(path_ / "guard-h-1.json"));
  EXPECT_EQ(content(victim()), "mine");
}

}  // namespace
}  // namespace trapline
