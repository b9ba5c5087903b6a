// The kernels' host build against the host's own scans: random tensors of all dtypes, shapes and strides,
// good and with a few bad elements, one block and many, and what becomes of the healed copy.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "contracts/contract.hpp"
#include "device_case.hpp"

namespace trapline::cuda_test {
namespace {

// Bits of numbers in [0, 1], and of numbers that some predicate rejects.
std::uint64_t number_bits(DType dtype, double value) {
  if (dtype == DType::kFloat64) return std::bit_cast<std::uint64_t>(value);
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (dtype == DType::kFloat32) return bits;
  if (dtype == DType::kBFloat16) return bits >> 16;
  if (std::isnan(value)) return 0x7E01;
  if (std::isinf(value)) return value > 0 ? 0x7C00 : 0xFC00;
  const auto sign = static_cast<std::uint64_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::fabs(value) < 1e-4) return sign | (value == 0 ? 0 : 1);  // the least subnormal
  int exponent = 0;
  const double mantissa = std::frexp(std::fabs(value), &exponent);  // [0.5, 1)
  return sign | static_cast<std::uint64_t>((exponent + 14) << 10) |
         static_cast<std::uint64_t>((mantissa * 2 - 1) * 1024);
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Spec {
  const char* id;
  std::vector<DType> dtypes;
  std::int64_t min_dim, max_dim;
};

const std::vector<DType> kInts{DType::kInt64, DType::kInt32};
const std::vector<DType> kAllInts{DType::kInt64, DType::kInt32, DType::kInt16, DType::kInt8, DType::kUInt8};
const std::vector<DType> kFloats{DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16};

const Spec kSpecs[] = {
    {"nll_loss_forward.target", {DType::kInt64, DType::kUInt8}, 0, 4},
    {"embedding.indices", kInts, 0, 4},
    {"take.index", {DType::kInt64}, 0, 4},
    {"bincount.self", kAllInts, 1, 1},
    {"_embedding_bag.offsets", kInts, 1, 1},
    {"_ctc_loss.targets", kAllInts, 1, 2},
    {"binary_cross_entropy.self", kFloats, 0, 4},
    {"poisson.self", kFloats, 0, 4},
    {"copy_.src", kFloats, 0, 4},
    {"multinomial.self", kFloats, 1, 2},
};

struct Case {
  const Spec& spec;
  RandomView view;
  trapline_arg argument{}, bound{}, also{};
  std::vector<std::int64_t> bound_sizes, bound_strides, lengths;
  std::int64_t lengths_size = 0, one = 1;

  Case(Random& random, const Spec& of, RandomView made) : spec(of), view(std::move(made)) {
    argument = tensor_arg(view.view());
    const std::string id = spec.id;
    const std::int64_t limit = one_of<std::int64_t>(random, {1, 5, 100, 300, 0});
    if (id == "nll_loss_forward.target") {
      bound_sizes.assign(argument.tensor.sizes, argument.tensor.sizes + argument.tensor.dim);
      bound_sizes.insert(bound_sizes.begin() + (bound_sizes.empty() ? 0 : 1), limit);
      if (between(random, 0, 1) == 0) also = int_arg(one_of<std::int64_t>(random, {-100, 255, 7}));
    } else if (id == "copy_.src") {
      bound_sizes = {1};
    } else if (id == "_ctc_loss.targets") {
      bound_sizes = {50, 1, std::max<std::int64_t>(limit, 1)};
      choose_lengths(random);
    } else {
      bound_sizes = {limit};
    }
    bound_strides.assign(bound_sizes.size(), 1);
    const bool has_bound = id != "multinomial.self" && id != "poisson.self" &&
                           id != "binary_cross_entropy.self" && id != "bincount.self";
    if (has_bound) bound = tensor_arg({nullptr, DType::kInt64, bound_sizes, bound_strides});
    fill(random, limit);
  }

  void choose_lengths(Random& random) {
    const trapline_tensor& targets = argument.tensor;
    const std::int64_t rows = targets.dim == 2 ? targets.sizes[0] : 1;
    const std::int64_t width = targets.sizes[targets.dim - 1];
    for (std::int64_t r = 0; r < rows; ++r) {
      lengths.push_back(targets.dim == 2 ? between(random, 0, width) : width);
    }
    if (between(random, 0, 9) == 0 && rows > 0)
      lengths[0] += one_of<std::int64_t>(random, {-99999, 99999, 1});
    lengths_size = rows;
    also = tensor_arg({lengths.data(), DType::kInt64, {&lengths_size, 1}, {&one, 1}});
  }

