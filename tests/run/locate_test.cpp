#include "run/locate.hpp"

#include <gtest/gtest.h>

#include "temporary.hpp"

namespace trapline {
namespace {

TEST(Locate, FindsAnInstalledTree) {
  const Temporary prefix;
  prefix.write("lib/libtrapline.so", "");
  prefix.write("share/trapline/python/trapline/startup/sitecustomize.py", "");
  const auto found = locate(prefix / "bin/trapline");
  ASSERT_TRUE(found) << found.error().line();
  EXPECT_EQ(found->library, prefix / "lib/libtrapline.so");
  EXPECT_EQ(found->python, prefix / "share/trapline/python");
}

TEST(Locate, FindsASourceTree) {
  const Temporary source;
  source.write("build/lib/libtrapline.so", "");
  source.write("python/trapline/startup/sitecustomize.py", "");
  const auto found = locate(source / "build/bin/trapline");
  ASSERT_TRUE(found) << found.error().line();
  EXPECT_EQ(found->python, source / "python");
}

TEST(Locate, FindsWhatAWheelPutIntoTheFolderOfPackages) {
  const Temporary packages;
  packages.write("trapline/_lib/libtrapline.so", "");
  packages.write("trapline/startup/sitecustomize.py", "");
  const auto found = locate(packages / "trapline/_bin/trapline");
  ASSERT_TRUE(found) << found.error().line();
  EXPECT_EQ(found->library, packages / "trapline/_lib/libtrapline.so");
  EXPECT_EQ(found->python, packages.path());
}

TEST(Locate, TakesNoOtherLibraryThanThatOfItsWheel) {
  const Temporary packages;
  packages.write("trapline/startup/sitecustomize.py", "");
  packages.write("trapline/lib/libtrapline.so", "");
  const auto found = locate(packages / "trapline/_bin/trapline");
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().line().find((packages / "trapline/_lib/libtrapline.so").string()),
            std::string::npos);
}

TEST(Locate, NamesTheCauseWhenTheProgramsOwnFileCannotBeTold) {
  const auto found = locate({});
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().why.find("/proc is not mounted"), std::string::npos);
}

TEST(Locate, SaysWhatIsMissingAndWhatToDo) {
  const Temporary empty;
  const auto found = locate(empty / "prefix/bin/trapline");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().what, "cannot find libtrapline.so");
  EXPECT_NE(found.error().line().find((empty / "prefix/lib/libtrapline.so").string()), std::string::npos);
  empty.write("prefix/lib/libtrapline.so", "");
  EXPECT_EQ(locate(empty / "prefix/bin/trapline").error().what, "cannot find Trapline's Python package");
}

}  // namespace
}  // namespace trapline
