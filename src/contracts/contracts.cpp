#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "contracts/contract.hpp"

namespace trapline {
namespace {

// What the sizes of a call say: the bound, of which argument, and what says which of its dimensions.
struct Limit {
  Bound bound = Bound::kNone;
  std::string_view arg = "";
  std::string_view dim_arg = "";
};

// One more argument that the predicate needs, and what for.
struct Besides {
  Also also = Also::kNone;
  std::string_view arg = "";
};

// Several operations may share a row: functional and in-place forms, forward and backward. Their names are
// full and separated by blanks; the overloads are found from their schemas. "aten::bernoulli.out" is one
// overload alone. Arguments have the names of the schema.
struct Row {  // NOLINT(clang-analyzer-optin.performance.Padding): in the order of a row
  std::string_view ops;
  std::string_view argument;
  Predicate predicate;
  Dtypes dtypes;
  Limit bound{};
  Besides also{};
  std::string_view public_op;
  std::string_view public_argument;
  Cause cause;
  OnCpu on_cpu = OnCpu::kRefuses;
  bool device_assert = true;
  bool composite = false;
  bool remember = false;
  std::optional<Heal> heal{};  // where it is not what the predicate has
};

constexpr Limit size_of(std::string_view arg, std::string_view dim = "") {
  return {Bound::kSizeOfDim, arg, dim};
}
constexpr Limit classes_of(std::string_view arg) { return {Bound::kClasses, arg, ""}; }
constexpr Limit last_dim_of(std::string_view arg) { return {Bound::kLastDim, arg, ""}; }
constexpr Limit numel_of(std::string_view arg) { return {Bound::kNumel, arg, ""}; }
constexpr Limit integer(std::string_view arg) { return {Bound::kInteger, arg, ""}; }
constexpr Limit product_of(std::string_view arg) { return {Bound::kProduct, arg, ""}; }
constexpr Limit matrix_rows_of(std::string_view arg) { return {Bound::kMatrixRows, arg, ""}; }
constexpr Limit plane_of(std::string_view arg, std::string_view like) { return {Bound::kSpatial, arg, like}; }
constexpr Limit groups_of(std::string_view arg, std::string_view other) {
  return {Bound::kGrouped, arg, other};
}
// No bound: the sizes and the dtype of that argument say whether anything is read, or becomes an integer.
constexpr Limit where(std::string_view arg) { return {Bound::kNone, arg, ""}; }

constexpr Besides allows(std::string_view arg) { return {Also::kAllowed, arg}; }
constexpr Besides lengths(std::string_view arg) { return {Also::kLengths, arg}; }
constexpr Besides flag(std::string_view arg) { return {Also::kFlag, arg}; }
constexpr Besides broadcast_with(std::string_view arg) { return {Also::kBroadcast, arg}; }
constexpr Besides step(std::string_view arg) { return {Also::kStep, arg}; }

using enum Predicate;
using enum Cause;
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
    {.ops = "aten::nll_loss_forward aten::nll_loss2d_forward",
     .argument = "target", .predicate = kIndex, .dtypes = kInt64OrUInt8, .bound = classes_of("self"),
     .also = allows("ignore_index"),
     .public_op = "cross_entropy", .public_argument = "target", .cause = kLabelOutOfRange},
    // With reduction='none' the CPU writes the gradient wherever the label says.
    {.ops = "aten::nll_loss_backward aten::nll_loss2d_backward",
     .argument = "target", .predicate = kIndex, .dtypes = kInt64OrUInt8, .bound = classes_of("self"),
     .also = allows("ignore_index"),
     .public_op = "cross_entropy", .public_argument = "target", .cause = kLabelOutOfRange, .on_cpu = kSilent},
    {.ops = "aten::multi_margin_loss aten::multi_margin_loss_backward",
     .argument = "target", .predicate = kIndex, .dtypes = kInt64, .bound = classes_of("self"),
     .public_op = "multi_margin_loss", .public_argument = "target", .cause = kLabelOutOfRange},
    // The CPU rejects a label anywhere in the row, CUDA looks at none.
    {.ops = "aten::multilabel_margin_loss_forward aten::multilabel_margin_loss_backward",
     .argument = "target", .predicate = kEndedIndex, .dtypes = kInt64, .bound = last_dim_of("self"),
     .public_op = "multilabel_margin_loss", .public_argument = "target", .cause = kLabelOutOfRange,
     .device_assert = false},
    {.ops = "aten::one_hot",
     .argument = "self", .predicate = kIndex, .dtypes = kInt64, .bound = integer("num_classes"),
     .public_op = "one_hot", .public_argument = "tensor", .cause = kLabelOutOfRange, .composite = true},
    // The kernel reads log_probs at the label without looking: no assert on any backend.
    {.ops = "aten::_ctc_loss aten::_ctc_loss_backward",
     .argument = "targets", .predicate = kPaddedIndex, .dtypes = kAnyInteger,
     .bound = last_dim_of("log_probs"), .also = lengths("target_lengths"),
     .public_op = "ctc_loss", .public_argument = "targets", .cause = kLabelOutOfRange,
     .on_cpu = kSilent, .device_assert = false},
    {.ops = "aten::bincount", .argument = "self", .predicate = kNonNegative, .dtypes = kAnyInteger,
     .public_op = "bincount", .public_argument = "input", .cause = kIndexOutOfRange, .device_assert = false},

