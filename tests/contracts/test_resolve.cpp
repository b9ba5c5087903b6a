// What a row demands of a call, before anything is looked at. That host and device carry out the same demands
// with the same result is shown in tests/cuda.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "arguments.hpp"
#include "contracts/resolve.hpp"

namespace trapline::test {
namespace {

const Arg kNone;

std::vector<Demand> demands(const char* id, const Call& call) {
  const Contract* contract = find_contract(id);
  EXPECT_NE(contract, nullptr) << id;
  std::array<Demand, kMaxDemands> room;
  const auto all =
      resolve(*contract, {call.argument.get(), call.bound.get(), call.dim.get(), call.also.get()}, room);
  return {all.begin(), all.end()};
}

TEST(Resolve, ALabelHasItsRangeAndItsException) {
  const Call call{Arg::int64({4}, {}), Arg::shape({4, 10}), kNone, Arg::integer(-100)};
  const auto all = demands("nll_loss_forward.target", call);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].tensor, &call.argument.get()->tensor);
  EXPECT_EQ(all[0].predicate, Predicate::kIndex);
  EXPECT_EQ(all[0].lo, 0);
  EXPECT_EQ(all[0].hi, 10);
  EXPECT_TRUE(all[0].has_also);
  EXPECT_EQ(all[0].also, -100);
  EXPECT_EQ(all[0].list_position, -1);
  EXPECT_EQ(all[0].heal, Heal::kElement);
}

TEST(Resolve, AListHasOneDemandForEachIndex) {
  const Arg mask = Arg::tensor<std::uint8_t>({2}, {1, 0}, TRAPLINE_BOOL);
  const auto all = demands("index.indices", {Arg::list({mask, Arg::int64({1}), kNone, Arg::int64({1})}),
                                             Arg::shape({2, 3, 4, 5}), kNone, kNone});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].predicate, Predicate::kWrappedIndex);
  EXPECT_EQ(all[0].list_position, 1);
  EXPECT_EQ(all[0].lo, -3);
  EXPECT_EQ(all[1].list_position, 3);
  EXPECT_EQ(all[1].hi, 5);
}

// PyTorch refuses such a list before any of its kernels runs.
TEST(Resolve, OneIndexThatDoesNotFitMakesTheListTheOperationsAffair) {
  const Arg shape = Arg::shape({2, 3});
  EXPECT_TRUE(demands("index.indices", {Arg::list({Arg::int64({9}), Arg::float32({1})}), shape, kNone, kNone})
                  .empty());
  EXPECT_TRUE(demands("index.indices",
                      {Arg::list({Arg::int64({9}), Arg::int64({0}), Arg::int64({0})}), shape, kNone, kNone})
                  .empty());
  EXPECT_TRUE(demands("index.indices", {Arg::list({Arg::int64({9}), Arg::int64(std::vector<std::int64_t>{})}),
                                        shape, kNone, kNone})
                  .empty());
}

TEST(Resolve, LengthsSayWhatIsLookedAt) {
  const Arg labels = Arg::int64({2, 3}, {}), scores = Arg::shape({5, 2, 7});
  const auto resolved = [&](const Arg& of, const Arg& lengths) {
    return demands("_ctc_loss.targets", {of, scores, kNone, lengths});
  };
  const auto padded = resolved(labels, Arg::sizes({3, 1}));
  ASSERT_EQ(padded.size(), 1u);
  EXPECT_EQ(padded[0].predicate, Predicate::kPaddedIndex);
  EXPECT_EQ(padded[0].hi, 7);
  EXPECT_NE(padded[0].with, nullptr);
  // Without padding it is an index like any other, and without a label it is nothing.
  EXPECT_EQ(resolved(labels, Arg::sizes({3, 3})).at(0).predicate, Predicate::kIndex);
  EXPECT_TRUE(resolved(labels, Arg::sizes({0, 0})).empty());
  EXPECT_EQ(resolved(Arg::int64({4}, {}), Arg::sizes({3, 1})).at(0).predicate, Predicate::kIndex);
  // Lengths that do not fit the labels.
  EXPECT_TRUE(resolved(labels, Arg::sizes({3, 4})).empty());
  EXPECT_TRUE(resolved(labels, Arg::sizes({3, -1})).empty());
  EXPECT_TRUE(resolved(labels, Arg::sizes({3})).empty());
  EXPECT_TRUE(resolved(Arg::int64({4}, {}), Arg::sizes({3, 2})).empty());
}

// ctc_loss and multilabel_margin_loss refuse scores without a class themselves.
TEST(Resolve, NoClassesAreTheOperationsAffair) {
  EXPECT_TRUE(
      demands("_ctc_loss.targets", {Arg::int64({2, 3}, {}), Arg::shape({5, 2, 0}), kNone, Arg::sizes({3, 1})})
          .empty());
  EXPECT_TRUE(demands("multilabel_margin_loss_forward.target",
                      {Arg::int64({2, 3}, {}), Arg::shape({2, 0}), kNone, kNone})
                  .empty());
}

TEST(Resolve, WhatComesDownToAnIndex) {
  const auto pivots =
      demands("lu_unpack.LU_pivots", {Arg::tensor<std::int32_t>({3}, {1, 2, 3}, TRAPLINE_INT32),
                                      Arg::shape({3, 3}), kNone, Arg::integer(1)});
  ASSERT_EQ(pivots.size(), 1u);
  EXPECT_EQ(pivots[0].predicate, Predicate::kIndex);
  EXPECT_EQ(pivots[0].lo, 1);
  EXPECT_EQ(pivots[0].hi, 4);
  const auto counts = demands("repeat_interleave.repeats", {Arg::int64({2, 3}), kNone, kNone, kNone});
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].predicate, Predicate::kIndex);
  EXPECT_EQ(counts[0].hi, kUnbounded);
  EXPECT_EQ(counts[0].heal, Heal::kNone);
}

// A row's own word on healing goes before its predicate's.
TEST(Resolve, HealingIsAColumn) {
  const Call call{Arg::int64({2}, {}), Arg::integer(5), kNone, kNone};
  EXPECT_EQ(demands("_validate_compressed_sparse_indices.plain_idx", call).at(0).heal, Heal::kNone);
  EXPECT_EQ(demands("bincount.self", call).at(0).heal, Heal::kElement);
}

}  // namespace
}  // namespace trapline::test
