#include <algorithm>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "contracts/contract.hpp"

namespace trapline {
namespace {

// Several ATen base names may share a row: functional and in-place forms, forward and backward. `also`, `dim`
// and the bound are argument names; the operation's overloads are found from its schema. A name with a dot is
// one overload alone.
struct Row {  // NOLINT(clang-analyzer-optin.performance.Padding): in the order of a row
  std::string_view ops;
  std::string_view argument;
  Predicate predicate;
  Dtypes dtypes;
  Bound bound;
  std::string_view bound_arg;
  std::string_view dim_arg;
  std::string_view also_arg;
  std::string_view public_op;
  std::string_view public_argument;
  Cause cause;
  OnCpu on_cpu = OnCpu::kRefuses;
  bool device_assert = true;
  bool composite = false;
  bool remember = false;
  bool waits = false;
};

using enum Predicate;
using enum Bound;
using enum Cause;
constexpr auto kRefuses = OnCpu::kRefuses;
constexpr auto kPartly = OnCpu::kPartly;
constexpr auto kAtEnds = OnCpu::kAtEnds;
constexpr auto kSilent = OnCpu::kSilent;
constexpr auto kInt64 = Dtypes::kInt64;
constexpr auto kInt32Or64 = Dtypes::kInt32Or64;
constexpr auto kInt64OrUInt8 = Dtypes::kInt64OrUInt8;
constexpr auto kAnyInteger = Dtypes::kInteger;
constexpr auto kFloating = Dtypes::kFloating;
constexpr auto kInt32 = Dtypes::kInt32;
constexpr auto kMask = Dtypes::kBool;

// Each row was compared with the schemas of torch 2.13.0 and with what its CPU operation accepts
// (tests/guard/test_rows.py runs them again).
// clang-format off
constexpr Row kRows[] = {
    // Class labels.
    {"nll_loss_forward nll_loss2d_forward", "target", kIndex, kInt64OrUInt8, kClasses, "self", "", "ignore_index",
     "cross_entropy", "target", kLabelOutOfRange},
    // With reduction='none' the CPU writes the gradient wherever the label says.
    {"nll_loss_backward nll_loss2d_backward", "target", kIndex, kInt64OrUInt8, kClasses, "self", "", "ignore_index",
     "cross_entropy", "target", kLabelOutOfRange, kSilent},
    {"multi_margin_loss multi_margin_loss_backward", "target", kIndex, kInt64, kClasses, "self", "", "",
     "multi_margin_loss", "target", kLabelOutOfRange},
    // The CPU rejects a label anywhere in the row, CUDA looks at none.
    {"multilabel_margin_loss_forward multilabel_margin_loss_backward", "target", kEndedIndex, kInt64, kLastDim, "self",
     "", "", "multilabel_margin_loss", "target", kLabelOutOfRange, kRefuses, false},
    {"one_hot", "self", kIndex, kInt64, kInteger, "num_classes", "", "",
     "one_hot", "tensor", kLabelOutOfRange, kRefuses, true, true},
    // The kernel reads log_probs at the label without looking: no assert on any backend.
    {"_ctc_loss _ctc_loss_backward", "targets", kPaddedIndex, kAnyInteger, kLastDim, "log_probs", "", "target_lengths",
     "ctc_loss", "targets", kLabelOutOfRange, kSilent, false},
    {"bincount", "self", kNonNegative, kAnyInteger, kNone, "", "", "",
     "bincount", "input", kIndexOutOfRange, kRefuses, false},

    // Ids of a table.
    {"embedding", "indices", kIndex, kInt32Or64, kSizeOfDim, "weight", "", "",
     "embedding", "input", kEmbeddingIndexOutOfRange},
    // The CPU selects rows, and there -1 is the last one.
    {"embedding_renorm embedding_renorm_", "indices", kIndex, kInt32Or64, kSizeOfDim, "self", "", "",
     "embedding", "input", kEmbeddingIndexOutOfRange, kPartly, false},
    {"embedding_dense_backward", "indices", kIndex, kInt32Or64, kInteger, "num_weights", "", "padding_idx",
     "embedding", "input", kEmbeddingIndexOutOfRange, kSilent, false},
    {"_embedding_bag _embedding_bag_forward_only", "indices", kIndex, kInt32Or64, kSizeOfDim, "weight", "", "",
     "embedding_bag", "input", kEmbeddingIndexOutOfRange},
    {"_embedding_bag_dense_backward", "indices", kIndex, kInt32Or64, kInteger, "num_weights", "", "",
     "embedding_bag", "input", kEmbeddingIndexOutOfRange, kSilent, false},
    {"_embedding_bag_per_sample_weights_backward", "indices", kIndex, kInt32Or64, kSizeOfDim, "weight", "", "",
     "embedding_bag", "input", kEmbeddingIndexOutOfRange, kSilent, false},
    // The first and the last are compared before anything is read. Those between them are where reading starts.
    {"_embedding_bag _embedding_bag_forward_only", "offsets", kOffsets, kInt32Or64, kNumel, "indices", "", "",
     "embedding_bag", "offsets", kIndexOutOfRange, kAtEnds},

    // Indexing. x[index] and its family wrap negative values; gather, scatter and index_select do not.
    {"index _unsafe_index", "indices", kIndexList, kInt32Or64, kSizeOfDim, "self", "", "",
     "x[index]", "index", kIndexOutOfRange},
    {"index_put index_put_ _index_put_impl _index_put_impl_ _unsafe_index_put", "indices", kIndexList, kInt32Or64,
     kSizeOfDim, "self", "", "", "x[index] = value", "index", kIndexOutOfRange},
    {"index_select", "index", kIndex, kInt32Or64, kSizeOfDim, "self", "dim", "",
     "index_select", "index", kIndexOutOfRange},
    {"gather", "index", kIndex, kInt32Or64, kSizeOfDim, "self", "dim", "", "gather", "index", kIndexOutOfRange},
    {"scatter scatter_", "index", kIndex, kInt32Or64, kSizeOfDim, "self", "dim", "",
     "scatter", "index", kIndexOutOfRange},
    {"scatter_add scatter_add_", "index", kIndex, kInt32Or64, kSizeOfDim, "self", "dim", "",
     "scatter_add", "index", kIndexOutOfRange},
    {"scatter_reduce scatter_reduce_", "index", kIndex, kInt32Or64, kSizeOfDim, "self", "dim", "",
     "scatter_reduce", "index", kIndexOutOfRange},
    {"index_add index_add_", "index", kIndex, kInt32Or64, kSizeOfDim, "self", "dim", "",
     "index_add", "index", kIndexOutOfRange},
    {"index_reduce index_reduce_", "index", kIndex, kInt32Or64, kSizeOfDim, "self", "dim", "",
     "index_reduce", "index", kIndexOutOfRange},
    {"index_copy index_copy_", "index", kIndex, kInt64, kSizeOfDim, "self", "dim", "",
     "index_copy", "index", kIndexOutOfRange},
    {"index_fill index_fill_", "index", kWrappedIndex, kInt64, kSizeOfDim, "self", "dim", "",
     "index_fill", "index", kIndexOutOfRange},
    {"take", "index", kWrappedIndex, kInt64, kNumel, "self", "", "", "take", "index", kIndexOutOfRange},
    {"put put_", "index", kWrappedIndex, kInt64, kNumel, "self", "", "", "put_", "index", kIndexOutOfRange},
    {"max_unpool2d", "indices", kIndex, kInt64, kProduct, "output_size", "", "",
     "max_unpool2d", "indices", kIndexOutOfRange},
    {"max_unpool3d", "indices", kIndex, kInt64, kProduct, "output_size", "", "",
     "max_unpool3d", "indices", kIndexOutOfRange},
    {"fractional_max_pool2d_backward", "indices", kIndex, kInt64, kSpatial, "self", "", "output_size",
     "fractional_max_pool2d", "indices", kIndexOutOfRange},
    {"fractional_max_pool3d_backward", "indices", kIndex, kInt64, kSpatial, "self", "", "output_size",
     "fractional_max_pool3d", "indices", kIndexOutOfRange},

    // Counts, lengths and ends: each alone, and what they add up to.
    {"repeat_interleave", "repeats", kCounts, kInt32Or64, kInteger, "output_size", "", "",
     "repeat_interleave", "repeats", kIndexOutOfRange},
    {"segment_reduce _segment_reduce_backward", "lengths", kLengths, kInt32Or64, kSizeOfDim, "data", "axis", "",
     "segment_reduce", "lengths", kIndexOutOfRange, kSilent},
    {"segment_reduce _segment_reduce_backward", "offsets", kEnds, kInt32Or64, kSizeOfDim, "data", "axis", "",
     "segment_reduce", "offsets", kIndexOutOfRange, kSilent, false},
    {"_grouped_mm _scaled_grouped_mm", "offs", kEnds, kInt32, kGrouped, "self", "", "mat2",
     "grouped_mm", "offs", kIndexOutOfRange, kSilent},
    {"masked_scatter masked_scatter_", "mask", kMaskCount, kMask, kNumel, "source", "", "self",
     "masked_scatter", "mask", kShapeMismatch},
    // Only with check_invariants=True. A message that its device-side assert swallows. The assert looks at both
    // arguments together (the last end is nnz, and what each row holds ascends without repeating itself), so there is
    // no harmless value for an element of one of them.
    {"_validate_compressed_sparse_indices", "compressed_idx", kCompressed, kInt32Or64, kInteger, "nnz", "", "dim",
     "sparse_compressed_tensor", "compressed_indices", kIndexOutOfRange, kRefuses, true, false, false, true},
    {"_validate_compressed_sparse_indices", "plain_idx", kIndex, kInt32Or64, kInteger, "dim", "", "",
     "sparse_compressed_tensor", "plain_indices", kIndexOutOfRange, kRefuses, true, false, false, true},
    // The CPU looks at pivots; CUDA swaps rows by them blindly.
    {"lu_unpack", "LU_pivots", kPivots, kInt32, kMatrixRows, "LU_data", "", "unpack_pivots",
     "lu_unpack", "LU_pivots", kIndexOutOfRange, kRefuses, false},
    {"linalg_lu_solve", "pivots", kPivots, kInt32, kMatrixRows, "LU", "", "",
     "linalg.lu_solve", "pivots", kIndexOutOfRange, kRefuses, false},

    // Loss inputs and probabilities. The gradient of binary_cross_entropy is defined everywhere.
    {"binary_cross_entropy", "self", kUnitInterval, kFloating, kNone, "", "", "",
     "binary_cross_entropy", "input", kLossInputOutOfRange},
    {"binary_cross_entropy", "target", kUnitInterval, kFloating, kNone, "", "", "",
     "binary_cross_entropy", "target", kLossInputOutOfRange},
    {"multinomial", "self", kProbabilityRows, kFloating, kNone, "", "", "",
     "multinomial", "input", kInvalidProbability},
    // bernoulli(self) draws by bernoulli_(p=self), and its out= alone. `self` of the overloads with p gives nothing
    // but the shape.
    {"bernoulli.out", "self", kUnitInterval, kFloating, kNone, "", "", "",
     "bernoulli", "input", kInvalidProbability},
    {"bernoulli bernoulli_", "p", kUnitInterval, kFloating, kNone, "self", "", "",
     "bernoulli", "p", kInvalidProbability},
    {"poisson", "self", kNonNegative, kFloating, kNone, "", "", "", "poisson", "input", kInvalidProbability},
    // Wrong numbers without an error on every backend.
    {"binomial", "count", kNonNegative, kFloating, kNone, "prob", "", "",
     "binomial", "count", kInvalidProbability, kSilent, false},
    {"binomial", "prob", kUnitInterval, kFloating, kNone, "count", "", "",
     "binomial", "prob", kInvalidProbability, kSilent, false},

    // x.long(): NaN becomes INT64_MIN without a word, and some later operation takes the blame.
    {"copy_", "src", kFiniteToInteger, kFloating, kNone, "self", "", "",
     "cast to integer", "input", kNanToIndex, kRefuses, false, false, true},
};

// Data at rest: the arguments of the functions trapline.check_*, and what `trapline check` finds in files.
constexpr Row kDataRows[] = {
    {"check_labels", "labels", kIndex, kAnyInteger, kInteger, "num_classes", "", "ignore_index",
     "check_labels", "labels", kLabelOutOfRange},
    {"check_ids", "ids", kIndex, kAnyInteger, kInteger, "num_embeddings", "", "",
     "check_ids", "ids", kEmbeddingIndexOutOfRange},
    {"check_probs", "probs", kProbabilityRows, kFloating, kNone, "", "", "",
     "check_probs", "probs", kInvalidProbability},
    // A missing value where an integer is wanted: the cast that comes next makes a number of it.
    {"check_integers", "values", kFiniteToInteger, kFloating, kNone, "", "", "",
     "check_integers", "values", kNanToIndex, kRefuses, false, false, true},
    {"check_finite", "values", kFiniteToInteger, kFloating, kNone, "", "", "",
     "check_finite", "values", kNonFiniteValue, kRefuses, false, false, true},
};
// clang-format on

struct Table {
  std::deque<std::string> strings;  // ids and base names; a deque never moves them
  std::vector<Contract> rows;       // the guard's
  std::vector<Contract> data_rows;
  std::unordered_map<std::string_view, const Contract*> by_id;
};

std::string_view keep(Table& table, std::string text) { return table.strings.emplace_back(std::move(text)); }

void expand(Table& table, std::span<const Row> from, std::vector<Contract>& to) {
  for (const Row& row : from) {
    for (std::string_view rest = row.ops; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      const std::string op(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      to.push_back({.id = keep(table, op + "." + std::string(row.argument)),
                    .op = keep(table, op),
                    .argument = row.argument,
                    .bound_arg = row.bound_arg,
                    .dim_arg = row.dim_arg,
                    .also_arg = row.also_arg,
                    .public_op = row.public_op,
                    .public_argument = row.public_argument,
                    .predicate = row.predicate,
                    .bound = row.bound,
                    .dtypes = row.dtypes,
                    .cause = row.cause,
                    .on_cpu = row.on_cpu,
                    .device_assert = row.device_assert,
                    .composite = row.composite,
                    .remember = row.remember,
                    .waits = row.waits});
    }
  }
}

Table expand() {
  Table table;
  expand(table, kRows, table.rows);
  expand(table, kDataRows, table.data_rows);
  for (const Contract& row : table.rows) table.by_id.emplace(row.id, &row);
  for (const Contract& row : table.data_rows) table.by_id.emplace(row.id, &row);
  return table;
}

const Table& table() {
  // Leaked on purpose: hooks of the user's process may still look at it while the process ends.
  static const Table* const kTable = new Table(expand());
  return *kTable;
}

}  // namespace

std::span<const Contract> data_contracts() { return table().data_rows; }

std::span<const Contract> contracts() { return table().rows; }

const Contract* find_contract(std::string_view id) {
  const auto found = table().by_id.find(id);
  return found == table().by_id.end() ? nullptr : found->second;
}

}  // namespace trapline
