// Tests that run once with every instruction set of this machine that Highway has code for.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cstdint>
#include <string>

namespace trapline::testing {

// The parameter is Highway's number of the instruction set.
class WithEveryInstructionSet : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

inline auto every_instruction_set() { return ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()); }

inline std::string name_of_set(const ::testing::TestParamInfo<std::int64_t>& target) {
  return hwy::TargetName(target.param);
}

}  // namespace trapline::testing
