// Sizes in losses: input and target that do not fit each other.
#include <fmt/format.h>

#include "diagnose/host/case.hpp"
#include "diagnose/host/rows.hpp"
#include "diagnose/markers.hpp"

namespace trapline::diagnose {
namespace {

constexpr auto kShape = Cause::kShapeMismatch;

void set_tensor(Finding& f, const HostCase& c, std::string_view role, const Shape& shape) {
  const Operand* operand = c.by_role(role);
  f.tensor =
      TensorInfo{shape, operand ? operand->dtype : std::string(), operand ? operand->device : std::string()};
}

void target_then_input(const HostCase& c, Finding& f) { explain_same_shape(c, f, c.shape(2), c.shape(1)); }

void batch_sizes(const HostCase& c, Finding& f) {
  const std::int64_t n = c.number(1), m = c.number(2);
  const Operand* in = c.by_role("input");
  const Operand* target = c.by_role("target");
  const std::string in_name = c.name("input", "input"), target_name = c.name("target", "target");
  f.summary = fmt::format("cross_entropy: {}{} holds {} samples but {}{} holds {}", in_name,
                          in ? " " + to_text(in->shape) : "", n, target_name,
                          target ? " " + to_text(target->shape) : "", m);
  if (target) f.tensor = TensorInfo{target->shape, target->dtype, target->device};
  if (in && in->shape.size() == 3 && in->shape[0] * in->shape[1] == m) {
    f.fix.push_back(
        fmt::format("put all positions in the first dimension: `{}.view(-1, {})`", in_name, in->shape[2]));
  } else if (in && in->shape.size() == 2 && in->shape[1] == m && n != m) {
    f.fix.push_back(
        fmt::format("{} looks transposed, or reduced over the wrong dimension: use `{}.t()` or the "
                    "other `dim=`",
                    in_name, in_name));
  } else if (target && target->shape.size() >= 2 && numel(target->shape) == n) {
    f.fix.push_back(fmt::format("use `{}.view(-1)`", target_name));
  } else if (in && in->shape.size() == 2 && in->shape[1] > 1 && m == n * in->shape[1]) {
    f.fix.push_back(
        fmt::format("{0} has a value for each class of each sample ({1} x {2}). Several labels a sample: "
                    "F.binary_cross_entropy_with_logits({3}, {0}.view({1}, {2}).float()); one-hot labels: "
                    "{0}.view({1}, {2}).argmax(1)",
                    target_name, n, in->shape[1], in_name));
    return;
  } else if (m > 0 && n > m && n % m == 0) {
    f.fix.push_back(
        fmt::format("{} rows are {} times {}: a `view(-1, ...)` before the last layer moved features "
                    "into the batch; use `x.flatten(1)` or `x.view(x.size(0), -1)` there",
                    n, n / m, m));
  }
  f.fix.push_back(
      fmt::format("pass one row of {} per element of {}, both from the same batch", in_name, target_name));
}

void multi_target(const HostCase& c, Finding& f) {
  const Operand* in = c.by_role("input");
  const Operand* target = c.by_role("target");
  const std::string name = c.name("target", "target");
  f.summary =
      fmt::format("cross_entropy: {} {} must hold one class number per sample, shape {}", name,
                  target ? "has shape " + to_text(target->shape) + " but" : "has more than one dimension and",
                  in && !in->shape.empty() ? to_text(Shape{in->shape.front()}) : "[N]");
  if (target) f.tensor = TensorInfo{target->shape, target->dtype, target->device};
  const bool column = target && target->shape.size() == 2 && target->shape[1] == 1;
  const bool one_hot = target && in && target->shape.size() == 2 && target->shape == in->shape;
  const std::string cast = target && target->dtype.starts_with("float") ? ".long()" : "";
  if (!target || column) f.fix.push_back(fmt::format("use `{}.squeeze(1){}`", name, cast));
  if (!target || one_hot) {
    f.fix.push_back(fmt::format("{}one-hot labels become class numbers with `{}.argmax(1)`",
                                target ? "" : "if [N, C]: ", name));
  }
  if (one_hot) f.fix.push_back(fmt::format("class probabilities must be floating point: `{}.float()`", name));
  if (f.fix.empty()) {
    f.fix.push_back(
        fmt::format("give each sample one class number; several labels per sample need "
                    "`F.binary_cross_entropy_with_logits`"));
  }
}

void spatial_sizes(const HostCase& c, Finding& f) {
  const Shape in = c.shape(1), target = c.shape(2);
  const std::string in_name = c.name("input", in, "input"), name = c.name("target", target, "target");
  f.summary =
      fmt::format("cross_entropy: {} has shape {} but {} {} has one label per position of another size",
                  in_name, to_text(in), name, to_text(target));
  set_tensor(f, c, "target", target);
  if (target.size() >= 3) {
    f.fix.push_back(
        fmt::format("bring the scores to the size of the labels: `F.interpolate({}, size=({}, {}))`", in_name,
                    target[target.size() - 2], target.back()));
  }
  if (in.size() >= 4) {
    f.fix.push_back(fmt::format("or load the labels at {}x{} (nearest neighbour, never interpolated)",
                                in[in.size() - 2], in.back()));
  }
  if (f.fix.empty()) f.fix.push_back("give input [N, C, ...] and target [N, ...] the same sizes after C");
}

void spatial_dims(const HostCase& c, Finding& f) {
  const Operand* target = c.by_role("target");
  const std::string name = c.name("target", "target");
  f.summary = fmt::format(
      "cross_entropy: {} {} must have shape [N, H, W], one class number per pixel", name,
      target ? "has shape " + to_text(target->shape) + " but" : "has a wrong number of dimensions and");
  if (target) f.tensor = TensorInfo{target->shape, target->dtype, target->device};
  const bool channel = target && target->shape.size() == 4 && target->shape[1] == 1;
  if (!target || channel || target->shape.size() != 4)
    f.fix.push_back(fmt::format("use `{}.squeeze(1).long()`", name));
  if (!channel)
    f.fix.push_back(fmt::format("one-hot masks [N, C, H, W] become class numbers with `{}.argmax(1)`", name));
}

void sequence_target(const HostCase& c, Finding& f) {
  const Shape want = c.shape(1), got = c.shape(2);
  const Operand* in = c.by_role("input");
  const std::string in_name = c.name("input", "input"), name = c.name("target", got, "target");
  f.summary = fmt::format(
      "cross_entropy: {} has shape {} but {}{} asks for {}: dimension 1 of the input is the classes", name,
      to_text(got), in_name, in ? " " + to_text(in->shape) : "", to_text(want));
  set_tensor(f, c, "target", got);
  const bool classes_last = !in || (in->shape.size() == 3 && got.size() == 2 && in->shape[1] == got[1]);
  if (classes_last) {
    f.fix.push_back(fmt::format("move the classes to dimension 1: `{}.transpose(1, 2)`", in_name));
    f.fix.push_back(
        fmt::format("or join batch and positions: `{}.flatten(0, 1)` with `{}.flatten()`", in_name, name));
  } else {
    f.fix.push_back(fmt::format("give {} the shape {}", name, to_text(want)));
  }
}

void one_dimensional(const HostCase& c, Finding& f) {
  const std::string in = c.name("input", "input"), target = c.name("target", "target");
  f.summary =
      fmt::format("cross_entropy: {} has no batch dimension but {} holds {} labels", in, target, c.number(1));
  f.fix.push_back(
      fmt::format("scores must have shape [{}, classes]; a `squeeze()` or a reduction over the wrong "
                  "dimension took the batch away from {}",
                  c.number(1), in));
  f.fix.push_back(fmt::format("for a single sample use `{}.unsqueeze(0)`", in));
}

void class_weights(const HostCase& c, Finding& f) {
  f.summary = fmt::format("cross_entropy: the class weights have {} elements but there are {} classes",
                          c.number(2), c.number(1));
  f.valid = Valid{fmt::format("[{}]", c.number(1)), {}, {}, {}};
  f.fix.push_back(fmt::format(
      "pass weight=torch.tensor([...]) with {} elements, one per output of the last layer", c.number(1)));
  if (c.number(2) < c.number(1)) {
    f.fix.push_back(fmt::format(
        "weights that are counted lack the classes that do not occur: count over all {0}, "
        "torch.bincount(labels, minlength={0}), and give those a weight of your own; the outputs stay {0}",
        c.number(1)));
  }
}

void margin_target(const HostCase& c, Finding& f) {
  const Shape target = c.shape(1), in = c.shape(2);
  f.summary =
      fmt::format("{}: target has shape {} but input has shape {}", f.op, to_text(target), to_text(in));
  f.fix.push_back(fmt::format("give the target {}", in.empty() ? "the shape of the input" : to_text(in)));
}

void multi_margin(const HostCase& c, Finding& f) {
  f.summary = fmt::format("multi_margin_loss: target has shape {} but input {} needs {}", to_text(c.shape(2)),
                          to_text(c.shape(3)), to_text(c.shape(1)));
  f.fix.push_back(fmt::format("pass one class number per sample: a target of shape {}", to_text(c.shape(1))));
}

void margin_ranking(const HostCase& c, Finding& f) {
  const Shape first = c.shape(1), second = c.shape(2), target = c.shape(3);
  f.summary = fmt::format(
      "margin_ranking_loss: input1 {}, input2 {} and target {} must have the same number of dimensions",
      to_text(first), to_text(second), to_text(target));
  for (const auto& [role, shape] : {std::pair{"input2", second}, std::pair{"target", target}}) {
    const std::string call = call_that_fits(c.name(role, role), shape, first);
    if (!call.empty()) f.fix.push_back(fmt::format("use `{}`", call));
  }
  if (f.fix.empty()) f.fix.push_back(fmt::format("give all three the shape {}", to_text(first)));
}

// nn.AdaptiveLogSoftmaxWithLoss looks at its targets itself, on the host.
void adaptive_target(const HostCase& c, Finding& f) {
  const std::int64_t last = c.number(1), min = c.number(2), max = c.number(3);
  const Operand* target = c.by_role("target_");
  const std::string name = c.name("target_", "target");
  if (target) f.tensor = TensorInfo{target->shape, target->dtype, target->device};
  f.valid = Valid{fmt::format("[0, {}]", last), Scalar{std::int64_t{0}}, Scalar{last}, {}};
  f.summary = fmt::format("AdaptiveLogSoftmaxWithLoss: {} holds values from {} to {}, but n_classes is {}",
                          name, min, max, last + 1);
  if (max > last) {
    f.fix.push_back(fmt::format(
        "if there are meant to be more than {} classes: "
        "AdaptiveLogSoftmaxWithLoss(..., n_classes=N), N as many as there are classes, {} at least",
        last + 1, max + 1));
  }
  f.fix.push_back(fmt::format(
      "if some mark what is not to count, leave them out, here and in the input (this loss has no "
      "ignore_index): keep = {0} != PAD",
      name));
  f.fix.push_back(fmt::format("if not, correct the data: print({0}[({0} < 0) | ({0} > {1})])", name, last));
}

// PyTorch names the label, but not the number of classes.
void label(const HostCase& c, Finding& f) {
  const std::int64_t value = c.number(1);
  const Operand* target = c.by_role("target");
  const std::string loss = c.functional().starts_with("nll_loss") ? "nll_loss" : "cross_entropy";
  if (target) f.tensor = TensorInfo{target->shape, target->dtype, target->device};
  f.element = Element{{}, Scalar{value}, std::nullopt, std::nullopt, std::nullopt, std::nullopt};
  if (value < 0) {
    f.summary = fmt::format("{}: {} holds the label {}, but class labels start at 0", loss,
                            c.name("target", "target"), value);
    if (marks_ignored(value))
      f.fix.push_back(fmt::format("if {0} marks what is not to count: ignore_index={0}", value));
  } else {
    f.summary = fmt::format("{}: {} holds the label {}, but the input has at most {} classes", loss,
                            c.name("target", "target"), value, value);
    f.fix.push_back(
        fmt::format("if {} is a class: give the last layer (and num_labels) as many outputs as there are "
                    "classes, at least {}",
                    value, value == std::numeric_limits<std::int64_t>::max() ? value : value + 1));
    if (value == 255) f.fix.push_back("if it marks what is not to count: ignore_index=255");
  }
  f.fix.push_back(
      "if not, correct the data: labels must be 0 to the number of classes - 1; print labels.min(), "
      "labels.max()");
}

}  // namespace

// Both sides must have one shape: BCE, MSE and their kin.
void explain_same_shape(const HostCase& c, Finding& f, const Shape& input, const Shape& target) {
  const std::string in = c.name("input", input, "input"), want = c.name("target", target, "target");
  f.summary = fmt::format("{}: {} has shape {} but {} has shape {}; they must be the same", f.op, want,
                          to_text(target), in, to_text(input));
  set_tensor(f, c, "target", target);
  const std::string shrink = call_that_fits(in, input, target), grow = call_that_fits(want, target, input);
  if (input.size() >= target.size() && !shrink.empty()) f.fix.push_back(fmt::format("use `{}`", shrink));
  if (!grow.empty()) f.fix.push_back(fmt::format("{}use `{}`", f.fix.empty() ? "" : "or ", grow));
  if (input.size() < target.size() && !shrink.empty()) f.fix.push_back(fmt::format("or use `{}`", shrink));
  if (!f.fix.empty()) return;
  if (input.size() == target.size() + 1 && input.front() == target.front() && input[1] > 1) {
    f.fix.push_back(
        fmt::format("{} outputs per sample and one label each are for "
                    "`F.cross_entropy({}, {}.long())`",
                    input[1], in, want));
    f.fix.push_back(
        fmt::format("or make the labels one-hot: `F.one_hot({}.long(), {}).float()`", want, input[1]));
  } else if (!input.empty() && !target.empty() && input.front() != target.front()) {
    f.fix.push_back(
        fmt::format("{} holds {} samples and {} holds {}: take both from the same batch, and keep "
                    "the batch dimension (`{}.flatten(1)` instead of `view(-1, ...)`)",
                    in, input.front(), want, target.front(), in));
  } else {
    f.fix.push_back(fmt::format("make the last layer give {} value(s) per sample, or reshape {} to {}",
                                target.empty() ? 1 : target.back(), want, to_text(input)));
  }
}

std::span<const HostErrorRow> loss_rows() {
  static const auto* const rows = new std::vector<HostErrorRow>{
      {"nll.label",
       "IndexError",
       R"(Target (-?\d+) is out of bounds\.)",
       "Target...is out of bounds.",
       Cause::kLabelOutOfRange,
       "nll_loss",
       "target",
       label,
       {"Target 5 is out of bounds."},
       nullptr,
       {.refine = Refine::kLabelOrClasses}},
      {"bce_with_logits.size",
       "ValueError",
       R"(Target size \(torch\.Size\(\[([\d, ]*)\]\)\) must be the same as input size \(torch\.Size\(\[([\d, ]*)\]\)\))",
       "must be the same as input size",
       kShape,
       "binary_cross_entropy_with_logits",
       "target",
       target_then_input,
       {"Target size (torch.Size([4])) must be the same as input size (torch.Size([4, 1]))"}},
      {"bce.size",
       "ValueError",
       R"(Using a target size \(torch\.Size\(\[([\d, ]*)\]\)\) that is different to the input size \(torch\.Size\(\[([\d, ]*)\]\)\) is deprecated)",
       "that is different to the input size",
       kShape,
       "binary_cross_entropy",
       "target",
       target_then_input,
       {"Using a target size (torch.Size([4])) that is different to the input size (torch.Size([4, 1])) is "
        "deprecated. "
        "Please ensure they have the same size."}},
      {"nll.batch",
       "ValueError",
       R"(Expected input batch_size \((\d+)\) to match target batch_size \((\d+)\))",
       "to match target batch_size",
       kShape,
       "cross_entropy",
       "target",
       batch_sizes,
       {"Expected input batch_size (4) to match target batch_size (3)."}},
      {"nll.multi_target",
       "RuntimeError",
       R"((?:(?:0D or )?1D target tensor expected, )?multi-target not supported)",
       "multi-target not supported",
       kShape,
       "cross_entropy",
       "target",
       multi_target,
       {"0D or 1D target tensor expected, multi-target not supported",
        "1D target tensor expected, multi-target not supported",
        "multi-target not supported at /pytorch/aten/src/THCUNN/generic/ClassNLLCriterion.cu:15"}},
      {"nll2d.size",
       "RuntimeError|ValueError",
       R"(size mismatch \(got input: \[([\d, ]*)\] ?, target: \[([\d, ]*)\])",
       "size mismatch (got input",
       kShape,
       "cross_entropy",
       "target",
       spatial_sizes,
       {"size mismatch (got input: [2, 3, 8, 8] , target: [2, 4, 4]"}},
      {"nll2d.dims",
       "RuntimeError",
       R"(1?only batches of spatial targets supported \((?:non-empty )?3D tensors\) but got targets of)",
       "only batches of spatial targets supported",
       kShape,
       "cross_entropy",
       "target",
       spatial_dims,
       {"only batches of spatial targets supported (3D tensors) but got targets of dimension: 4",
        "1only batches of spatial targets supported (3D tensors) but got targets of dimension: 4",
        "only batches of spatial targets supported (3D tensors) but got targets of size: : [2, 1, 8, 8]"}},
      {"nll.sequence",
       "RuntimeError|ValueError",
       R"(Expected target size (?:torch\.Size)?\(?\[?([\d, ]+)\]?\)?, got (?:torch\.Size\()?\[([\d, ]*)\])",
       "Expected target size",
       kShape,
       "cross_entropy",
       "target",
       sequence_target,
       {"Expected target size [2, 7], got [2, 5]", "Expected target size (2, 7), got torch.Size([2, 5])"}},
      {"nll.one_dimensional",
       "ValueError",
       R"(For 1D input, 1D target must have size 1, but got target size: (\d+))",
       "For 1D input, 1D target must have size 1",
       kShape,
       "cross_entropy",
       "input",
       one_dimensional,
       {"For 1D input, 1D target must have size 1, but got target size: 2"}},
      {"nll.weight",
       "RuntimeError",
       R"(weight tensor should be defined either for all(?: (\d+))? classes or no classes but got weight tensor of shape: \[([\d, ]*)\])",
       "classes or no classes but got weight tensor",
       kShape,
       "cross_entropy",
       "weight",
       class_weights,
       {"weight tensor should be defined either for all 3 classes or no classes but got weight tensor of "
        "shape: [4]"}},
      {"multi_margin.size",
       "RuntimeError",
       R"(multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples \(batch size\)\. Expected target size \[(\d+)\], but got \[([\d, ]*)\]\. Input has shape \[([\d, ]*)\])",
       "multi_margin_loss: target tensor should be 1-D",
       kShape,
       "multi_margin_loss",
       "target",
       multi_margin,
       {"multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples "
        "(batch size). "
        "Expected target size [4], but got [3]. Input has shape [4, 3]."}},
      {"multilabel_margin.size",
       "RuntimeError",
       R"(inconsistent target size: \[([\d, ]*)\] for input of size: \[([\d, ]*)\])",
       "inconsistent target size",
       kShape,
       "multilabel_margin_loss",
       "target",
       margin_target,
       {"inconsistent target size: [3] for input of size: [4, 3]"}},
      {"margin_ranking.dims",
       "RuntimeError",
       R"(margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: torch\.Size\(\[([\d, ]*)\]\), input2: torch\.Size\(\[([\d, ]*)\]\), target: torch\.Size\(\[([\d, ]*)\]\))",
       "All input tensors should have same dimension but got sizes",
       kShape,
       "margin_ranking_loss",
       "input2",
       margin_ranking,
       {"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
        "torch.Size([4]), input2: "
        "torch.Size([4, 1]), target: torch.Size([4]) "}},
      {"adaptive.target",
       "RuntimeError",
       R"(Target values should be in \[0, (\d{1,18})\], but values in range \[(-?\d{1,18}), (-?\d{1,18})\] were found)",
       "Target values should be in",
       Cause::kLabelOutOfRange,
       "AdaptiveLogSoftmaxWithLoss",
       "target",
       adaptive_target,
       {"Target values should be in [0, 19], but values in range [1, 25] were found. "}},
  };
  return *rows;
}

}  // namespace trapline::diagnose