    // Ids of a table.
    {.ops = "aten::embedding",
     .argument = "indices", .predicate = kIndex, .dtypes = kInt32Or64, .bound = size_of("weight"),
     .public_op = "embedding", .public_argument = "input", .cause = kEmbeddingIndexOutOfRange},
    // The CPU selects rows, and there -1 is the last one.
    {.ops = "aten::embedding_renorm aten::embedding_renorm_",
     .argument = "indices", .predicate = kIndex, .dtypes = kInt32Or64, .bound = size_of("self"),
     .public_op = "embedding", .public_argument = "input", .cause = kEmbeddingIndexOutOfRange,
     .on_cpu = kPartly, .device_assert = false},
    {.ops = "aten::embedding_dense_backward",
     .argument = "indices", .predicate = kIndex, .dtypes = kInt32Or64, .bound = integer("num_weights"),
     .also = allows("padding_idx"),
     .public_op = "embedding", .public_argument = "input", .cause = kEmbeddingIndexOutOfRange,
     .on_cpu = kSilent, .device_assert = false},
    {.ops = "aten::_embedding_bag aten::_embedding_bag_forward_only",
     .argument = "indices", .predicate = kIndex, .dtypes = kInt32Or64, .bound = size_of("weight"),
     .public_op = "embedding_bag", .public_argument = "input", .cause = kEmbeddingIndexOutOfRange},
    {.ops = "aten::_embedding_bag_dense_backward",
     .argument = "indices", .predicate = kIndex, .dtypes = kInt32Or64, .bound = integer("num_weights"),
     .public_op = "embedding_bag", .public_argument = "input", .cause = kEmbeddingIndexOutOfRange,
     .on_cpu = kSilent, .device_assert = false},
    {.ops = "aten::_embedding_bag_per_sample_weights_backward",
     .argument = "indices", .predicate = kIndex, .dtypes = kInt32Or64, .bound = size_of("weight"),
     .public_op = "embedding_bag", .public_argument = "input", .cause = kEmbeddingIndexOutOfRange,
     .on_cpu = kSilent, .device_assert = false},
    // The first and the last are compared before anything is read. Those between them are where reading starts.
    {.ops = "aten::_embedding_bag aten::_embedding_bag_forward_only",
     .argument = "offsets", .predicate = kOffsets, .dtypes = kInt32Or64, .bound = numel_of("indices"),
     .public_op = "embedding_bag", .public_argument = "offsets", .cause = kIndexOutOfRange, .on_cpu = kAtEnds},

