// Matrix products: sizes that cannot be multiplied.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/host/case.hpp"
#include "diagnose/host/rows.hpp"

namespace trapline::diagnose {
namespace {

constexpr auto kShape = Cause::kShapeMismatch;

bool is_linear(const HostCase& c) {
  if (c.functional() == "linear" || (c.module() && c.module()->attribute("in_features"))) return true;
  // PyTorch Geometric's own: of the name, with channels.
  return c.module() && c.module()->type == "Linear" && c.module()->attribute("in_channels");
}

// The modules around the layer, each with the layer's own name: "module.Class:attn2.to_k".
std::string width_knob(const HostCase& c, std::int64_t features, std::int64_t in) {
  LibraryFact library = c.library();
  const std::string layer = c.module() ? c.module()->name : "";
  for (std::string& name : library.owners) name += ":" + layer;
  return knob_advice(Situation::kWidth, library, {std::to_string(features), "", std::to_string(in)});
}

void linear(const HostCase& c, Finding& f, std::int64_t features, std::int64_t in, std::int64_t out) {
  const auto& module = c.module();
  f.op = "linear";
  f.argument = "input";
  const Operand* input = c.by_role("input");
  const bool named = input && input->user && !input->name.empty();
  const std::string name = named ? input->name : "x";
  const std::string where =
      module && module->attribute("in_features") ? module->text() : fmt::format("Linear({}, {})", in, out);
  f.summary = fmt::format("linear: {}{} has {} features but {} takes {}", named ? name : "the input",
                          input ? " " + to_text(input->shape) : "", features, where, in);
  if (input) f.tensor = TensorInfo{input->shape, input->dtype, input->device};
  f.valid = Valid{fmt::format("[*, {}]", in), {}, {}, {}};
  if (module && module->attribute("in_features")) {
    f.layer = Layer{module->name, module->type, "in_features", in, features};
  }
  const std::string layer =
      module && !module->name.empty() ? layer_name(module->name, '`') : std::string("the layer");
  if (input && input->shape.size() > 2 && numel(input->shape) == in * input->shape.front()) {
    f.fix.push_back(named ? fmt::format("flatten first: `{}.flatten(1)`", name)
                          : fmt::format("flatten first: put `nn.Flatten()` before {}", layer));
    return;
  }
  if (input && input->shape.size() == 2 && input->shape[0] == in && named) {
    f.fix.push_back(fmt::format("{} looks transposed: use `{}.t()`", name, name));
  }
  if (input && input->shape.size() > 2 && features != in) {
    for (std::size_t d = 0; d < input->shape.size(); ++d) {
      if (input->shape[d] == in && named) {
        f.fix.push_back(fmt::format("its dimension {} has {}: use `{}.movedim({}, -1)`", d, in, name, d));
        break;
      }
    }
  }
  const std::string before = c.as_before(named ? name : "an input", fmt::format("{} features", in));
  if (!before.empty()) return f.fix.push_back(before);
  // A library's own layer is nothing that the user can write anew.
  if (c.raised_in_library() || !c.library().owner.empty()) {
    const std::string knob = width_knob(c, features, in);
    if (!knob.empty()) return f.fix.push_back(knob);
    f.fix.push_back(
        fmt::format("{} is part of a library's model: give that model {} with {} features, or make it for {}",
                    layer, named ? name : "an input", in, features));
    return;
  }
  // Three dimensions are most often a sequence, of which a Linear takes each step by itself; pictures have
  // more.
  if (input && input->shape.size() > 3) {
    const std::int64_t flat = numel(input->shape) / std::max<std::int64_t>(1, input->shape.front());
    f.fix.push_back(fmt::format("if all features belong together: flatten and make {} `nn.Linear({}, {})`",
                                layer, flat, out));
  }
  f.fix.push_back(fmt::format("make {} take what arrives: `nn.Linear({}, {})`", layer, features, out));
  f.fix.push_back(fmt::format("or make the layer before it give {} features", in));
}

void product(const HostCase& c, Finding& f) {
  const std::int64_t rows = c.number(1), inner = c.number(2), other = c.number(3), columns = c.number(4);
  if (is_linear(c)) return linear(c, f, inner, other, columns);
  const Shape left{rows, inner}, right{other, columns};
  const Operand* a = c.by_shape(left);
  const Operand* b = c.by_shape(right);
  const std::string left_name = a ? a->name : "mat1", right_name = b ? b->name : "mat2";
  f.summary = fmt::format("{}: {} {} and {} {} cannot be multiplied: {} columns against {} rows", f.op,
                          left_name, to_text(left), right_name, to_text(right), inner, other);
  if (b) f.tensor = TensorInfo{b->shape, b->dtype, b->device};
  if (inner == columns)
    f.fix.push_back(
        fmt::format("use `{}.t()`: {} @ {} fits", right_name, to_text(left), to_text({columns, other})));
  if (rows == other)
    f.fix.push_back(
        fmt::format("use `{}.t()`: {} @ {} fits", left_name, to_text({inner, rows}), to_text(right)));
  f.fix.push_back(fmt::format("the last dimension of {} must equal the first of {}: make both {} or both {}",
                              left_name, right_name, inner, other));
}

void matrix_vector(const HostCase& c, Finding& f) {
  const std::size_t first = c.capture(1).empty() ? 4 : 1;
  const std::int64_t rows = c.number(first), columns = c.number(first + 1), length = c.number(first + 2);
  f.summary = fmt::format("mv: a matrix [{}, {}] cannot be multiplied with a vector of {} elements", rows,
                          columns, length);
  if (rows == length) f.fix.push_back("transpose the matrix: `.t()`");
  f.fix.push_back(fmt::format("give the vector {} elements", columns));
}

void dot_product(const HostCase& c, Finding& f) {
  f.summary = fmt::format("dot: vectors of {} and {} elements; they must be the same length", c.number(1),
                          c.number(2));
  f.fix.push_back("give both vectors the same number of elements");
  f.fix.push_back("for all pairs of products use `torch.outer(a, b)`");
}

void dimension_count(const HostCase& c, Finding& f) {
  f.summary = fmt::format("{}: {}", f.op, clip(c.message(), 160));
  for (const Operand& operand : c.operands()) {
    if (operand.user) f.fix.push_back(fmt::format("`{}` has shape {}", operand.name, to_text(operand.shape)));
  }
  f.fix.insert(f.fix.begin(),
               "`torch.matmul` takes any number of dimensions; mm, bmm and dot take exactly 2, 3 and 1");
}

void batched(const HostCase& c, Finding& f) {
  const Shape want = c.shape(1), got = c.shape(2);
  if (want.size() < 2 || got.size() < 2) return dimension_count(c, f);
  f.summary = fmt::format(
      "{}: the second operand starts with {} but {} is needed: {}", f.op, to_text(got), to_text(want),
      want[0] != got[0] ? "the batch sizes differ" : "rows do not match the first operand's columns");
  std::string name = "batch2";
  for (const Operand& operand : c.operands()) {
    if (operand.shape.size() >= 3 && operand.shape[operand.shape.size() - 2] == got[1]) name = operand.name;
  }
  if (want[0] != got[0]) {
    f.fix.push_back(fmt::format("give both operands the same batch size, or expand the one of size 1"));
  } else {
    f.fix.push_back(
        fmt::format("`{}.transpose(-2, -1)` if its columns are the {} that are needed", name, want[1]));
  }
  f.fix.push_back(fmt::format("bmm takes [b, n, {}] @ [b, {}, p]", want[1], want[1]));
}

void einsum_sizes(const HostCase& c, Finding& f) {
  f.summary = fmt::format("einsum: subscript {} has size {} in operand {} but {} before", c.capture(1),
                          c.number(2), c.number(3), c.number(4));
  f.fix.push_back(fmt::format(
      "the dimension named {} must have one size in every operand: transpose operand {} or rename "
      "its subscript",
      c.capture(1), c.number(3)));
}

void einsum_dims(const HostCase& c, Finding& f) {
  f.summary = fmt::format("einsum: {} subscripts for operand {}, which has {} dimensions", c.number(1),
                          c.number(3), c.number(2));
  f.fix.push_back(
      fmt::format("name {} subscripts for operand {}, or `...` for the rest", c.number(2), c.number(3)));
}

void meta_product(const HostCase& c, Finding& f) {
  const Shape left = c.shape(1), right = c.shape(2);
  if (is_linear(c) && left.size() == 2 && right.size() == 2) return linear(c, f, left[1], right[0], right[1]);
  f.summary = fmt::format("matmul: {} and {} cannot be multiplied", to_text(left), to_text(right));
  f.fix.push_back(fmt::format("the last dimension of the first must equal the first of the second"));
}

void pair_of_sizes(const HostCase& c, Finding& f) {
  f.summary = fmt::format("{}: the operands have sizes {} and {} where they must be equal", f.op, c.number(1),
                          c.number(2));
  f.fix.push_back(fmt::format("make both {} or both {}", c.number(1), c.number(2)));
}

}  // namespace

std::span<const HostErrorRow> product_rows() {
  static const auto* const rows = new std::vector<HostErrorRow>{
      {"matmul.sizes",
       "RuntimeError",
       R"((?:(?:add)?mm: )?mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\))",
       "shapes cannot be multiplied",
       kShape,
       "matmul",
       "mat2",
       product,
       {"mat1 and mat2 shapes cannot be multiplied (32x400 and 256x10)",
        "addmm: mat1 and mat2 shapes cannot be multiplied (20x256 and 400x120)"},  // since 2.15
       nullptr,
       {.refine = Refine::kLinearInFrames}},
      {"matmul.sizes_old",
       "RuntimeError",
       R"(size mismatch, m1: \[(\d+) x (\d+)\], m2: \[(\d+) x (\d+)\])",
       "size mismatch, m1",
       kShape,
       "matmul",
       "mat2",
       product,
       {"size mismatch, m1: [32 x 400], m2: [256 x 10] at /pytorch/aten/src/TH/generic/THTensorMath.cpp:41"},
       nullptr,
       {.refine = Refine::kLinearInFrames}},
      {"mv.sizes",
       "RuntimeError",
       R"(size mismatch, got (?:input \(\d+\), mat \((\d+)x(\d+)\), vec \((\d+)\)|\d+, (\d+)x(\d+), ?(\d+)))",
       "size mismatch, got",
       kShape,
       "mv",
       "vec",
       matrix_vector,
       {"size mismatch, got input (3), mat (3x4), vec (3)", "size mismatch, got 3, 3x4,3"}},
      {"dot.sizes",
       "RuntimeError",
       R"(inconsistent tensor size, expected tensor \[(\d+)\] and src \[(\d+)\] to have the same number)",
       "inconsistent tensor size, expected tensor",
       kShape,
       "dot",
       "tensor",
       dot_product,
       {"inconsistent tensor size, expected tensor [3] and src [4] to have the same number of elements, but "
        "got 3 and 4 elements "
        "respectively"}},
      {"dot.dims",
       "RuntimeError",
       R"(1D tensors expected, but got (\d+)D and (\d+)D tensors)",
       "1D tensors expected",
       kShape,
       "dot",
       "tensor",
       dimension_count,
       {"1D tensors expected, but got 2D and 1D tensors"}},
      {"mm.dims",
       "RuntimeError",
       R"((?:self|mat1|mat2|input|mat) must be a matrix)",
       "must be a matrix",
       kShape,
       "mm",
       "mat2",
       dimension_count,
       {"self must be a matrix", "mat2 must be a matrix"}},
      {"bmm.dims",
       "RuntimeError",
       R"(batch[12] must be a 3D tensor)",
       "must be a 3D tensor",
       kShape,
       "bmm",
       "batch2",
       dimension_count,
       {"batch1 must be a 3D tensor"}},
      {"bmm.sizes",
       "RuntimeError",
       R"(Expected size for first two dimensions of batch2 tensor to be: \[([\d, ]*)\] but got: \[([\d, ]*)\])",
       "Expected size for first two dimensions of batch2",
       kShape,
       "bmm",
       "batch2",
       batched,
       {"Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [2, 5]."}},
      {"einsum.sizes",
       "RuntimeError",
       R"(einsum\(\): subscript (\S+) has size (\d+) for operand (\d+) which does not broadcast with previously seen size (\d+))",
       "does not broadcast with previously seen size",
       kShape,
       "einsum",
       "operands",
       einsum_sizes,
       {"einsum(): subscript j has size 4 for operand 1 which does not broadcast with previously seen size "
        "3"}},
      {"einsum.dims",
       "RuntimeError",
       R"(einsum\(\): the number of subscripts in the equation \((\d+)\) (?:does not match|is more than) the number of dimensions \((\d+)\) for operand (\d+))",
       "number of subscripts in the equation",
       kShape,
       "einsum",
       "operands",
       einsum_dims,
       {"einsum(): the number of subscripts in the equation (3) does not match the number of dimensions (2) "
        "for operand 0 and no "
        "ellipsis was given"}},
      {"matmul.meta",
       "RuntimeError",
       R"(a and b must have same reduction dim, but got \[([\d, ]*)\] X \[([\d, ]*)\])",
       "must have same reduction dim",
       kShape,
       "matmul",
       "mat2",
       meta_product,
       {"a and b must have same reduction dim, but got [32, 400] X [256, 10]."}},
      {"cdist.sizes",
       "RuntimeError",
       R"(X1 and X2 must have the same number of columns\. X1: (\d+) X2: (\d+))",
       "X1 and X2 must have the same number of columns",
       kShape,
       "cdist",
       "x2",
       pair_of_sizes,
       {"X1 and X2 must have the same number of columns. X1: 4 X2: 5"}},
      {"tensordot.sizes",
       "RuntimeError",
       R"(contracted dimensions need to match, but first has size (\d+) in dim -?\d+ and second has size (\d+) in dim)",
       "contracted dimensions need to match",
       kShape,
       "tensordot",
       "b",
       pair_of_sizes,
       {"contracted dimensions need to match, but first has size 4 in dim -1 and second has size 5 in dim "
        "0"}},
      {"bilinear.sizes",
       "RuntimeError",
       R"(bilinear\(\): input[12] size does not match weight size: got (\d+) but expected (\d+))",
       "size does not match weight size",
       kShape,
       "bilinear",
       "input2",
       pair_of_sizes,
       {"bilinear(): input2 size does not match weight size: got 5 but expected 4"}},
  };
  return *rows;
}

}  // namespace trapline::diagnose
