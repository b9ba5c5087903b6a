// The kernels' host build against the host's own scans: random tensors of all dtypes, shapes and strides,
// good and with a few bad elements, one block and many, and what becomes of the healed copy.
#include <gtest/gtest.h>

#include "device_case.hpp"

namespace trapline::cuda_test {
namespace {

class Differential : public ::testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { use_fake_driver(); }
  static int cases() {
    const char* wanted = std::getenv("TRAPLINE_DEVICE_CASES");
    return wanted == nullptr ? 1500 / kFewer : std::atoi(wanted);
  }
};

void run_case(const Case& one, Lane& lane, bool capturing, bool wants_copy) {
  trapline_scan expected{}, known{};
  const int verdict = one.check_on_host(one.argument, expected);
  trapline_device_check check{};
  int count = 0;
  const int planned = trapline_device_plan(one.contract(), &one.argument, &one.bound, &one.dim, &one.also,
                                           &check, 1, &count, &known);
  if (planned == TRAPLINE_PLAN_VIOLATED) {
    ASSERT_EQ(verdict, TRAPLINE_VIOLATED);
    EXPECT_EQ(known.bad, expected.bad);
    EXPECT_EQ(known.total, expected.total);
    EXPECT_EQ(known.first, expected.first);
    EXPECT_EQ(known.hi, expected.hi);
    return;
  }
  if (planned == TRAPLINE_PLAN_NOTHING) {
    EXPECT_NE(verdict, TRAPLINE_VIOLATED);
    return;
  }
  ASSERT_EQ(count, 1);
  const bool with_copy = wants_copy && check.heal != TRAPLINE_HEAL_NONE;
  const std::size_t width = size_of(one.view.view().dtype);
  const int flags = capturing ? TRAPLINE_LAUNCH_CAPTURING : 0;
  const Memory healed(static_cast<std::size_t>(check.numel) * width);
  const std::int64_t slot = launch(lane, check, with_copy ? healed.get() : nullptr, flags);
  if (reinterpret_cast<std::uintptr_t>(check.data) % width != 0) {
    EXPECT_EQ(slot, -1) << "a device must not read such an address";
    return;
  }
  ASSERT_GE(slot, 0);
  ASSERT_EQ(trapline_device_wait_stream(0, lane.stream), 1);
  if (capturing) {  // its end is the graph's matter
    ASSERT_EQ(cuStreamSynchronize(lane.stream), 0);
  }
  trapline_device_report reports[2];
  const int found = trapline_device_poll(reports, 2);
  ASSERT_EQ(found, verdict == TRAPLINE_VIOLATED ? 1 : 0);
  if (found == 1) {
    EXPECT_EQ(reports[0].slot, slot);
    EXPECT_EQ(reports[0].device, 0);
    EXPECT_EQ(reports[0].row, one.contract());
    EXPECT_EQ(reports[0].list_position, -1);
    EXPECT_EQ(difference(reports[0].scan, expected), "");
  }
  if (with_copy && verdict != TRAPLINE_NOT_APPLICABLE) {
    EXPECT_EQ(healed_problem(one, check, expected, healed.get()), "");
  }
}

TEST_P(Differential, AgreesWithTheHost) {
  const Spec& spec = kSpecs[GetParam()];
  Random random(static_cast<std::uint64_t>(GetParam()) + 1);
  Lane lane;
  int reported = 0;
  for (int i = 0; i < cases();) {
    const DType dtype = spec.dtypes[static_cast<std::size_t>(
        between(random, 0, static_cast<std::int64_t>(spec.dtypes.size()) - 1))];
    RandomView view(random, dtype);
    if (!spec.takes(view.view())) continue;
    ++i;
    const Case one(random, spec, std::move(view));
    run_case(one, lane, between(random, 0, 9) == 0, between(random, 0, 3) != 0);
    trapline_scan scan{};
    reported += one.check_on_host(one.argument, scan) == TRAPLINE_VIOLATED ? 1 : 0;
    if (HasFailure()) {
      FAIL() << "case " << i << " of " << spec.id << ": " << one.view.describe();
    }
  }
  EXPECT_GT(reported, cases() / 20);
}

std::string name_of_spec(const ::testing::TestParamInfo<int>& info) {
  std::string name = kSpecs[info.param].id;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Rows, Differential, ::testing::Range(0, static_cast<int>(std::size(kSpecs))),
                         name_of_spec);

}  // namespace
}  // namespace trapline::cuda_test
