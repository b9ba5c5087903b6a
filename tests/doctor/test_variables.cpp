#include <gtest/gtest.h>

#include "doctor/variables.hpp"

namespace trapline::doctor {
namespace {

Lines lines(std::vector<std::string> environment) { return lines_of_variables(environment); }

TEST(Variables, NothingIsSaidOfAnOrdinaryEnvironment) {
  EXPECT_TRUE(lines({"PATH=/usr/bin", "HOME=/", "CUDA_HOME=/usr/local/cuda", "TRAPLINE_TEST_X=1"}).empty());
}

TEST(Variables, OnIsANumberButZero) {
  EXPECT_TRUE(lines({"CUDA_LAUNCH_BLOCKING=0"}).empty());
  const Lines on = lines({"CUDA_LAUNCH_BLOCKING=1"});
  ASSERT_EQ(on.size(), 1U);
  EXPECT_EQ(on[0].level, Level::kNote);
  EXPECT_EQ(on[0].fact, "1");
}

TEST(Variables, HiddenGpusAndListedOnes) {
  for (const char* hides : {"CUDA_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES=-1"}) {
    const Lines hidden = lines({hides});
    ASSERT_EQ(hidden.size(), 1U) << hides;
    EXPECT_EQ(hidden[0].means, "no GPU is visible to the program");
  }
  const Lines listed = lines({"CUDA_VISIBLE_DEVICES=2,3"});
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_NE(listed[0].means.find("the first of this list"), std::string::npos);
}

TEST(Variables, ASlipIsAProblem) {
  const Lines slip = lines({"TRAPLINE_ONFAULT=skip", "TRAPLINE_ZZZZZZZZ=1"});
  ASSERT_EQ(slip.size(), 2U);
  EXPECT_EQ(slip[0].level, Level::kProblem);
  EXPECT_EQ(slip[0].todo, "did you mean TRAPLINE_ON_FAULT?");
  EXPECT_EQ(slip[1].todo, "unset it");
}

TEST(Variables, AWordThatTheFlagWouldRefuseIsAProblem) {
  const Lines wrong = lines({"TRAPLINE_ON_FAULT=ignore"});
  ASSERT_EQ(wrong.size(), 1U);
  EXPECT_EQ(wrong[0].level, Level::kProblem);
  EXPECT_TRUE(lines({"TRAPLINE_ON_FAULT=skip"}).empty());
}

TEST(Variables, TheGuardSwitchedOffIsAProblem) {
  const Lines off = lines({"TRAPLINE_OFF=1"});
  ASSERT_EQ(off.size(), 1U);
  EXPECT_EQ(off[0].level, Level::kProblem);
}

}  // namespace
}  // namespace trapline::doctor
