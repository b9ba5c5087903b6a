// Host IndexErrors: wrong before any kernel runs, on the GPU as on the CPU.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/host/case.hpp"
#include "diagnose/host/rows.hpp"

namespace trapline::diagnose {
namespace {

constexpr auto kIndex = Cause::kIndexOutOfRange;

const Operand* with_size(const HostCase& c, std::int64_t dim, std::int64_t size) {
  for (const Operand& operand : c.operands()) {
    if (dim >= 0 && dim < static_cast<std::int64_t>(operand.shape.size()) &&
        operand.shape[static_cast<std::size_t>(dim)] == size) {
      return &operand;
    }
  }
  return nullptr;
}

void element(const HostCase& c, Finding& f, std::int64_t index, std::int64_t dim, std::int64_t size) {
  const Operand* x = with_size(c, dim, size);
  const std::string name = x ? x->name : "the tensor";
  f.summary = fmt::format("{}: index {} is outside [{}, {}) in dimension {} of {}{}", f.op, index, -size,
                          size, dim, name, x ? " " + to_text(x->shape) : "");
  if (x) f.tensor = TensorInfo{x->shape, x->dtype, x->device};
  f.element = Element{{}, Scalar{index}, std::nullopt, std::nullopt, std::nullopt, std::nullopt};
  f.valid = Valid{fmt::format("[{}, {})", -size, size), Scalar{-size}, Scalar{size - 1}, {}};
  if (size == 0) {
    f.fix.push_back(fmt::format("{} is empty: check what was filtered out before", name));
  } else if (index == size) {
    f.fix.push_back(
        fmt::format("the last valid index is {}: an off-by-one in a range, or a 1-based number", size - 1));
  } else {
    f.fix.push_back(fmt::format("use an index of at most {}; -1 is the last element", size - 1));
  }
  f.fix.push_back(
      "this is an ordinary exception on a GPU, too: only an index that is a tensor reaches a device-side "
      "assert");
}

// TensorAdvancedIndexing.cpp and ScatterGatherKernel.cpp have the same words: indexing raises an IndexError
// by them, gather and scatter, which know no negative indices, a RuntimeError.
void host_index(const HostCase& c, Finding& f) {
  const std::int64_t index = c.number(1), dim = c.number(2), size = c.number(3);
  if (c.facts().exception != "RuntimeError") return element(c, f, index, dim, size);
  f.op.clear();
  // Before PyTorch 1.2 brackets raised it, too.
  f.summary = fmt::format(
      "index {} is outside [0, {}) in dimension {} (gather, scatter or, in an old PyTorch, x[index])", index,
      size, dim);
  f.element = Element{{}, Scalar{index}, std::nullopt, std::nullopt, std::nullopt, std::nullopt};
  f.valid = Valid{fmt::format("[0, {})", size), Scalar{std::int64_t{0}}, Scalar{size - 1}, {}};
  f.fix.push_back(
      index < 0 ? fmt::format("look at where the index is computed: {} does not count from the end", index)
                : fmt::format("look at where the index is computed: the last valid one is {}{}", size - 1,
                              index == size ? "; it may be counted from 1" : ""));
}

// A product of a sparse tensor whose indices do not fit its size: made without check_invariants, nobody
// asked. SparseTensorMath.cpp prints the index from 0, whatever it says of 1.
void sparse_index(const HostCase& c, Finding& f) {
  const std::int64_t index = c.number(2), size = c.number(3);
  f.summary = fmt::format("sparse product: the {} index {} is outside [0, {}), the sparse tensor has {} {}s",
                          c.capture(1), index, size, size, c.capture(1));
  f.element = Element{{}, Scalar{index}, std::nullopt, std::nullopt, std::nullopt, std::nullopt};
  f.valid = Valid{fmt::format("[0, {})", size), Scalar{std::int64_t{0}}, Scalar{size - 1}, {}};
  f.fix.push_back(
      fmt::format("look at where the {} numbers of the sparse tensor are made: they are 0 to {}{}",
                  c.capture(1), size - 1, index == size ? ", and these may be counted from 1" : ""));
  f.fix.push_back(
      "let PyTorch check it where it is made: torch.sparse_coo_tensor(..., check_invariants=True)");
}

// An index into a dimension without elements, in words without its number.
void into_nothing(const HostCase& c, Finding& f) {
  const Operand* x = nullptr;
  for (const Operand& operand : c.operands()) {
    const bool empty = std::find(operand.shape.begin(), operand.shape.end(), 0) != operand.shape.end();
    if (x == nullptr && empty) x = &operand;
  }
  const std::string name = x ? x->name : "the tensor";
  f.summary = fmt::format("x[index]: {}{} has no elements in a dimension that is indexed", name,
                          x ? " " + to_text(x->shape) : "");
  f.argument = name;
  if (x) f.tensor = TensorInfo{x->shape, x->dtype, x->device};
  f.fix.push_back(
      fmt::format("{} is empty: check what was filtered out before, or a sample without entries", name));
  f.fix.push_back(
      fmt::format("if it may be empty, say what its result is then, or leave all of that sample out "
                  "(continue): behind a bare `if {}.numel():` the variables keep what they had before",
                  name));
}

void select(const HostCase& c, Finding& f) {
  const Shape shape = c.shape(2);
  const std::int64_t dim = c.number(3);
  element(
      c, f, c.number(1), dim,
      dim >= 0 && dim < static_cast<std::int64_t>(shape.size()) ? shape[static_cast<std::size_t>(dim)] : 0);
}

void too_many(const HostCase& c, Finding& f) {
  const std::int64_t dims = c.number(1);
  const Operand* x = nullptr;
  for (const Operand& operand : c.operands()) {
    if (x == nullptr && static_cast<std::int64_t>(operand.shape.size()) == dims) x = &operand;
  }
  f.summary = fmt::format("x[index]: more indices than {}{} has dimensions ({})", x ? x->name : "the tensor",
                          x ? " " + to_text(x->shape) : "", dims);
  if (x) f.tensor = TensorInfo{x->shape, x->dtype, x->device};
  f.fix.push_back(fmt::format(
      "use at most {} indices; a batch or channel dimension may have been lost by `squeeze()`, an index or a "
      "reduction before",
      dims));
}

void zero_dimensional(const HostCase& c, Finding& f) {
  const Operand* x = nullptr;
  for (const Operand& operand : c.operands()) {
    if (x == nullptr && operand.shape.empty()) x = &operand;
  }
  const std::string name = x ? x->name : "x";
  f.summary = fmt::format("x[index]: {} has no dimension to index", x ? name : "the tensor");
  f.fix.push_back(fmt::format("use `{}.item()`: it is a single number", name));
}

void dimension(const HostCase& c, Finding& f) {
  const std::int64_t low = c.number(1), high = c.number(2), got = c.number(3);
  const Operand* x = nullptr;
  for (const Operand& operand : c.operands()) {
    if (x == nullptr && static_cast<std::int64_t>(operand.shape.size()) == high + 1) x = &operand;
  }
  const std::string name = x ? x->name + " " + to_text(x->shape) : std::string("the tensor");
  f.summary = fmt::format("{}: dimension {} does not exist: {} has {} dimension{}",
                          c.call().empty() ? "dim" : "`" + clip(c.call(), 60) + "`", got, name, high + 1,
                          high == 0 ? "" : "s");
  if (x) f.tensor = TensorInfo{x->shape, x->dtype, x->device};
  f.element = Element{{}, Scalar{got}, std::nullopt, std::nullopt, std::nullopt, std::nullopt};
  f.valid = Valid{fmt::format("[{}, {}]", low, high), Scalar{low}, Scalar{high}, {}};
  f.fix.push_back(fmt::format("use dim={} (dim=-1 is the last)", high));
  f.fix.push_back("or restore the dimension: `unsqueeze(0)` if the batch dimension is missing");
}

void mask(const HostCase& c, Finding& f) {
  const Shape shape = c.shape(1), tensor = c.shape(3);
  const std::string mask_name = c.name("", shape, "mask"), name = c.name("", tensor, "the tensor");
  f.summary = fmt::format("x[mask]: the mask {} does not fit {} {} at dimension {}", to_text(shape), name,
                          to_text(tensor), c.number(4));
  f.tensor = TensorInfo{shape, "bool", ""};
  const std::string call = call_that_fits(mask_name, shape, tensor);
  if (!call.empty()) f.fix.push_back(fmt::format("use `{}`", call));
  if (shape.size() == 1 && tensor.size() == 2 && shape[0] == tensor[1]) {
    f.fix.push_back(
        fmt::format("to choose columns use `{}[:, {}]`", name == "the tensor" ? "x" : name, mask_name));
  }
  f.fix.push_back(fmt::format("a mask must have the sizes of the first dimensions: {}", to_text(tensor)));
}

void index_broadcast(const HostCase& c, Finding& f) {
  f.summary = fmt::format("x[i, j]: the index tensors {} cannot be broadcast together", c.capture(1));
  f.fix.push_back(
      "for pairs (i[k], j[k]) give them one length; for every row with every column use `x[i[:, None], j]`");
}

// The quantized tables' own check: FBGEMM's and its fallback's words are the same.
void quantized_row(const HostCase& c, Finding& f) {
  const std::int64_t at = c.number(1), value = c.number(2), low = c.number(3), high = c.number(4);
  const Operand* ids = nullptr;  // the one tensor of integers that is long enough, if there is just one
  int fitting = 0;
  for (const Operand& operand : c.operands()) {
    if (!operand.dtype.starts_with("int") || operand.shape.size() != 1 || operand.shape[0] <= at) continue;
    ids = &operand;
    ++fitting;
  }
  const std::string name = fitting == 1 ? ids->name : "indices";
  f.summary = fmt::format("{}: {}[{}] is {}, but the quantized table has {} rows: valid ids are [{}, {})",
                          f.op, name, at, value, high, low, high);
  if (fitting == 1) f.tensor = TensorInfo{ids->shape, ids->dtype, ids->device};
  f.element = Element{{at}, Scalar{value}, std::nullopt, std::nullopt, std::nullopt, std::nullopt};
  f.valid = Valid{fmt::format("[{}, {})", low, high), Scalar{low}, Scalar{high - 1}, {}};
  f.fix.push_back(fmt::format(
      "check where {}[{}] comes from; a table with more rows is made before it is quantized", name, at));
}

// The same check without numbers: quantized embedding of bytes.
void quantized_id(const HostCase&, Finding& f) {
  f.summary = "embedding: an id is outside the quantized table";
  f.fix.push_back(
      "compare the ids' min() and max() with the table's num_embeddings: valid ids are [0, rows)");
}

bool in_quantized_embedding(const HostCase& c) {
  return c.passes_through("torch/ao/nn/quantized/modules/embedding_ops.py") ||
         c.call().find("quantized.embedding") != std::string::npos;
}

void element_of_data(const HostCase& c, Finding& f) {
  const std::int64_t index = c.number(1), size = c.number(2);
  f.summary = fmt::format("{}: index {} is outside [0, {})", f.op, index, size);
  f.element = Element{{}, Scalar{index}, std::nullopt, std::nullopt, std::nullopt, std::nullopt};
  f.valid = Valid{fmt::format("[0, {})", size), Scalar{std::int64_t{0}}, Scalar{size - 1}, {}};
  f.fix.push_back("print the index's min() and max() and the tensor's shape before that call");
}

void gather_dims(const HostCase& c, Finding& f) {
  const Operand* index = c.by_role("index");
  const Operand* x = c.by_role("input");
  for (const Operand& operand : c.operands()) {
    if (x == nullptr && operand.dtype.starts_with("float")) x = &operand;
    if (index == nullptr && operand.dtype.starts_with("int")) index = &operand;
  }
  f.summary = fmt::format("{}: index{} must have as many dimensions as the input{}", f.op,
                          index ? " " + to_text(index->shape) : "", x ? " " + to_text(x->shape) : "");
  f.fix.push_back(fmt::format("use `{}.unsqueeze(1)`", index ? index->name : "index"));
}

void gather_size(const HostCase& c, Finding& f) {
  f.summary = fmt::format("gather: index {} must not be larger than the input {} apart from dimension {}",
                          to_text(c.shape(2)), to_text(c.shape(3)), c.number(4));
  f.fix.push_back("check `dim=`, or slice the index to the input's sizes");
}

void vector_index(const HostCase& c, Finding& f) {
  f.summary = fmt::format("{}: the index must have one dimension", c.capture(1));
  f.fix.push_back("use `index.flatten()`, or `x[index]`, which takes any shape");
}

void number_of_indices(const HostCase& c, Finding& f) {
  f.op = c.capture(1);
  f.summary = fmt::format("{}: {} indices for a source of {} in dimension {}", f.op, c.number(2), c.number(3),
                          c.number(4));
  f.fix.push_back("give one index per slice of the source");
}

// Both are known: what was asked for, and of how many.
void too_many_selected(const HostCase& c, const SelectionFact& s, std::int64_t size, Finding& f) {
  const std::int64_t k = *s.k, least = s.op == "kthvalue" ? 1 : 0;
  const bool plain = s.text.empty() || s.text == std::to_string(k);
  const std::string named = plain ? "" : fmt::format(" (`{}`)", s.text);
  f.summary = fmt::format("{}: k is {}{}, but {} {} has {} element{} in dimension {}", f.op, k, named, s.name,
                          to_text(s.tensor->shape), size, size == 1 ? "" : "s", *s.dim);
  f.argument = "k";
  f.tensor = s.tensor;
  f.element = Element{{}, Scalar{k}, std::nullopt, std::nullopt, std::nullopt, std::nullopt};
  f.valid = Valid{fmt::format("[{}, {}]", least, size), Scalar{least}, Scalar{size}, {}};
  if (k < least) {
    f.fix.push_back(fmt::format("k counts elements: it is {} at least", std::max<std::int64_t>(least, 1)));
    return;
  }
  if (!s.user) {
    const std::string knob = knob_advice(Situation::kSelected, c.library(), {std::to_string(size), "", ""});
    if (!knob.empty()) f.fix.push_back(knob);
    f.fix.push_back(plain
                        ? fmt::format("give the call an input from which {} come out", k)
                        : fmt::format("`{}` is {}: make it {} at most, or give the call an input from which "
                                      "as many come out",
                                      s.text, k, size));
    return;
  }
  f.fix.push_back(
      fmt::format("use `k=min({}, {}.size({}))`", plain ? std::to_string(k) : s.text, s.name, *s.dim));
  f.fix.push_back(fmt::format("or look at why {} has only {} in dimension {}", s.name, size, *s.dim));
}

void top_k(const HostCase& c, Finding& f) {
  if (const auto& s = c.selection(); s && s->op == f.op) {
    const auto size = s->size();
    if (s->k && size && (*s->k > *size || *s->k < (s->op == "kthvalue" ? 1 : 0)))
      return too_many_selected(c, *s, *size, f);
  }
  f.summary = fmt::format("{}: k is larger than the dimension (or negative)", f.op);
  if (const auto& s = c.selection(); s && s->op == f.op && s->k.value_or(-1) > 0) {
    f.summary = fmt::format("{}: `{}` is {}: larger than the dimension", f.op, s->text, *s->k);
    if (s->text == std::to_string(*s->k))
      f.summary = fmt::format("{}: k is {}: larger than the dimension", f.op, *s->k);
  }
  // The tensor itself, and not one that goes into a call before it: torch.cdist(centres, xyz).topk(k).
  for (const Operand& operand : c.operands()) {
    const bool method = c.call().starts_with(fmt::format("{}.{}(", operand.name, f.op));
    const bool function = c.call().find(fmt::format("{}({},", f.op, operand.name)) != std::string::npos;
    if (!operand.user || operand.shape.empty() || (!method && !function)) continue;
    f.summary = fmt::format("{}: k is larger than the dimension of {} {}", f.op, operand.name,
                            to_text(operand.shape));
    f.fix.push_back(
        fmt::format("use `k=min(k, {}.size(dim))`, dim the one that {} looks along", operand.name, f.op));
    return;
  }
  f.fix.push_back(fmt::format(
      "use `k=min(k, x.size(dim))`, x the tensor that {} is called for, dim the one it looks along", f.op));
}

}  // namespace

std::span<const HostErrorRow> index_rows() {
  static const auto* const rows = new std::vector<HostErrorRow>{
      {"index.sparse",
       "RuntimeError",
       R"(addmm: index out of (row|column) bound: (-?\d{1,18}) not between 1 and (\d{1,18}))",
       "addmm: index out of",
       kIndex,
       "sparse product",
       "indices",
       sparse_index,
       {"addmm: index out of row bound: 3 not between 1 and 3",
        "addmm: index out of column bound: 7 not between 1 and 5"}},
      {"index.host",
       "IndexError|RuntimeError",
       R"(index (-?\d+) is out of bounds for dimension (\d+) with size (\d+))",
       "is out of bounds for dimension",
       kIndex,
       "x[index]",
       "index",
       host_index,
       {"index 15 is out of bounds for dimension 0 with size 10"},
       nullptr,
       {.refine = Refine::kOpOfStatement}},
      // TensorAdvancedIndexing.cpp: index_select of one dimension on the CPU
      {"index.element",
       "RuntimeError|IndexError",
       R"(INDICES element is out of DATA bounds, id=(-?\d+) (?:axis|data)_dim=(\d+))",
       "INDICES element is out of DATA bounds",
       kIndex,
       "index_select",
       "index",
       element_of_data,
       {"INDICES element is out of DATA bounds, id=145 axis_dim=1"}},
      {"quantized.row",
       "RuntimeError",
       R"(Index (-?\d+) is out of bounds: (-?\d+), range (-?\d+) to (-?\d+))",
       "Index...is out of bounds:...range",
       Cause::kEmbeddingIndexOutOfRange,
       "embedding_bag",
       "indices",
       quantized_row,
       {"Index 17 is out of bounds: 200, range 0 to 200"}},
      {"quantized.id",
       "RuntimeError",
       R"(Expected i < index_size to be true, but got false)",
       "Expected i < index_size to be true",
       Cause::kEmbeddingIndexOutOfRange,
       "embedding",
       "indices",
       quantized_id,
       {"Expected i < index_size to be true, but got false.  (Could this error message be improved?  If so, "
        "please report an enhancement request to PyTorch.)"},
       in_quantized_embedding},
      {"index.into_nothing",
       "IndexError",
       R"(index is out of bounds for dimension with size 0)",
       "index is out of bounds for dimension with size 0",
       kIndex,
       "x[index]",
       "index",
       into_nothing,
       {"index is out of bounds for dimension with size 0"}},
      {"index.select",
       "IndexError",
       R"(select\(\): index (-?\d+) out of range for tensor of size \[([\d, ]*)\] at dimension (-?\d+))",
       "out of range for tensor of size",
       kIndex,
       "select",
       "index",
       select,
       {"select(): index 5 out of range for tensor of size [3] at dimension 0"}},
      {"index.too_many",
       "IndexError",
       R"(too many indices for tensor of dimension (\d+))",
       "too many indices for tensor of dimension",
       Cause::kShapeMismatch,
       "x[index]",
       "index",
       too_many,
       {"too many indices for tensor of dimension 1"}},
      {"index.zero_dim",
       "IndexError",
       R"(invalid index of a 0-dim tensor\.)",
       "invalid index of a 0-dim tensor",
       Cause::kShapeMismatch,
       "x[index]",
       "index",
       zero_dimensional,
       {"invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
        "convert a 0-dim tensor to a number"}},
      {"index.dimension",
       "IndexError|RuntimeError",
       R"([Dd]imension out of range \(expected to be in range of \[(-?\d+), (-?\d+)\], but got (-?\d+)\))",
       "Dimension out of range (expected to be in range of",
       Cause::kShapeMismatch,
       "",
       "dim",
       dimension,
       {"Dimension out of range (expected to be in range of [-2, 1], but got 2)"}},
      {"index.mask",
       "IndexError",
       R"(The shape of the mask \[([\d, ]*)\] at index (\d+) does not match the shape of the indexed tensor \[([\d, ]*)\] at index (\d+))",
       "does not match the shape of the indexed tensor",
       Cause::kShapeMismatch,
       "x[mask]",
       "mask",
       mask,
       {"The shape of the mask [3, 5] at index 0 does not match the shape of the indexed tensor [4, 5] at "
        "index 0"}},
      {"index.broadcast",
       "IndexError",
       R"(shape mismatch: indexing tensors could not be broadcast together with shapes (\[[\d\[\], ]*\]))",
       "indexing tensors could not be broadcast together",
       Cause::kShapeMismatch,
       "x[index]",
       "index",
       index_broadcast,
       {"shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]"}},
      {"gather.dims",
       "RuntimeError",
       R"(Index tensor must have the same number of dimensions as (?:input|self|src) tensor)",
       "Index tensor must have the same number of dimensions as",
       Cause::kShapeMismatch,
       "gather",
       "index",
       gather_dims,
       {"Index tensor must have the same number of dimensions as input tensor"}},
      {"gather.size",
       "RuntimeError",
       R"(Size does not match at dimension (\d+) expected index \[([\d, ]*)\] to be (?:no larger|smaller) than self \[([\d, ]*)\] apart from dimension (\d+))",
       "Size does not match at dimension",
       Cause::kShapeMismatch,
       "gather",
       "index",
       gather_size,
       {"Size does not match at dimension 0 expected index [5, 2] to be no larger than self [3, 4] apart "
        "from dimension 1",
        "Size does not match at dimension 0 expected index [5, 2] to be smaller than self [3, 4] apart from "
        "dimension 1"}},
      {"index_select.vector",
       "IndexError|RuntimeError",
       R"((index_select|index_fill_|index_copy_|index_add_)\(\): Index is supposed to be (?:a|1-dimensional)? ?vector)",
       "Index is supposed to be",
       Cause::kShapeMismatch,
       "index_select",
       "index",
       vector_index,
       {"index_select(): Index is supposed to be a vector"}},
      {"index_add.count",
       "RuntimeError|IndexError",
       R"((\w+?)_?\(\): Number of indices \((\d+)\) should be equal to (?:source|self)\.size\(dim\):? \((\d+)\),? for dim: (\d+))",
       "should be equal to source.size(dim)|should be equal to self.size(dim)",
       Cause::kShapeMismatch,
       "index_add",
       "index",
       number_of_indices,
       {"index_add_(): Number of indices (2) should be equal to source.size(dim): (3), for dim: 0"}},
      {"topk.k",
       "RuntimeError",
       R"(selected index k out of range)",
       "selected index k out of range",
       Cause::kShapeMismatch,
       "topk",
       "k",
       top_k,
       {"selected index k out of range"},
       nullptr,
       {.certainty = Certainty::kLikely}},
      {"kthvalue.k",
       "RuntimeError",
       R"(kthvalue\(\): selected number k out of range for dimension (-?\d+))",
       "selected number k out of range for dimension",
       Cause::kShapeMismatch,
       "kthvalue",
       "k",
       top_k,
       {"kthvalue(): selected number k out of range for dimension 0"}},
  };
  return *rows;
}

}  // namespace trapline::diagnose
