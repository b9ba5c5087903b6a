// What check_call leaves to the operation: other dtypes, sizes that do not fit, calls that read nothing.
#include <gtest/gtest.h>

#include <cmath>

#include "arguments.hpp"

namespace trapline::test {
namespace {

trapline_verdict verdict(const char* id, const Call& call) {
  trapline_scan scan{};
  return call.check(id, scan);
}

const Arg kNone;

TEST(CheckCall, OtherDtypesAreTheOperationsMatter) {
  const Arg bad = Arg::int64({9, 9});
  const Arg scores = Arg::shape({2, 3});
  EXPECT_EQ(verdict("nll_loss_forward.target", {bad, scores, kNone, kNone}), TRAPLINE_VIOLATED);
  for (const int dtype : std::initializer_list<int>{TRAPLINE_BOOL, TRAPLINE_INT8, TRAPLINE_INT32,
                                                    TRAPLINE_FLOAT32, TRAPLINE_OTHER_DTYPE, -1}) {
    EXPECT_EQ(verdict("nll_loss_forward.target", {bad.with_dtype(dtype), scores, kNone, kNone}),
              TRAPLINE_NOT_APPLICABLE)
        << dtype;
  }
}

TEST(CheckCall, Uint8TargetsAreLabels) {
  const Arg target = Arg::tensor<std::uint8_t>({2}, {1, 255}, TRAPLINE_UINT8);
  EXPECT_EQ(verdict("nll_loss_forward.target", {target, Arg::shape({2, 3}), kNone, Arg::integer(255)}),
            TRAPLINE_OK);
  EXPECT_EQ(verdict("nll_loss_forward.target", {target, Arg::shape({2, 3}), kNone, Arg::integer(-1)}),
            TRAPLINE_VIOLATED);
}

TEST(CheckCall, SizesThatDoNotFitAreTheOperationsMatter) {
  const Arg bad = Arg::int64({9, 9});
  EXPECT_EQ(verdict("nll_loss_forward.target", {bad, Arg::shape({3, 3}), kNone, kNone}),
            TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(verdict("nll_loss_forward.target", {bad, Arg::shape({3}), kNone, kNone}),
            TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(verdict("gather.index", {bad, Arg::shape({3}), Arg::integer(1), kNone}), TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(verdict("gather.index", {bad, Arg::shape({3}), kNone, kNone}), TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(verdict("gather.index", {bad, kNone, Arg::integer(0), kNone}), TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(verdict("index.indices", {Arg::list({bad, bad}), Arg::shape({20}), kNone, kNone}),
            TRAPLINE_NOT_APPLICABLE);
}

TEST(CheckCall, OneSampleWithoutABatch) {
  EXPECT_EQ(verdict("nll_loss_forward.target", {Arg::int64({}, {2}), Arg::shape({3}), kNone, kNone}),
            TRAPLINE_OK);
  EXPECT_EQ(verdict("nll_loss_forward.target", {Arg::int64({}, {3}), Arg::shape({3}), kNone, kNone}),
            TRAPLINE_VIOLATED);
}

TEST(CheckCall, ZeroDimTensorHasOneElement) {
  const Arg scalar = Arg::shape({});
  EXPECT_EQ(verdict("gather.index", {Arg::int64({0, 0}), scalar, Arg::integer(-1), kNone}), TRAPLINE_OK);
  EXPECT_EQ(verdict("gather.index", {Arg::int64({0, 1}), scalar, Arg::integer(0), kNone}), TRAPLINE_VIOLATED);
  EXPECT_EQ(verdict("index_fill.index", {Arg::int64({-1}), scalar, Arg::integer(0), kNone}), TRAPLINE_OK);
  EXPECT_EQ(verdict("take.index", {Arg::int64({-1}), scalar, kNone, kNone}), TRAPLINE_OK);
}

TEST(CheckCall, CallsThatReadNothingAreAccepted) {
  const Arg bad = Arg::int64({5});
  EXPECT_EQ(verdict("index.indices", {Arg::list({bad}), Arg::shape({3, 0}), kNone, kNone}),
            TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(verdict("index.indices", {Arg::list({bad, Arg::int64({})}), Arg::shape({3, 4}), kNone, kNone}),
            TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(verdict("index_add.index", {bad, Arg::shape({3, 0}), Arg::integer(0), kNone}),
            TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(verdict("index_select.index", {Arg::int64({}), Arg::shape({0}), Arg::integer(0), kNone}),
            TRAPLINE_OK);
  EXPECT_EQ(verdict("bernoulli_.p", {Arg::float32({2.0F}), Arg::shape({0}), kNone, kNone}),
            TRAPLINE_NOT_APPLICABLE);
}

// A sparse tensor without rows has one compressed index, which PyTorch leaves unwritten.
TEST(CheckCall, OneEndBoundsNothing) {
  constexpr std::int64_t kUnwritten = 94317789909904;
  const char* rows = "_validate_compressed_sparse_indices.compressed_idx";
  const Arg nnz = Arg::integer(0), width = Arg::integer(3);
  EXPECT_EQ(verdict(rows, {Arg::int64({kUnwritten}), nnz, kNone, width}), TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(verdict(rows, {Arg::int64({2, 1}, {kUnwritten, -1}), nnz, kNone, width}),
            TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(verdict(rows, {Arg::int64({0, kUnwritten}), nnz, kNone, width}), TRAPLINE_VIOLATED);
  const Arg data = Arg::shape({4}), axis = Arg::integer(0);
  EXPECT_EQ(verdict("segment_reduce.offsets", {Arg::int64({9}), data, axis, kNone}), TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(verdict("segment_reduce.offsets", {Arg::int64({0, 9}), data, axis, kNone}), TRAPLINE_VIOLATED);
  // The first group of a grouped matrix product starts at 0.
  const Arg ends = Arg::tensor<std::int32_t>({1}, {9}, TRAPLINE_INT32);
  EXPECT_EQ(verdict("_grouped_mm.offs", {ends, Arg::shape({4, 16}), Arg::shape({1, 16, 16}), kNone}),
            TRAPLINE_VIOLATED);
}

TEST(CheckCall, EmptyDimensionHoldsNoIndex) {
  trapline_scan scan{};
  const Call call{Arg::int64({0}), Arg::shape({0, 3}), kNone, kNone};
  EXPECT_EQ(call.check("embedding.indices", scan), TRAPLINE_VIOLATED);
  EXPECT_EQ(scan.hi, 0);
}

TEST(CheckCall, MasksTakeTheirDimensions) {
  const Arg mask = Arg::tensor<std::uint8_t>({2, 3}, {1, 0, 0, 0, 1, 0}, TRAPLINE_BOOL);
  trapline_scan scan{};
  const Call good{Arg::list({mask, Arg::int64({3, -4})}), Arg::shape({2, 3, 4}), kNone, kNone};
  EXPECT_EQ(good.check("index.indices", scan), TRAPLINE_OK);
  const Call bad{Arg::list({mask, Arg::int64({3, 4})}), Arg::shape({2, 3, 4}), kNone, kNone};
  EXPECT_EQ(bad.check("index.indices", scan), TRAPLINE_VIOLATED);
  EXPECT_EQ(scan.list_position, 1);
  EXPECT_EQ(scan.ivalue, 4);
  EXPECT_EQ(scan.lo, -4);
  const Call only_mask{Arg::list({mask}), Arg::shape({2, 3, 4}), kNone, kNone};
  EXPECT_EQ(only_mask.check("index.indices", scan), TRAPLINE_NOT_APPLICABLE);
}

TEST(CheckCall, OneHotWithoutClassesOnlyForbidsNegatives) {
  EXPECT_EQ(verdict("one_hot.self", {Arg::int64({1000}), Arg::integer(-1), kNone, kNone}), TRAPLINE_OK);
  EXPECT_EQ(verdict("one_hot.self", {Arg::int64({-1}), Arg::integer(-1), kNone, kNone}), TRAPLINE_VIOLATED);
  EXPECT_EQ(verdict("one_hot.self", {Arg::int64({-1}), Arg::integer(-2), kNone, kNone}),
            TRAPLINE_NOT_APPLICABLE);
}

TEST(CheckCall, CtcLengthsMustFit) {
  const Arg targets = Arg::int64({4}, {1, 2, 3, 1});
  const Arg scores = Arg::shape({5, 2, 3});
  EXPECT_EQ(verdict("_ctc_loss.targets", {targets, scores, kNone, Arg::sizes({2, 2})}), TRAPLINE_VIOLATED);
  EXPECT_EQ(verdict("_ctc_loss.targets", {targets, scores, kNone, Arg::sizes({2, 1})}),
            TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(verdict("_ctc_loss.targets", {targets, scores, kNone, kNone}), TRAPLINE_NOT_APPLICABLE);
  const Arg padded = Arg::int64({1, 2}, {9, 9});
  EXPECT_EQ(verdict("_ctc_loss.targets", {padded, scores, kNone, Arg::sizes({3})}), TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(verdict("_ctc_loss.targets", {padded, scores, kNone, Arg::sizes({0})}), TRAPLINE_NOT_APPLICABLE)
      << "no label is read";
}

TEST(CheckCall, AMaskCountsAsOftenAsItIsBroadcast) {
  const Arg mask = Arg::tensor<std::uint8_t>({2, 1}, {0, 1}, TRAPLINE_BOOL);
  trapline_scan scan{};
  const Call good{mask, Arg::shape({3}), kNone, Arg::shape({2, 3})};
  EXPECT_EQ(good.check("masked_scatter.mask", scan), TRAPLINE_OK);
  const Call bad{mask, Arg::shape({2}), kNone, Arg::shape({4, 2, 3})};
  EXPECT_EQ(bad.check("masked_scatter.mask", scan), TRAPLINE_VIOLATED);
  EXPECT_EQ(scan.bad, 10);
  EXPECT_EQ(scan.first, 1) << "in the mask's own shape";
  EXPECT_EQ(scan.hi, 2);
  const Call any{mask, Arg::shape({6}), kNone, Arg::shape({2, 3})};
  EXPECT_EQ(any.check("masked_scatter.mask", scan), TRAPLINE_NOT_APPLICABLE) << "source is as large as all";
  const Call shapes{mask, Arg::shape({0}), kNone, Arg::shape({3, 3})};
  EXPECT_EQ(shapes.check("masked_scatter.mask", scan), TRAPLINE_NOT_APPLICABLE);
}

TEST(CheckCall, PivotsThatAreNotUnpackedAreNotRead) {
  const Arg pivots = Arg::tensor<std::int32_t>({2}, {0, 9}, TRAPLINE_INT32);
  EXPECT_EQ(verdict("lu_unpack.LU_pivots", {pivots, Arg::shape({2, 2}), kNone, Arg::integer(0)}),
            TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(verdict("lu_unpack.LU_pivots", {pivots, Arg::shape({2, 2}), kNone, Arg::integer(1)}),
            TRAPLINE_VIOLATED);
}

TEST(CheckCall, LengthsLieAlongTheAxis) {
  const Arg lengths = Arg::int64({9, 9});
  const Arg data = Arg::shape({2, 5});
  EXPECT_EQ(verdict("segment_reduce.lengths", {lengths, data, Arg::integer(0), kNone}), TRAPLINE_VIOLATED);
  EXPECT_EQ(verdict("segment_reduce.lengths", {lengths, data, Arg::integer(1), kNone}),
            TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(verdict("segment_reduce.lengths", {lengths, data, Arg::integer(7), kNone}),
            TRAPLINE_NOT_APPLICABLE);
}

TEST(CheckCall, WhatAGroupedProductCuts) {
  const Arg ends = Arg::tensor<std::int32_t>({2}, {3, 6}, TRAPLINE_INT32);
  const auto cut = [&](std::vector<std::int64_t> left, std::vector<std::int64_t> right) {
    return verdict("_grouped_mm.offs",
                   {ends, Arg::shape(std::move(left)), Arg::shape(std::move(right)), kNone});
  };
  EXPECT_EQ(cut({6, 2}, {2, 2, 2}), TRAPLINE_OK);
  EXPECT_EQ(cut({5, 9}, {2, 9, 9}), TRAPLINE_VIOLATED);
  EXPECT_EQ(cut({2, 2, 2}, {2, 6}), TRAPLINE_OK);
  EXPECT_EQ(cut({2, 6, 9}, {9, 5}), TRAPLINE_VIOLATED);
  EXPECT_EQ(cut({2, 6}, {6, 2}), TRAPLINE_OK);
  EXPECT_EQ(cut({9, 5}, {5, 9}), TRAPLINE_VIOLATED);
  EXPECT_EQ(cut({2, 2, 2}, {2, 2, 2}), TRAPLINE_NOT_APPLICABLE);
}

TEST(CheckCall, UnreadableMemoryIsNotRead) {
  const Arg elsewhere = Arg::shape({4}).with_dtype(TRAPLINE_INT64);
  EXPECT_EQ(verdict("embedding.indices", {elsewhere, Arg::shape({3, 2}), kNone, kNone}),
            TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(verdict("index.indices", {Arg::list({elsewhere}), Arg::shape({3, 2}), kNone, kNone}),
            TRAPLINE_NOT_APPLICABLE);
}

TEST(CheckCall, CastsToBoolAndFloatAreNoCastsToInteger) {
  const Arg nan = Arg::float32({std::nanf("")});
  EXPECT_EQ(verdict("copy_.src", {nan, Arg::int64({0}), kNone, kNone}), TRAPLINE_VIOLATED);
  EXPECT_EQ(verdict("copy_.src", {nan, Arg::int64({0}).with_dtype(TRAPLINE_BOOL), kNone, kNone}),
            TRAPLINE_NOT_APPLICABLE);
  EXPECT_EQ(verdict("copy_.src", {nan, Arg::float32({0.0F}), kNone, kNone}), TRAPLINE_NOT_APPLICABLE);
}

}  // namespace
}  // namespace trapline::test