    // Indexing. x[index] and its family wrap negative values; gather, scatter and index_select do not.
    {.ops = "aten::index aten::_unsafe_index",
     .argument = "indices", .predicate = kIndexList, .dtypes = kInt32Or64, .bound = size_of("self"),
     .public_op = "x[index]", .public_argument = "index", .cause = kIndexOutOfRange},
    {.ops = "aten::index_put aten::index_put_ aten::_index_put_impl aten::_index_put_impl_ "
            "aten::_unsafe_index_put",
     .argument = "indices", .predicate = kIndexList, .dtypes = kInt32Or64, .bound = size_of("self"),
     .public_op = "x[index] = value", .public_argument = "index", .cause = kIndexOutOfRange},
    {.ops = "aten::index_select",
     .argument = "index", .predicate = kIndex, .dtypes = kInt32Or64, .bound = size_of("self", "dim"),
     .public_op = "index_select", .public_argument = "index", .cause = kIndexOutOfRange},
    {.ops = "aten::gather",
     .argument = "index", .predicate = kIndex, .dtypes = kInt32Or64, .bound = size_of("self", "dim"),
     .public_op = "gather", .public_argument = "index", .cause = kIndexOutOfRange},
    {.ops = "aten::scatter aten::scatter_",
     .argument = "index", .predicate = kIndex, .dtypes = kInt32Or64, .bound = size_of("self", "dim"),
     .public_op = "scatter", .public_argument = "index", .cause = kIndexOutOfRange},
    {.ops = "aten::scatter_add aten::scatter_add_",
     .argument = "index", .predicate = kIndex, .dtypes = kInt32Or64, .bound = size_of("self", "dim"),
     .public_op = "scatter_add", .public_argument = "index", .cause = kIndexOutOfRange},
    {.ops = "aten::scatter_reduce aten::scatter_reduce_",
     .argument = "index", .predicate = kIndex, .dtypes = kInt32Or64, .bound = size_of("self", "dim"),
     .public_op = "scatter_reduce", .public_argument = "index", .cause = kIndexOutOfRange},
    {.ops = "aten::index_add aten::index_add_",
     .argument = "index", .predicate = kIndex, .dtypes = kInt32Or64, .bound = size_of("self", "dim"),
     .public_op = "index_add", .public_argument = "index", .cause = kIndexOutOfRange},
    {.ops = "aten::index_reduce aten::index_reduce_",
     .argument = "index", .predicate = kIndex, .dtypes = kInt32Or64, .bound = size_of("self", "dim"),
     .public_op = "index_reduce", .public_argument = "index", .cause = kIndexOutOfRange},
    {.ops = "aten::index_copy aten::index_copy_",
     .argument = "index", .predicate = kIndex, .dtypes = kInt64, .bound = size_of("self", "dim"),
     .public_op = "index_copy", .public_argument = "index", .cause = kIndexOutOfRange},
    {.ops = "aten::index_fill aten::index_fill_",
     .argument = "index", .predicate = kWrappedIndex, .dtypes = kInt64, .bound = size_of("self", "dim"),
     .public_op = "index_fill", .public_argument = "index", .cause = kIndexOutOfRange},
    {.ops = "aten::take",
     .argument = "index", .predicate = kWrappedIndex, .dtypes = kInt64, .bound = numel_of("self"),
     .public_op = "take", .public_argument = "index", .cause = kIndexOutOfRange},
    {.ops = "aten::put aten::put_",
     .argument = "index", .predicate = kWrappedIndex, .dtypes = kInt64, .bound = numel_of("self"),
     .public_op = "put_", .public_argument = "index", .cause = kIndexOutOfRange},
    {.ops = "aten::max_unpool2d",
     .argument = "indices", .predicate = kIndex, .dtypes = kInt64, .bound = product_of("output_size"),
     .public_op = "max_unpool2d", .public_argument = "indices", .cause = kIndexOutOfRange},
    {.ops = "aten::max_unpool3d",
     .argument = "indices", .predicate = kIndex, .dtypes = kInt64, .bound = product_of("output_size"),
     .public_op = "max_unpool3d", .public_argument = "indices", .cause = kIndexOutOfRange},
    {.ops = "aten::fractional_max_pool2d_backward",
     .argument = "indices", .predicate = kIndex, .dtypes = kInt64, .bound = plane_of("self", "output_size"),
     .public_op = "fractional_max_pool2d", .public_argument = "indices", .cause = kIndexOutOfRange},
    {.ops = "aten::fractional_max_pool3d_backward",
     .argument = "indices", .predicate = kIndex, .dtypes = kInt64, .bound = plane_of("self", "output_size"),
     .public_op = "fractional_max_pool3d", .public_argument = "indices", .cause = kIndexOutOfRange},

