// View, cat, stack, split and their relatives: shapes that do not fit.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "diagnose/host/case.hpp"
#include "diagnose/host/rows.hpp"

namespace trapline::diagnose {
namespace {

constexpr auto kShape = Cause::kShapeMismatch;

// A layer of a library that takes one tensor, whose last dimension has to have its width.
std::string width_advice(const HostCase& c) {
  const auto& given = c.facts().given;
  if (given.size() != 1 || given.front().shape.empty() || !c.module()) return {};
  LibraryFact library = c.library();
  for (std::string& name : library.owners) name += ":" + c.module()->name;
  return knob_advice(Situation::kWidth, library, {std::to_string(given.front().shape.back()), "", ""});
}

void view(const HostCase& c, Finding& f) {
  const Shape want = c.shape(1);
  const std::int64_t elements = c.number(2);
  const bool reshape =
      (c.raised_in_library() ? c.raised_at() : c.call()).find("reshape") != std::string::npos;
  f.op = reshape ? "reshape" : "view";
  const Operand* x = nullptr;
  // What a library calls its own tensors says nothing to the user.
  const bool library = c.raised_in_library();
  for (const Operand& operand : c.operands()) {
    if (x == nullptr && numel(operand.shape) == elements && (operand.user || !library)) x = &operand;
  }
  if (library) {
    f.summary = x ? fmt::format("{}: {} {} has {} elements, which do not fill the shape {}", f.op, x->name,
                                to_text(x->shape), elements, to_text(want))
                  : fmt::format("{}: a tensor of {} elements does not fill the shape {}", f.op, elements,
                                to_text(want));
    if (x) f.tensor = TensorInfo{x->shape, x->dtype, x->device};
    const std::string knob = x ? std::string() : width_advice(c);
    if (!knob.empty()) f.fix.push_back(knob);
    f.fix.push_back(fmt::format("the shape is a library's: check the sizes and values that `{}` is given{}",
                                clip(c.call_or("the call"), 60), c.given()));
    return;
  }
  const std::string name = x ? x->name : "x";
  f.summary = fmt::format("{}: {}{} has {} elements, which do not fill the shape {}", f.op, name,
                          x ? " " + to_text(x->shape) : "", elements, to_text(want));
  if (x) f.tensor = TensorInfo{x->shape, x->dtype, x->device};
  std::int64_t rest = 1;  // product of the fixed sizes but the first
  for (std::size_t d = 1; d < want.size(); ++d) rest *= want[d] > 0 ? want[d] : 1;
  const bool inferred = std::find(want.begin(), want.end(), -1) != want.end();
  const bool square = want.size() == 2 && want[0] == want[1] && want[0] > 0 && want[0] < (1 << 20);
  if (x && x->shape.size() == 1 && x->dtype == "int64" && square && elements > want[0] * want[0]) {
    f.fix.push_back(fmt::format(
        "if {0} is torch.bincount({1} * target + pred, minlength={2}): that is its least length, and a "
        "target "
        "of {3} made it longer: leave out what is none of the {1} classes before: keep = (target >= 0) & "
        "(target < {1})",
        x->name, want[0], want[0] * want[0], (elements - 1) / want[0]));
    return;
  }
  // With the batch's own size it would fill the shape; else something else is wrong.
  const std::int64_t held = x && !x->shape.empty() ? x->shape[0] : 0;
  const std::int64_t left = rest > 0 && elements % rest == 0 ? elements / rest : 0;
  const bool fills = held > 0 && left > 0 && (inferred ? left % held == 0 : left == held);
  if (!want.empty() && want[0] > 0 && want[0] != held && fills) {
    f.fix.push_back(fmt::format(
        "the batch holds {}, not {}: use `{}.size(0)` instead of a fixed number (the last batch is "
        "smaller, or pass drop_last=True)",
        held, want[0], name));
  }
  if (x && want.size() == 2 && x->shape.size() > 2) {
    f.fix.push_back(fmt::format("use `{}.flatten(1)`: it gives {}", name,
                                to_text({x->shape[0], elements / std::max<std::int64_t>(1, x->shape[0])})));
  }
  if (!inferred && want.size() == 2 && want[0] > 0 && elements % want[0] == 0) {
    f.fix.push_back(fmt::format("use `{}.{}({}, -1)`: it gives {}", name, f.op, want[0],
                                to_text({want[0], elements / want[0]})));
  }
  if (!inferred && want.size() >= 2 && rest > 0 && elements % rest == 0) {
    Shape sizes = want;
    sizes[0] = -1;
    f.fix.push_back(fmt::format("use `{}.{}({})`: it gives {} in dimension 0", name, f.op,
                                fmt::join(sizes, ", "), elements / rest));
  }
  if (f.fix.empty())
    f.fix.push_back(
        fmt::format("choose sizes whose product is {}, or leave one to be inferred with -1", elements));
}

void view_stride(const HostCase& c, Finding& f) {
  std::string name = c.operands().empty() ? "x" : c.operands().front().name;
  f.summary = fmt::format(
      "view: {} is not contiguous (after a transpose, permute or slice), so this view cannot exist", name);
  f.fix.push_back(fmt::format("use `{}.reshape(...)` instead of `.view(...)`", name));
  f.fix.push_back(fmt::format("or `{}.contiguous().view(...)`", name));
}

void inferred_twice(const HostCase&, Finding& f) {
  f.summary = "view: -1 stands for two dimensions, but only one can be inferred";
  f.fix.push_back("give a size for all dimensions but one, e.g. `x.view(x.size(0), -1)`");
}

void unflatten(const HostCase& c, Finding& f) {
  f.summary = fmt::format("unflatten: sizes {} do not multiply up to {}, the size of dimension {}",
                          to_text(c.shape(1)), c.number(3), c.number(2));
  f.fix.push_back(
      fmt::format("choose sizes whose product is {}, or leave one to be inferred with -1", c.number(3)));
}

void cat(const HostCase& c, Finding& f) {
  const std::int64_t dim = c.number(1), want = c.number(2), got = c.number(3), which = c.number(4);
  f.summary = fmt::format(
      "cat: tensor {} of the list has size {} where {} is needed; all but dimension {} must be equal", which,
      got, want, dim);
  if (std::string strides = dim == 1 ? strides_advice(c, want, got) : ""; !strides.empty()) {
    f.fix.push_back(std::move(strides));
    return;
  }
  std::string shapes;
  for (const Operand& operand : c.operands()) {
    if (operand.user)
      shapes += fmt::format("{}{} {}", shapes.empty() ? "" : ", ", operand.name, to_text(operand.shape));
  }
  if (!shapes.empty()) f.fix.push_back(fmt::format("the shapes are {}", shapes));
  f.fix.push_back(
      fmt::format("join along the dimension in which they differ (another `dim=`), or crop, pad or resize "
                  "the tensor of size {} to {}",
                  got, want));
}

void cat_dims(const HostCase& c, Finding& f) {
  f.summary =
      fmt::format("cat: tensors with {} and {} dimensions cannot be joined", c.number(1), c.number(2));
  f.fix.push_back("bring them to the same number of dimensions with `unsqueeze(0)`, or use `torch.stack`");
}

void cat_scalar(const HostCase& c, Finding& f) {
  f.summary = fmt::format("cat: the tensor at position {} has no dimension", c.number(1));
  f.fix.push_back("use `torch.stack([...])` for scalars");
  f.fix.push_back("or `.unsqueeze(0)` (`.reshape(1)`) before joining");
}

// Pictures as [channels, height, width] of which one has another number of channels.
bool are_channels(const Shape& one, const Shape& other) {
  const auto counts = [](const Shape& shape) { return shape.size() == 3 && shape[0] >= 1 && shape[0] <= 4; };
  return counts(one) && counts(other) && one[1] == other[1] && one[2] == other[2] && one[1] > 4 && one[2] > 4;
}

// What pad_sequence can bring to one length: it pads the first dimension, the others have to be equal.
bool are_lengths(const Shape& one, const Shape& other) {
  return !one.empty() && one.size() == other.size() &&
         std::equal(one.begin() + 1, one.end(), other.begin() + 1);
}

void fix_stack(const HostCase& c, const Shape& first, const Shape& other, Finding& f) {
  if (are_channels(first, other)) {
    f.fix.push_back(
        fmt::format("pictures with {} and {} channels: open all alike, `Image.open(...).convert(\"RGB\")` "
                    "(\"L\" for grey)",
                    first[0], other[0]));
    f.fix.push_back("a grey picture that is a tensor already: `x.expand(3, -1, -1)`");
    return;
  }
  if (c.passes_through("_utils/collate.py")) {
    f.fix.push_back(
        "samples of a batch must have one shape: resize or pad them in the data set, or pass `collate_fn=`");
  }
  if (are_lengths(first, other)) {
    f.fix.push_back("pad to one length: `torch.nn.utils.rnn.pad_sequence([...], batch_first=True)`");
    f.fix.push_back("or resize or crop each to one shape before stacking");
  } else {
    f.fix.push_back("resize, crop or pad each to one shape before stacking");
  }
}

// "stack: `image` of entry 2 has [3, 32, 30], that of the others [3, 32, 32]"
void stack_uneven(const UnevenFact& uneven, Finding& f) {
  const std::string field = uneven.field.empty() ? std::string() : fmt::format("`{}` of ", uneven.field);
  const char* others = uneven.most ? "the others have" : "entry 0 has";
  f.summary = fmt::format("stack: the samples of a batch must have one shape, but {}entry {} has {}, {} {}",
                          field, uneven.entry, to_text(uneven.odd), others, to_text(uneven.usual));
}

void stack(const HostCase& c, Finding& f) {
  const Shape first = c.shape(1), other = c.shape(3);
  const std::string entry = c.capture(4).empty() ? c.capture(2) : c.capture(4);
  f.summary = fmt::format("stack: the tensors must have one shape, but entry {} has {} and entry {} has {}",
                          c.capture(2), to_text(first), entry, to_text(other));
  if (c.facts().uneven) stack_uneven(*c.facts().uneven, f);
  fix_stack(c, first, other, f);
}

// A worker stacks its samples in shared memory, which is as long as all of them together.
void stack_shared(const HostCase& c, Finding& f) {
  if (c.facts().uneven) {
    stack_uneven(*c.facts().uneven, f);
    return fix_stack(c, c.facts().uneven->usual, c.facts().uneven->odd, f);
  }
  f.summary =
      "stack: the samples of a batch have different shapes (the worker's words are about the memory that "
      "they were to be stacked in)";
  f.fix.push_back(
      "samples of a batch must have one shape: resize or pad them in the data set, or pass `collate_fn=`");
  f.fix.push_back("with num_workers=0 PyTorch names the two shapes");
}

bool in_collate(const HostCase& c) { return c.passes_through("torch/utils/data/_utils/collate.py"); }

void value_shape(const HostCase& c, Finding& f) {
  f.summary = fmt::format("x[index] = value: the value has shape {} but the indexed part has {}",
                          to_text(c.shape(1)), to_text(c.shape(2)));
  f.fix.push_back(fmt::format("give the value shape {}, or one that broadcasts to it", to_text(c.shape(2))));
}

void split(const HostCase& c, Finding& f) {
  f.summary = fmt::format("split: the sizes {} do not add up to {}, the size of dimension {}",
                          to_text(c.shape(3)), c.number(1), c.number(2));
  f.fix.push_back(fmt::format("choose sizes that sum to {}", c.number(1)));
}

void narrow(const HostCase& c, Finding& f) {
  f.summary = fmt::format("narrow: start {} and length {} go beyond the dimension's {}", c.number(1),
                          c.number(2), c.number(3));
  f.fix.push_back(fmt::format("choose a length of at most {}", c.number(3) - c.number(1)));
}

void permute(const HostCase& c, Finding& f) {
  f.summary = fmt::format("permute: {} dimensions named for a tensor of {}", c.number(2), c.number(1));
  f.fix.push_back(fmt::format(
      "name all {} dimensions, or use `transpose(a, b)`; add a missing one with `unsqueeze`", c.number(1)));
}

void repeat(const HostCase& c, Finding& f) {
  f.summary = "repeat: fewer repeats than the tensor has dimensions";
  f.fix.push_back("name one number per dimension; 1 keeps it");
  for (const Operand& operand : c.operands())
    f.fix.push_back(fmt::format("`{}` has shape {}", operand.name, to_text(operand.shape)));
}

void repeat_interleave(const HostCase& c, Finding& f) {
  f.summary = fmt::format("repeat_interleave: {} repeats for {} elements", c.number(1), c.number(2));
  f.fix.push_back(fmt::format("give one number for all, or {} numbers", c.number(2)));
}

}  // namespace

// einops names the size, and only some of its ways also the tensor.
void einops(const HostCase& c, Finding& f) {
  const Shape shape = c.shape(1);
  const std::int64_t length = c.number(2), chunk = c.number(3);
  const Operand* x = nullptr;
  for (const Operand& operand : c.operands()) {
    const bool has = std::find(operand.shape.begin(), operand.shape.end(), length) != operand.shape.end();
    if (x == nullptr && operand.user && has) x = &operand;
  }
  const std::string name = x ? x->name : "the tensor";
  if (x) f.tensor = TensorInfo{x->shape, x->dtype, x->device};
  const std::string sizes = x ? " " + to_text(x->shape) : shape.empty() ? "" : " " + to_text(shape);
  f.summary = fmt::format("einops: a dimension of {}{} is {} long, which is no multiple of {}", name, sizes,
                          length, chunk);
  f.fix.push_back(
      fmt::format("give that dimension a multiple of {0} where the data are made (resize, crop, pad): "
                  "{1} or {2}",
                  chunk, length / std::max<std::int64_t>(1, chunk) * chunk,
                  (length / std::max<std::int64_t>(1, chunk) + 1) * chunk));
  f.fix.push_back("a model that was made for one image size takes that size only");
}

// All sizes of a group were given, and one of them is not that of this tensor.
void einops_group(const HostCase& c, Finding& f) {
  const Shape shape = c.shape(1);
  const std::string given = c.capture(2).empty() ? "" : fmt::format(" ({})", c.capture(2));
  f.summary =
      fmt::format("einops: a dimension of the tensor{} is {} long, but the sizes that were given{} make {}",
                  shape.empty() ? "" : " " + to_text(shape), c.capture(3), given, c.capture(4));
  f.fix.push_back(
      "leave out of the call the size that may change, such as that of a batch: einops computes one size of "
      "a "
      "group");
}

void einops_dims(const HostCase& c, Finding& f) {
  const Shape shape = c.shape(1);
  f.summary = fmt::format("einops: the pattern names {} dimensions, the tensor{} has {}", c.capture(2),
                          shape.empty() ? "" : " " + to_text(shape), c.capture(3));
  f.fix.push_back(
      "see which of the two lacks a dimension: a name for it in the pattern, or the dimension in the tensor "
      "(unsqueeze, or a batch of one)");
}

std::span<const HostErrorRow> layout_rows() {
  static const auto* const rows = new std::vector<HostErrorRow>{
      {"view.size",
       "RuntimeError",
       R"((?:invalid argument \d+: )?(?:shape|size) '\[([-\d, x]*)\]' is invalid for input of (?:size|with) (\d+))",
       "is invalid for input of",
       kShape,
       "view",
       "shape",
       view,
       {"shape '[32, 256]' is invalid for input of size 12800",
        "invalid argument 2: size '[32 x 256]' is invalid for input of with 12800 elements"}},
      {"einops.divide",
       "RuntimeError|EinopsError",  // a class of its own, which is a RuntimeError
       R"((?s)(?:.*Input tensor shape: torch\.Size\(\[([\d, ]*)\]\).*)?Shape mismatch, can't divide axis of length (\d{1,18}) in chunks of (\d{1,9}))",
       "Shape mismatch, can't divide axis of length",
       kShape,
       "einops",
       "",
       einops,
       {"Shape mismatch, can't divide axis of length 50 in chunks of 8",
        " Error while processing rearrange-reduction pattern \"b (h p) -> b h p\".\n Input tensor shape: "
        "torch.Size([8, 50]). Additional info: {'p': 8}.\n Shape mismatch, can't divide axis of length 50 in "
        "chunks "
        "of 8"}},
      {"einops.group",
       "RuntimeError|EinopsError",
       R"((?s)(?:.*Input tensor shape: torch\.Size\(\[([\d, ]*)\]\)\. Additional info: \{([^}]{0,200})\}.*)?Shape mismatch, (\d{1,18}) != (\d{1,18}))",
       "ape mismatch, ",  // so short that it counts with its whole message only: cuDNN has such a status
       kShape,
       "einops",
       "",
       einops_group,
       {"Shape mismatch, 10 != 20",
        " Error while processing rearrange-reduction pattern \"(n k) c -> n k c\".\n Input tensor shape: "
        "torch.Size([10, 8]). Additional info: {'n': 4, 'k': 5}.\n Shape mismatch, 10 != 20"}},
      {"einops.dims",
       "RuntimeError|EinopsError",
       R"((?s)(?:.*Input tensor shape: torch\.Size\(\[([\d, ]*)\]\).*)?Wrong shape: expected >?=?(\d{1,9}) dims\. Received (\d{1,9})\b)",
       "Wrong shape: expected ... dims. Received",
       kShape,
       "einops",
       "",
       einops_dims,
       {"Wrong shape: expected 4 dims. Received 3-dim tensor.",
        " Error while processing rearrange-reduction pattern \"b c h w -> b (c h w)\".\n Input tensor shape: "
        "torch.Size([2, 3, 9]). Additional info: {}.\n Wrong shape: expected 4 dims. Received 3-dim "
        "tensor."}},
      {"view.stride",
       "RuntimeError",
       R"(view size is not compatible with input tensor's size and stride)",
       "view size is not compatible with input tensor's size",
       kShape,
       "view",
       "input",
       view_stride,
       {"view size is not compatible with input tensor's size and stride (at least one dimension spans "
        "across two contiguous "
        "subspaces). Use .reshape(...) instead."}},
      {"view.inferred",
       "RuntimeError",
       R"(only one dimension can be inferred)",
       "only one dimension can be inferred",
       kShape,
       "view",
       "shape",
       inferred_twice,
       {"only one dimension can be inferred"}},
      {"unflatten.sizes",
       "RuntimeError",
       R"(unflatten: Provided sizes \[([-\d, ]*)\] don't multiply up to the size of dim (-?\d+) \((\d+)\) in the input tensor)",
       "don't multiply up to the size of dim",
       kShape,
       "unflatten",
       "sizes",
       unflatten,
       {"unflatten: Provided sizes [3, 2] don't multiply up to the size of dim 1 (4) in the input tensor"}},
      {"cat.sizes",
       "RuntimeError",
       R"(Sizes of tensors must match except in dimension (\d+)\. Expected size (\d+) but got size (\d+) for tensor number (\d+) in the list)",
       "Sizes of tensors must match except in dimension",
       kShape,
       "cat",
       "tensors",
       cat,
       {"Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for tensor number "
        "1 in the list."}},
      {"cat.sizes_old",
       "RuntimeError",
       R"((?:torch\.cat\(\): )?Sizes of tensors must match except in dimension (\d+)\. Got (\d+) and (\d+) in dimension (\d+))",
       "Sizes of tensors must match except in dimension",
       kShape,
       "cat",
       "tensors",
       [](const HostCase& c, Finding& f) {
         f.summary = fmt::format("cat: sizes {} and {} in dimension {}; all but dimension {} must be equal",
                                 c.number(2), c.number(3), c.number(4), c.number(1));
         f.fix.push_back(
             fmt::format("join along dimension {}, or crop, pad or resize to one size there", c.number(4)));
       },
       {"Sizes of tensors must match except in dimension 1. Got 3 and 4 in dimension 2 (The offending index "
        "is 1)",
        "torch.cat(): Sizes of tensors must match except in dimension 1. Got 3 and 4 in dimension 2 (The "
        "offending index is 1)"}},
      {"cat.dims",
       "RuntimeError",
       R"(Tensors must have same number of dimensions: got (\d+) and (\d+))",
       "Tensors must have same number of dimensions",
       kShape,
       "cat",
       "tensors",
       cat_dims,
       {"Tensors must have same number of dimensions: got 2 and 1"}},
      {"cat.scalar",
       "RuntimeError",
       R"(zero-dimensional tensor \(at position (\d+)\) cannot be concatenated)",
       "zero-dimensional tensor (at position",
       kShape,
       "cat",
       "tensors",
       cat_scalar,
       {"zero-dimensional tensor (at position 0) cannot be concatenated"}},
      {"stack.sizes",
       "RuntimeError",
       R"(stack expects each tensor to be equal size, but got \[([\d, ]*)\] at entry (\d+) and \[([\d, ]*)\] at entry (\d+))",
       "stack expects each tensor to be equal size",
       kShape,
       "stack",
       "tensors",
       stack,
       {"stack expects each tensor to be equal size, but got [2, 3] at entry 0 and [2, 4] at entry 1"}},
      {"stack.shared",
       "RuntimeError",
       R"(Trying to resize storage that is not resizable)",
       "Trying to resize storage that is not resizable",
       kShape,
       "stack",
       "tensors",
       stack_shared,
       {"Trying to resize storage that is not resizable"},
       in_collate},
      {"index_put.value",
       "RuntimeError",
       R"(shape mismatch: value tensor of shape \[([\d, ]*)\] cannot be broadcast to indexing result of shape \[([\d, ]*)\])",
       "cannot be broadcast to indexing result of shape",
       kShape,
       "x[index] = value",
       "value",
       value_shape,
       {"shape mismatch: value tensor of shape [3, 5] cannot be broadcast to indexing result of shape [2, "
        "5]"}},
      {"split.sizes",
       "RuntimeError",
       R"(split_with_sizes expects split_sizes to sum exactly to (\d+) \(input tensor's size at dimension (-?\d+)\), but got split_sizes=\[([\d, ]*)\])",
       "expects split_sizes to sum exactly to",
       kShape,
       "split",
       "split_sizes",
       split,
       {"split_with_sizes expects split_sizes to sum exactly to 4 (input tensor's size at dimension 0), but "
        "got split_sizes=[2, 3]"}},
      {"narrow.length",
       "RuntimeError",
       R"(start \((-?\d+)\) \+ length \((\d+)\) exceeds dimension size \((\d+)\))",
       "exceeds dimension size",
       kShape,
       "narrow",
       "length",
       narrow,
       {"start (2) + length (4) exceeds dimension size (3)."}},
      {"permute.dims",
       "RuntimeError",
       R"(permute\(.*?\): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i\.e\. input\.dim\(\) = (\d+) is not equal to len\(dims\) = (\d+))",
       "number of dimensions in the tensor input does not match",
       kShape,
       "permute",
       "dims",
       permute,
       {"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
        "desired ordering of dimensions "
        "i.e. input.dim() = 2 is not equal to len(dims) = 3"}},
      {"repeat.dims",
       "RuntimeError",
       R"(Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor)",
       "Number of dimensions of repeat dims can not be smaller",
       kShape,
       "repeat",
       "repeats",
       repeat,
       {"Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"}},
      {"repeat_interleave.sizes",
       "RuntimeError",
       R"(repeats must have the same size as input along dim, but got repeats\.size\(0\) = (\d+) and input\.size\(-?\d+\) = (\d+))",
       "repeats must have the same size as input along dim",
       kShape,
       "repeat_interleave",
       "repeats",
       repeat_interleave,
       {"repeats must have the same size as input along dim, but got repeats.size(0) = 2 and input.size(0) = "
        "3"}},
  };
  return *rows;
}

}  // namespace trapline::diagnose