  void fill(Random& random, std::int64_t limit) {
    const std::int64_t total = view.view().numel();
    std::vector<std::int64_t> bad;
    if (total > 0 && between(random, 0, 2) != 0) {
      for (std::int64_t i = between(random, 0, 3); i-- > 0;) bad.push_back(between(random, 0, total - 1));
    }
    if (between(random, 0, 30) == 0) bad.clear(), bad.push_back(-1);  // all of them
    const bool all = !bad.empty() && bad[0] == -1;
    const DType dtype = view.view().dtype;
    const bool offsets = std::string(spec.id) == "_embedding_bag.offsets";
    const double zero = between(random, 0, 20) == 0 ? 1 : 0;  // rows without a sum
    std::int64_t at = 0, last = 0;
    view.fill(0xBBBBBBBBBBBBBBBBULL, [&]() -> std::uint64_t {
      const bool is_bad = all || std::find(bad.begin(), bad.end(), at) != bad.end();
      const bool is_first = at++ == 0;
      if (is_floating(dtype)) {
        const double good = zero != 0 ? 0.0 : one_of(random, {0.0, -0.0, 0.5, 1.0, 1e-6, 0.25});
        return number_bits(dtype, is_bad ? one_of(random, {kNan, kInf, -kInf, 2.0, -1.0, -0.5}) : good);
      }
      if (is_bad) {
        return static_cast<std::uint64_t>(one_of<std::int64_t>(
            random, {limit, limit + 3, -1, -limit - 1, std::numeric_limits<std::int64_t>::min(),
                     std::numeric_limits<std::int64_t>::max(), 200}));
      }
      if (offsets) {
        if (!is_first && last < limit && between(random, 0, 9) == 0) ++last;
        return static_cast<std::uint64_t>(last);
      }
      return static_cast<std::uint64_t>(limit == 0 ? 0 : between(random, 0, limit - 1));
    });
  }

  const trapline_contract* contract() const { return row(spec.id); }
  int check_on_host(const trapline_arg& checked, trapline_scan& scan) const {
    return trapline_check(contract(), &checked, &bound, nullptr, &also, &scan);
  }
};

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void expect_same(const trapline_scan& found, const trapline_scan& expected) {
  EXPECT_EQ(found.bad, expected.bad);
  EXPECT_EQ(found.total, expected.total);
  EXPECT_EQ(found.first, expected.first);
  EXPECT_EQ(found.is_float, expected.is_float);
  EXPECT_EQ(found.list_position, expected.list_position);
  EXPECT_EQ(found.ivalue, expected.ivalue);
  EXPECT_EQ(found.imin, expected.imin);
  EXPECT_EQ(found.imax, expected.imax);
  EXPECT_TRUE(same(found.fvalue, expected.fvalue)) << found.fvalue << " for " << expected.fvalue;
  EXPECT_TRUE(same(found.fmin, expected.fmin)) << found.fmin << " for " << expected.fmin;
  EXPECT_TRUE(same(found.fmax, expected.fmax)) << found.fmax << " for " << expected.fmax;
  EXPECT_EQ(found.lo, expected.lo);
  EXPECT_EQ(found.hi, expected.hi);
  EXPECT_EQ(found.has_also, expected.has_also);
  EXPECT_EQ(found.also, expected.also);
  EXPECT_EQ(found.reason, expected.reason);
}

class Differential : public ::testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { use_fake_driver(); }
  static int cases() {
    const char* wanted = std::getenv("TRAPLINE_DEVICE_CASES");
    return wanted == nullptr ? 1500 : std::atoi(wanted);
  }
};

// The copy is good, and differs from the original only where that was bad, or in a row or list that was.
void expect_healed(const Case& one, const trapline_device_check& check, const trapline_scan& expected,
                   const void* healed) {
  const TensorView view = one.view.view();
  const std::size_t width = size_of(view.dtype);
  std::vector<std::int64_t> strides(view.sizes.size());
  std::int64_t next = 1;
  for (std::size_t d = strides.size(); d-- > 0;) {
    strides[d] = next;
    next *= view.sizes[d];
  }
  const trapline_arg copy = tensor_arg({healed, view.dtype, view.sizes, strides});
  trapline_scan again{};
  const int verdict = one.check_on_host(copy, again);
  EXPECT_TRUE(verdict != TRAPLINE_VIOLATED) << again.first << " is still bad";
  std::int64_t changed = 0, position = 0, first = -1;
  const Layout layout = row_major_layout(view, view.sizes.size());
  for_each_offset(layout, layout.dims, [&](std::int64_t offset) {
    const auto* from = static_cast<const char*>(view.data) + offset * static_cast<std::int64_t>(width);
    const auto* to = static_cast<const char*>(healed) + position * static_cast<std::int64_t>(width);
    if (std::memcmp(from, to, width) != 0 && changed++ == 0) first = position;
    ++position;
    return true;
  });
  if (check.heal == TRAPLINE_HEAL_ELEMENT) {
    EXPECT_EQ(changed, expected.bad);
    EXPECT_EQ(first, expected.first);
  } else if (expected.bad == 0) {
    EXPECT_EQ(changed, 0);
  } else if (check.heal == TRAPLINE_HEAL_ROW) {
    EXPECT_LE(changed, expected.bad * check.last_dim);
    EXPECT_EQ(first / check.last_dim, expected.first / check.last_dim);
  }
}

void run_case(const Case& one, Lane& lane, bool capturing, bool with_copy) {
  trapline_scan expected{}, known{};
  const int verdict = one.check_on_host(one.argument, expected);
  trapline_device_check check{};
  int count = 0;
  const int planned = trapline_device_plan(one.contract(), &one.argument, &one.bound, nullptr, &one.also,
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
    expect_same(reports[0].scan, expected);
  }
  if (with_copy && verdict != TRAPLINE_NOT_APPLICABLE) expect_healed(one, check, expected, healed.get());
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
    if (view.view().dim() < spec.min_dim || view.view().dim() > spec.max_dim) continue;
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
