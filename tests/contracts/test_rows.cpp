// Every row of the table with a call that it accepts and one that it does not.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "arguments.hpp"

namespace trapline::test {
namespace {

struct Expected {
  std::int64_t first, bad;
  Reason reason;
};

struct RowCase {
  std::vector<std::string> ids;
  Call good, bad;
  Expected expected;
};

const float kNan = std::nanf("");

std::vector<RowCase> row_cases() {
  const Arg none;
  const Arg zero = Arg::integer(0), last = Arg::integer(-1);
  const Arg scores = Arg::shape({4, 3});
  const Arg table = Arg::shape({5, 8});
  const auto bits = [](std::vector<std::int64_t> shape, std::vector<std::uint8_t> values) {
    return Arg::tensor<std::uint8_t>(std::move(shape), std::move(values), TRAPLINE_BOOL);
  };
  const auto bag = [](std::string argument) {
    return std::vector<std::string>{"_embedding_bag." + argument, "_embedding_bag_forward_only." + argument};
  };
  return {
      {{"nll_loss_forward.target", "nll_loss_backward.target"},
       {Arg::int64({0, 2, -100, 1}), scores, none, Arg::integer(-100)},
       {Arg::int64({0, 3, -100, -1}), scores, none, Arg::integer(-100)},
       {1, 2, Reason::kAbove}},
      {{"nll_loss2d_forward.target", "nll_loss2d_backward.target"},
       {Arg::int64({1, 2, 2}, {0, 1, 2, -1}), Arg::shape({1, 3, 2, 2}), none, Arg::integer(-1)},
       {Arg::int64({1, 2, 2}, {0, 1, -100, 3}), Arg::shape({1, 3, 2, 2}), none, Arg::integer(-1)},
       {2, 2, Reason::kBelow}},
      {{"multi_margin_loss.target", "multi_margin_loss_backward.target"},
       {Arg::int64({0, 2, 1, 1}), scores, none, none},
       {Arg::int64({0, 2, 1, -100}), scores, none, none},
       {3, 1, Reason::kBelow}},
      {{"one_hot.self"},
       {Arg::int64({0, 9}), Arg::integer(10), none, none},
       {Arg::int64({0, 10}), Arg::integer(10), none, none},
       {1, 1, Reason::kAbove}},
      {{"_ctc_loss.targets", "_ctc_loss_backward.targets"},
       {Arg::int64({2, 3}, {1, 2, -7, 0, 99, 99}), Arg::shape({5, 2, 3}), none, Arg::sizes({2, 1})},
       {Arg::int64({2, 3}, {1, 2, -7, 3, 99, 99}), Arg::shape({5, 2, 3}), none, Arg::int64({2, 1})},
       {3, 1, Reason::kAbove}},
      {{"bincount.self"},
       {Arg::int64({0, 7, 1000000}), none, none, none},
       {Arg::int64({0, -7, 1}), none, none, none},
       {1, 1, Reason::kBelow}},
      {{"embedding.indices", "embedding_renorm.indices", "embedding_renorm_.indices",
        "_embedding_bag_per_sample_weights_backward.indices"},
       {Arg::int64({2, 2}, {0, 4, 1, 2}), table, none, none},
       {Arg::int64({2, 2}, {0, 4, 5, -1}), table, none, none},
       {2, 2, Reason::kAbove}},
      {{"embedding_dense_backward.indices"},
       {Arg::int64({0, 4, -1}), Arg::integer(5), none, Arg::integer(-1)},
       {Arg::int64({0, 5, -1}), Arg::integer(5), none, Arg::integer(-1)},
       {1, 1, Reason::kAbove}},
      {bag("indices"),
       {Arg::int64({0, 4}), table, none, none},
       {Arg::int64({-1, 4}), table, none, none},
       {0, 1, Reason::kBelow}},
      {bag("offsets"),
       {Arg::int64({0, 2, 2, 3}), Arg::int64({7, 8, 9}), none, none},
       {Arg::int64({0, 2, 1, 3}), Arg::int64({7, 8, 9}), none, none},
       {2, 1, Reason::kNotAscending}},
      {{"index.indices", "_unsafe_index.indices", "index_put.indices", "index_put_.indices",
        "_index_put_impl.indices", "_index_put_impl_.indices", "_unsafe_index_put.indices"},
       {Arg::list({Arg::int64({0, -5}), none, Arg::int64({7, -8})}), Arg::shape({5, 2, 8}), none, none},
       {Arg::list({Arg::int64({0, -5}), none, Arg::int64({7, 8})}), Arg::shape({5, 2, 8}), none, none},
       {1, 1, Reason::kAbove}},
      {{"index_select.index", "index_add.index", "index_add_.index", "index_reduce.index",
        "index_reduce_.index", "index_copy.index", "index_copy_.index"},
       {Arg::int64({0, 7}), table, last, none},
       {Arg::int64({7, -1}), table, last, none},
       {1, 1, Reason::kBelow}},
      {{"gather.index", "scatter.index", "scatter_.index", "scatter_add.index", "scatter_add_.index",
        "scatter_reduce.index", "scatter_reduce_.index"},
       {Arg::int64({1, 2}, {0, 4}), table, zero, none},
       {Arg::int64({1, 2}, {0, 5}), table, zero, none},
       {1, 1, Reason::kAbove}},
      {{"index_fill.index", "index_fill_.index"},
       {Arg::int64({-5, 4}), table, zero, none},
       {Arg::int64({-6, 4}), table, zero, none},
       {0, 1, Reason::kBelow}},
      {{"take.index", "put.index", "put_.index"},
       {Arg::int64({-40, 39}), table, none, none},
       {Arg::int64({0, 40}), table, none, none},
       {1, 1, Reason::kAbove}},
      {{"max_unpool2d.indices", "max_unpool3d.indices"},
       {Arg::int64({1, 1, 2}, {0, 5}), Arg::sizes({2, 3}), none, none},
       {Arg::int64({1, 1, 2}, {0, 6}), Arg::sizes({2, 3}), none, none},
       {1, 1, Reason::kAbove}},
      {{"repeat_interleave.repeats"},
       {Arg::int64({0, 3}), Arg::integer(3), none, none},
       {Arg::int64({0, -3}), none, none, none},
       {1, 1, Reason::kBelow}},
      {{"repeat_interleave.repeats"},
       {Arg::int64({0, 3}), none, none, none},
       {Arg::int64({0, 3, 1}), Arg::integer(3), none, none},
       {2, 1, Reason::kTooMany}},
      {{"repeat_interleave.repeats"},
       {Arg::int64({2, 2}), Arg::integer(4), none, none},
       {Arg::int64({0, 3, 1}), Arg::integer(5), none, none},
       {2, 1, Reason::kTooFew}},
      {{"segment_reduce.lengths", "_segment_reduce_backward.lengths"},
       {Arg::int64({2, 2}, {2, 3, 0, 4}), Arg::shape({2, 5, 3}), Arg::integer(1), none},
       {Arg::int64({2, 2}, {2, 3, 2, 4}), Arg::shape({2, 5, 3}), Arg::integer(-2), none},
       {3, 1, Reason::kTooMany}},
      {{"segment_reduce.offsets", "_segment_reduce_backward.offsets"},
       {Arg::int64({1, 3, 3, 5}), Arg::shape({5, 3}), zero, none},
       {Arg::int64({0, 3, 2, 6}), Arg::shape({5, 3}), zero, none},
       {2, 2, Reason::kNotAscending}},
      {{"_grouped_mm.offs", "_scaled_grouped_mm.offs"},
       {Arg::tensor<std::int32_t>({2}, {2, 4}, TRAPLINE_INT32), Arg::shape({4, 8}), Arg::shape({2, 8, 8}),
        none},
       {Arg::tensor<std::int32_t>({2}, {2, 9}, TRAPLINE_INT32), Arg::shape({2, 8, 8}), Arg::shape({8, 8}),
        none},
       {1, 1, Reason::kAbove}},
      {{"_validate_compressed_sparse_indices.compressed_idx"},
       {Arg::int64({2, 3}, {0, 1, 2, 0, 2, 2}), Arg::integer(2), none, Arg::integer(3)},
       {Arg::int64({2, 3}, {0, 1, 2, 0, -1, 2}), Arg::integer(2), none, Arg::integer(3)},
       {4, 1, Reason::kNotAscending}},
      {{"_validate_compressed_sparse_indices.plain_idx"},
       {Arg::int64({0, 2}), Arg::integer(3), none, none},
       {Arg::int64({0, 3}), Arg::integer(3), none, none},
       {1, 1, Reason::kAbove}},
      {{"masked_scatter.mask", "masked_scatter_.mask"},
       {bits({3}, {1, 0, 1}), Arg::shape({2}), none, Arg::shape({3})},
       {bits({3}, {1, 0, 1}), Arg::shape({1}), none, Arg::shape({3})},
       {2, 1, Reason::kTooMany}},
      {{"lu_unpack.LU_pivots", "linalg_lu_solve.pivots"},
       {Arg::tensor<std::int32_t>({3}, {3, 1, 3}, TRAPLINE_INT32), Arg::shape({3, 4}), none, none},
       {Arg::tensor<std::int32_t>({3}, {3, 0, 4}, TRAPLINE_INT32), Arg::shape({3, 4}), none, none},
       {1, 2, Reason::kBelow}},
      {{"multilabel_margin_loss_forward.target", "multilabel_margin_loss_backward.target"},
       {Arg::int64({2, 3}, {2, -1, 9, 0, 1, 2}), Arg::shape({2, 3}), none, none},
       {Arg::int64({2, 3}, {2, -1, 9, 0, 3, -2}), Arg::shape({2, 3}), none, none},
       {4, 2, Reason::kAbove}},
      {{"_embedding_bag_dense_backward.indices"},
       {Arg::int64({0, 4}), Arg::integer(5), none, none},
       {Arg::int64({0, 5}), Arg::integer(5), none, none},
       {1, 1, Reason::kAbove}},
      {{"fractional_max_pool2d_backward.indices"},
       {Arg::int64({1, 1, 2}, {0, 5}), Arg::shape({4, 2, 3}), Arg::sizes({1, 1}), none},
       {Arg::int64({1, 1, 2}, {0, 6}), Arg::shape({4, 2, 3}), Arg::sizes({1, 1}), none},
       {1, 1, Reason::kAbove}},
      {{"fractional_max_pool3d_backward.indices"},
       {Arg::int64({1, 1, 2}, {0, 23}), Arg::shape({4, 2, 3}), Arg::sizes({1, 1, 1}), none},
       {Arg::int64({1, 1, 2}, {0, 24}), Arg::shape({4, 2, 3}), Arg::sizes({1, 1, 1}), none},
       {1, 1, Reason::kAbove}},
      {{"binary_cross_entropy.self", "binary_cross_entropy.target", "bernoulli.p", "bernoulli_.p",
        "bernoulli.out.self", "binomial.prob"},
       {Arg::float32({0.0F, -0.0F, 1.0F}), none, none, none},
       {Arg::float32({0.5F, 1.5F, kNan}), none, none, none},
       {1, 2, Reason::kAbove}},
      {{"multinomial.self"},
       {Arg::float32({2, 2}, {0.0F, 1.0F, 3.0F, 0.0F}), none, none, none},
       {Arg::float32({2, 2}, {0.0F, 1.0F, 0.0F, 0.0F}), none, none, none},
       {2, 1, Reason::kZeroSum}},
      {{"poisson.self", "binomial.count"},
       {Arg::float32({0.0F, 7.0F}), none, none, none},
       {Arg::float32({0.0F, -7.0F}), none, none, none},
       {1, 1, Reason::kNegative}},
      {{"copy_.src"},
       {Arg::float32({0.5F, -3.0F}), Arg::int64({0, 0}), none, none},
       {Arg::float32({0.5F, kNan}), Arg::int64({0, 0}), none, none},
       {1, 1, Reason::kNan}},
  };
}

TEST(Rows, EachAcceptsAGoodCallAndFindsTheFirstBadElement) {
  for (const RowCase& row : row_cases()) {
    for (const std::string& id : row.ids) {
      trapline_scan scan{};
      EXPECT_EQ(row.good.check(id.c_str(), scan), TRAPLINE_OK) << id;
      EXPECT_EQ(scan.bad, 0) << id;
      EXPECT_GT(scan.total, 0) << id;
      EXPECT_EQ(row.bad.check(id.c_str(), scan), TRAPLINE_VIOLATED) << id;
      EXPECT_EQ(scan.first, row.expected.first) << id;
      EXPECT_EQ(scan.bad, row.expected.bad) << id;
      EXPECT_EQ(scan.reason, static_cast<int>(row.expected.reason)) << id;
    }
  }
}

TEST(Rows, NoneIsLeftOut) {
  std::set<std::string> tested;
  for (const RowCase& row : row_cases()) tested.insert(row.ids.begin(), row.ids.end());
  std::set<std::string> all;
  for (const Contract& contract : contracts()) {
    EXPECT_TRUE(all.insert(std::string(contract.id)).second) << contract.id << " is there twice";
    EXPECT_NE(contract.op.find("::"), std::string_view::npos) << contract.op;
    EXPECT_TRUE(contract.op.ends_with(contract.id.substr(0, contract.id.rfind('.')))) << contract.op;
    EXPECT_TRUE(contract.id.ends_with("." + std::string(contract.argument))) << contract.id;
    EXPECT_EQ(contract.also == Also::kNone, contract.also_arg.empty()) << contract.id;
    EXPECT_TRUE(info(contract.cause).code.starts_with("TL1") || contract.cause == Cause::kShapeMismatch)
        << contract.id;
    EXPECT_EQ(find_contract(contract.id), &contract);
    for (const std::string_view text : {contract.id, contract.op, contract.argument, contract.bound_arg,
                                        contract.dim_arg, contract.also_arg, contract.public_op}) {
      ASSERT_NE(text.data(), nullptr) << contract.id << ": the C interface hands it out";
      EXPECT_EQ(text.data()[text.size()], '\0');
    }
  }
  EXPECT_EQ(tested, all);
}

TEST(Rows, UnknownIdIsNoRow) { EXPECT_EQ(find_contract("embedding.weight"), nullptr); }

}  // namespace
}  // namespace trapline::test