    // Counts, lengths and ends: each alone, and what they add up to.
    {.ops = "aten::repeat_interleave",
     .argument = "repeats", .predicate = kCounts, .dtypes = kInt32Or64, .bound = integer("output_size"),
     .public_op = "repeat_interleave", .public_argument = "repeats", .cause = kIndexOutOfRange},
    {.ops = "aten::segment_reduce aten::_segment_reduce_backward",
     .argument = "lengths", .predicate = kLengths, .dtypes = kInt32Or64, .bound = size_of("data", "axis"),
     .public_op = "segment_reduce", .public_argument = "lengths", .cause = kIndexOutOfRange, .on_cpu = kSilent},
    {.ops = "aten::segment_reduce aten::_segment_reduce_backward",
     .argument = "offsets", .predicate = kEnds, .dtypes = kInt32Or64, .bound = size_of("data", "axis"),
     .public_op = "segment_reduce", .public_argument = "offsets", .cause = kIndexOutOfRange,
     .on_cpu = kSilent, .device_assert = false},
    {.ops = "aten::_grouped_mm aten::_scaled_grouped_mm",
     .argument = "offs", .predicate = kEnds, .dtypes = kInt32, .bound = groups_of("self", "mat2"),
     .public_op = "grouped_mm", .public_argument = "offs", .cause = kIndexOutOfRange, .on_cpu = kSilent},
    {.ops = "aten::masked_scatter aten::masked_scatter_",
     .argument = "mask", .predicate = kMaskCount, .dtypes = kMask, .bound = numel_of("source"),
     .also = broadcast_with("self"),
     .public_op = "masked_scatter", .public_argument = "mask", .cause = kShapeMismatch},
    // Only with check_invariants=True. A message that its device-side assert swallows. The assert looks at both
    // arguments together (the last end is nnz, and what each row holds ascends without repeating itself), so there is
    // no harmless value for an element of one of them.
    {.ops = "aten::_validate_compressed_sparse_indices",
     .argument = "compressed_idx", .predicate = kCompressed, .dtypes = kInt32Or64, .bound = integer("nnz"),
     .also = step("dim"),
     .public_op = "sparse_compressed_tensor", .public_argument = "compressed_indices",
     .cause = kIndexOutOfRange,
     .heal = Heal::kNone},
    {.ops = "aten::_validate_compressed_sparse_indices",
     .argument = "plain_idx", .predicate = kIndex, .dtypes = kInt32Or64, .bound = integer("dim"),
     .public_op = "sparse_compressed_tensor", .public_argument = "plain_indices", .cause = kIndexOutOfRange,
     .heal = Heal::kNone},
    // The CPU looks at pivots; CUDA swaps rows by them blindly.
    {.ops = "aten::lu_unpack",
     .argument = "LU_pivots", .predicate = kPivots, .dtypes = kInt32, .bound = matrix_rows_of("LU_data"),
     .also = flag("unpack_pivots"),
     .public_op = "lu_unpack", .public_argument = "LU_pivots", .cause = kIndexOutOfRange,
     .device_assert = false},
    {.ops = "aten::linalg_lu_solve",
     .argument = "pivots", .predicate = kPivots, .dtypes = kInt32, .bound = matrix_rows_of("LU"),
     .public_op = "linalg.lu_solve", .public_argument = "pivots", .cause = kIndexOutOfRange,
     .device_assert = false},

    // Loss inputs and probabilities. The gradient of binary_cross_entropy is defined everywhere.
    {.ops = "aten::binary_cross_entropy", .argument = "self", .predicate = kUnitInterval, .dtypes = kFloating,
     .public_op = "binary_cross_entropy", .public_argument = "input", .cause = kLossInputOutOfRange},
    {.ops = "aten::binary_cross_entropy", .argument = "target", .predicate = kUnitInterval, .dtypes = kFloating,
     .public_op = "binary_cross_entropy", .public_argument = "target", .cause = kLossInputOutOfRange},
    {.ops = "aten::multinomial", .argument = "self", .predicate = kProbabilityRows, .dtypes = kFloating,
     .public_op = "multinomial", .public_argument = "input", .cause = kInvalidProbability},
    // bernoulli(self) draws by bernoulli_(p=self), and its out= alone. `self` of the overloads with p gives nothing
    // but the shape.
    {.ops = "aten::bernoulli.out", .argument = "self", .predicate = kUnitInterval, .dtypes = kFloating,
     .public_op = "bernoulli", .public_argument = "input", .cause = kInvalidProbability},
    {.ops = "aten::bernoulli aten::bernoulli_",
     .argument = "p", .predicate = kUnitInterval, .dtypes = kFloating, .bound = where("self"),
     .public_op = "bernoulli", .public_argument = "p", .cause = kInvalidProbability},
    {.ops = "aten::poisson", .argument = "self", .predicate = kNonNegative, .dtypes = kFloating,
     .public_op = "poisson", .public_argument = "input", .cause = kInvalidProbability},
    // Wrong numbers without an error on every backend.
    {.ops = "aten::binomial",
     .argument = "count", .predicate = kNonNegative, .dtypes = kFloating, .bound = where("prob"),
     .public_op = "binomial", .public_argument = "count", .cause = kInvalidProbability,
     .on_cpu = kSilent, .device_assert = false},
    {.ops = "aten::binomial",
     .argument = "prob", .predicate = kUnitInterval, .dtypes = kFloating, .bound = where("count"),
     .public_op = "binomial", .public_argument = "prob", .cause = kInvalidProbability,
     .on_cpu = kSilent, .device_assert = false},

