#include "run/libtorch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "temporary.hpp"

namespace trapline {
namespace {

using Texts = std::vector<std::string>;

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Libtorch, NeededLibrariesOfThisProgram) {
  const Texts needed = needed_libraries("/proc/self/exe");
  EXPECT_EQ(std::ranges::count(needed, "libc.so.6"), 1);
  EXPECT_GE(std::ranges::count_if(needed, [](const auto& name) { return name.starts_with("libstdc++.so"); }),
            1);
}

TEST(Libtorch, OtherAndDamagedFilesNeedNothing) {
  const Temporary temporary;
  EXPECT_EQ(needed_libraries("/no/such/file"), Texts{});
  EXPECT_EQ(needed_libraries(temporary.path()), Texts{});
  temporary.write("script", "#!/bin/sh\n");
  EXPECT_EQ(needed_libraries(temporary / "script"), Texts{});
  const std::string whole = bytes_of("/bin/sh");
  for (const std::size_t size : {4U, 63U, 64U, 100U, 500U, 4000U}) {
    temporary.write("cut", whole.substr(0, size));
    EXPECT_LE(needed_libraries(temporary / "cut").size(), 4096U);
  }
  std::string wild = whole;
  for (std::size_t i = 32; i < 64 && i < wild.size(); ++i) wild[i] = '\xff';
  temporary.write("wild", wild);
  EXPECT_EQ(needed_libraries(temporary / "wild"), Texts{});
}

TEST(Libtorch, OrdinaryCommandsDoNotUseIt) {
  EXPECT_FALSE(uses_libtorch({"sh", "-c", "true"}, Texts{"PATH=/bin:/usr/bin"}));
  EXPECT_FALSE(uses_libtorch({"no-such-program"}, Texts{}));
  EXPECT_TRUE(uses_libtorch({"sh"}, Texts{"TRAPLINE_LIBTORCH=1"}));
}

TEST(Libtorch, FoldersOfTheBuildAndOfTheCache) {
  const Temporary temporary;
  EXPECT_EQ(libtorch_folders(temporary.path(), Texts{"HOME=/h"}), "/h/.cache/trapline/adapters");
  EXPECT_EQ(libtorch_folders(temporary.path(), Texts{"HOME=/h", "XDG_CACHE_HOME=relative"}),
            "/h/.cache/trapline/adapters");
  temporary.write("CMakeCache.txt", "");
  EXPECT_EQ(libtorch_folders(temporary.path(), Texts{"XDG_CACHE_HOME=/c"}),
            (temporary / "adapters").string() + ":/c/trapline/adapters");
}

}  // namespace
}  // namespace trapline
