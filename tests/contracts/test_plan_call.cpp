// What plan_call makes of a call's sizes. That the checks find what check_call finds is shown in tests/cuda.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "arguments.hpp"
#include "contracts/plan_call.hpp"

namespace trapline::test {
namespace {

const Arg kNone;

struct Planned {
  trapline_plan_verdict verdict{};
  std::array<trapline_device_check, 4> checks{};
  int count = 0;
  trapline_scan scan{};
};

Planned plan(const char* id, const Call& call, std::size_t capacity = 4) {
  Planned planned;
  const Contract* contract = find_contract(id);
  EXPECT_NE(contract, nullptr) << id;
  planned.verdict =
      plan_call(*contract, {call.argument.get(), call.bound.get(), call.dim.get(), call.also.get()},
                std::span(planned.checks).first(capacity), planned.count, planned.scan);
  return planned;
}

TEST(PlanCall, ALabelIsOneCheckWithItsRange) {
  const Planned planned =
      plan("nll_loss_forward.target", {Arg::int64({4}, {}), Arg::shape({4, 10}), kNone, Arg::integer(-100)});
  ASSERT_EQ(planned.verdict, TRAPLINE_PLAN_CHECK);
  ASSERT_EQ(planned.count, 1);
  const trapline_device_check& check = planned.checks[0];
  EXPECT_EQ(check.predicate, static_cast<int>(Predicate::kIndex));
  EXPECT_EQ(check.dtype, TRAPLINE_INT64);
  EXPECT_EQ(check.heal, TRAPLINE_HEAL_ELEMENT);
  EXPECT_EQ(check.list_position, -1);
  EXPECT_EQ(check.lo, 0);
  EXPECT_EQ(check.hi, 10);
  EXPECT_EQ(check.has_also, 1);
  EXPECT_EQ(check.also, -100);
  EXPECT_EQ(check.numel, 4);
}

TEST(PlanCall, DimensionsMergeAndTheRowStays) {
  const Planned planned = plan("multinomial.self", {Arg::float32({6, 4}, {}), kNone, kNone, kNone});
  ASSERT_EQ(planned.count, 1);
  EXPECT_EQ(planned.checks[0].dim, 1);
  EXPECT_EQ(planned.checks[0].sizes[0], 24);
  EXPECT_EQ(planned.checks[0].strides[0], 1);
  EXPECT_EQ(planned.checks[0].last_dim, 4);
  EXPECT_EQ(planned.checks[0].heal, TRAPLINE_HEAL_ROW);
}

TEST(PlanCall, OneEndIsNoCheck) {
  const char* rows = "_validate_compressed_sparse_indices.compressed_idx";
  const Arg width = Arg::integer(3);
  EXPECT_EQ(plan(rows, {Arg::int64({1}, {}), Arg::integer(0), kNone, width}).verdict, TRAPLINE_PLAN_NOTHING);
  EXPECT_EQ(plan(rows, {Arg::int64({2}, {}), Arg::integer(0), kNone, width}).verdict, TRAPLINE_PLAN_CHECK);
  // Rows of any length are looked at in order, and the width is no value that is allowed besides.
  const Planned planned = plan(rows, {Arg::int64({2, 100'001}, {}), Arg::integer(7), kNone, width});
  ASSERT_EQ(planned.count, 1);
  EXPECT_EQ(planned.checks[0].hi, 8);
  EXPECT_EQ(planned.checks[0].also, 3);
  EXPECT_EQ(planned.checks[0].has_also, 0);
  EXPECT_EQ(planned.checks[0].last_dim, 100'001);
  EXPECT_EQ(planned.checks[0].heal, TRAPLINE_HEAL_NONE);
}

TEST(PlanCall, EachTensorOfAListIsACheck) {
  const Arg mask = Arg::tensor<std::uint8_t>({2}, {1, 0}, TRAPLINE_BOOL);
  const Call call{Arg::list({mask, Arg::int64({1}), kNone, Arg::int64({1})}), Arg::shape({2, 3, 4, 5}), kNone,
                  kNone};
  const Planned planned = plan("index.indices", call);
  ASSERT_EQ(planned.count, 2);
  EXPECT_EQ(planned.checks[0].list_position, 1);
  EXPECT_EQ(planned.checks[0].lo, -3);
  EXPECT_EQ(planned.checks[0].hi, 3);
  EXPECT_EQ(planned.checks[1].list_position, 3);
  EXPECT_EQ(planned.checks[1].hi, 5);
  EXPECT_EQ(plan("index.indices", call, 1).count, 1);
  const Call too_many{Arg::list({Arg::int64({1}), Arg::int64({1})}), Arg::shape({2}), kNone, kNone};
  EXPECT_EQ(plan("index.indices", too_many).verdict, TRAPLINE_PLAN_NOTHING);
}

TEST(PlanCall, NoIndexFitsADimensionOfSizeZero) {
  const Planned planned = plan("embedding.indices", {Arg::int64({7}, {}), Arg::shape({0, 3}), kNone, kNone});
  EXPECT_EQ(planned.verdict, TRAPLINE_PLAN_VIOLATED);
  EXPECT_EQ(planned.scan.bad, 7);
  EXPECT_EQ(planned.scan.total, 7);
  EXPECT_EQ(planned.scan.first, 0);
  EXPECT_EQ(planned.scan.hi, 0);
  EXPECT_EQ(planned.scan.list_position, -1);
  // The ignored label may still be all there is.
  EXPECT_EQ(
      plan("nll_loss_forward.target", {Arg::int64({4}, {}), Arg::shape({4, 0}), kNone, Arg::integer(-100)})
          .verdict,
      TRAPLINE_PLAN_CHECK);
}

TEST(PlanCall, NothingIsPlannedWhereNothingCanBeBad) {
  EXPECT_EQ(plan("embedding.indices", {Arg::int64({0}, {}), Arg::shape({0, 3}), kNone, kNone}).verdict,
            TRAPLINE_PLAN_NOTHING);
  const Arg bytes = Arg::tensor<std::uint8_t>({2}, {1, 2}, TRAPLINE_UINT8);
  EXPECT_EQ(plan("nll_loss_forward.target", {bytes, Arg::shape({2, 256}), kNone, kNone}).verdict,
            TRAPLINE_PLAN_NOTHING);
  EXPECT_EQ(plan("nll_loss_forward.target", {bytes, Arg::shape({2, 255}), kNone, kNone}).verdict,
            TRAPLINE_PLAN_CHECK);
  EXPECT_EQ(plan("copy_.src", {Arg::float32({1.0F}), Arg::float32({1.0F}), kNone, kNone}).verdict,
            TRAPLINE_PLAN_NOTHING);
  EXPECT_EQ(plan("gather.index", {Arg::int64({1}, {}), Arg::shape({3}), Arg::integer(4), kNone}).verdict,
            TRAPLINE_PLAN_NOTHING);
}

TEST(PlanCall, WhatHealsIsSaid) {
  const Planned cast = plan("copy_.src", {Arg::float32({1.0F}), Arg::int64({1}), kNone, kNone});
  EXPECT_EQ(cast.checks[0].heal, TRAPLINE_HEAL_REPORT);
  const Planned repeats = plan("repeat_interleave.repeats", {Arg::int64({3}, {}), kNone, kNone, kNone});
  EXPECT_EQ(repeats.checks[0].heal, TRAPLINE_HEAL_NONE);
  EXPECT_EQ(repeats.checks[0].hi, std::numeric_limits<std::int64_t>::max());
  const Planned offsets =
      plan("_embedding_bag.offsets", {Arg::int64({3}, {}), Arg::shape({9}), kNone, kNone});
  EXPECT_EQ(offsets.checks[0].heal, TRAPLINE_HEAL_ALL);
  EXPECT_EQ(offsets.checks[0].hi, 10);
}

TEST(PlanCall, CtcLengthsAsAListAreLookedAt) {
  const Arg scores = Arg::shape({5, 2, 3});
  const auto planned = [&](const Arg& targets, std::vector<std::int64_t> lengths) {
    return plan("_ctc_loss.targets", {targets, scores, kNone, Arg::sizes(std::move(lengths))});
  };
  const Arg flat = Arg::int64({4}, {}), padded = Arg::int64({2, 4}, {});
  EXPECT_EQ(planned(flat, {2, 2}).checks[0].predicate, static_cast<int>(Predicate::kIndex));
  EXPECT_EQ(planned(flat, {2, 1}).verdict, TRAPLINE_PLAN_NOTHING);
  EXPECT_EQ(planned(padded, {4, 4}).checks[0].predicate, static_cast<int>(Predicate::kIndex));
  EXPECT_EQ(planned(padded, {5, 4}).verdict, TRAPLINE_PLAN_NOTHING);
  const Planned part = planned(padded, {3, 4});
  EXPECT_EQ(part.checks[0].predicate, static_cast<int>(Predicate::kPaddedIndex));
  EXPECT_EQ(part.checks[0].lengths_count, 2);
  EXPECT_EQ(part.checks[0].lengths, nullptr);
  EXPECT_EQ(part.checks[0].last_dim, 4);
}

}  // namespace
}  // namespace trapline::test