    // x.long(): NaN becomes INT64_MIN without a word, and some later operation takes the blame.
    {.ops = "aten::copy_",
     .argument = "src", .predicate = kFiniteToInteger, .dtypes = kFloating, .bound = where("self"),
     .public_op = "cast to integer", .public_argument = "input", .cause = kNanToIndex,
     .device_assert = false, .remember = true},
};

// Data at rest: the arguments of the functions trapline.check_*, and what `trapline check` finds in files.
constexpr Row kDataRows[] = {
    {.ops = "check_labels",
     .argument = "labels", .predicate = kIndex, .dtypes = kAnyInteger, .bound = integer("num_classes"),
     .also = allows("ignore_index"),
     .public_op = "check_labels", .public_argument = "labels", .cause = kLabelOutOfRange},
    {.ops = "check_ids",
     .argument = "ids", .predicate = kIndex, .dtypes = kAnyInteger, .bound = integer("num_embeddings"),
     .public_op = "check_ids", .public_argument = "ids", .cause = kEmbeddingIndexOutOfRange},
    {.ops = "check_probs", .argument = "probs", .predicate = kProbabilityRows, .dtypes = kFloating,
     .public_op = "check_probs", .public_argument = "probs", .cause = kInvalidProbability},
    // A missing value where an integer is wanted: the cast that comes next makes a number of it.
    {.ops = "check_integers", .argument = "values", .predicate = kFiniteToInteger, .dtypes = kFloating,
     .public_op = "check_integers", .public_argument = "values", .cause = kNanToIndex,
     .device_assert = false, .remember = true},
    {.ops = "check_finite", .argument = "values", .predicate = kFiniteToInteger, .dtypes = kFloating,
     .public_op = "check_finite", .public_argument = "values", .cause = kNonFiniteValue,
     .device_assert = false, .remember = true},
};
// clang-format on

struct Table {
  std::deque<std::string> strings;  // ids and names; a deque never moves them
  std::vector<Contract> rows;       // the guard's
  std::vector<Contract> data_rows;
  std::unordered_map<std::string_view, const Contract*> by_id;
};

std::string_view keep(Table& table, std::string text) { return table.strings.emplace_back(std::move(text)); }

// Operations of PyTorch's own library go without its name: "embedding.indices".
std::string id_of(const std::string& op, std::string_view argument) {
  constexpr std::string_view kAten = "aten::";
  return (op.starts_with(kAten) ? op.substr(kAten.size()) : op) + "." + std::string(argument);
}

void expand(Table& table, std::span<const Row> from, std::vector<Contract>& to) {
  for (const Row& row : from) {
    for (std::string_view rest = row.ops; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      const std::string op(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      to.push_back({.id = keep(table, id_of(op, row.argument)),
                    .op = keep(table, op),
                    .argument = row.argument,
                    .bound_arg = row.bound.arg,
                    .dim_arg = row.bound.dim_arg,
                    .also_arg = row.also.arg,
                    .public_op = row.public_op,
                    .public_argument = row.public_argument,
                    .predicate = row.predicate,
                    .bound = row.bound.bound,
                    .also = row.also.also,
                    .heal = row.heal.value_or(info(row.predicate).heal),
                    .dtypes = row.dtypes,
                    .cause = row.cause,
                    .on_cpu = row.on_cpu,
                    .device_assert = row.device_assert,
                    .composite = row.composite,
                    .remember = row.remember});
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
