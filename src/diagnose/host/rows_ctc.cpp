// ctc_loss: log_probs, targets and their lengths that do not fit each other.
#include <fmt/format.h>

#include "diagnose/host/case.hpp"
#include "diagnose/host/rows.hpp"

namespace trapline::diagnose {
namespace {

constexpr auto kShape = Cause::kShapeMismatch;

// nn.CTCLoss asks on the host: `input_lengths` count the steps of log_probs, `target_lengths` the letters.
void ctc_lengths(const HostCase& c, Finding& f) {
  const std::string& which = c.capture(1);
  const bool most = c.capture(2) == "most";
  const std::string role = which + "_lengths";
  const Operand* operand = c.by_role(role);
  const std::string name = c.name(role, role);
  f.argument = role;
  if (operand) f.tensor = TensorInfo{operand->shape, operand->dtype, operand->device};
  f.element = c.facts().element;
  if (!f.element)
    f.element = Element{{}, Scalar{c.number(4)}, std::nullopt, std::nullopt, std::nullopt, std::nullopt};
  const std::string where = f.element->index.empty() ? name : to_text(Variable{name, f.element->index});
  f.valid = Valid{most ? fmt::format("at most {}", c.number(3)) : "at least 0", {}, {}, {}};
  if (!most) {
    f.summary = fmt::format("ctc_loss: {} is {}, but a length must not be negative", where, c.number(4));
    f.fix.push_back(fmt::format("look at where {} is computed", name));
    return;
  }
  f.summary =
      fmt::format("ctc_loss: {} is {}, but log_probs has {} time steps", where, c.number(4), c.number(3));
  f.fix.push_back(
      fmt::format("{} counts the steps that the network puts out: where strides and poolings shorten its "
                  "input, shorten the lengths in the same way (at a factor of 4: {} // 4)",
                  name, name));
  f.fix.push_back("log_probs is [time, batch, classes]: see that its first dimension is time");
}

// "log_probs is [time, batch, classes]" and not [batch, time, classes]: its first dimension is the number of
// lengths, its second is not.
bool ctc_batch_first(const Operand* scores, std::int64_t batch) {
  return scores && scores->shape.size() == 3 && scores->shape[0] == batch && scores->shape[1] != batch;
}

void ctc_transpose(const HostCase& c, Finding& f) {
  const std::string name = c.name("log_probs", "log_probs");
  f.fix.push_back(fmt::format("log_probs is [time, batch, classes]: `{}.transpose(0, 1)`", name));
}

// As many lengths as there are samples.
void ctc_counts(const HostCase& c, Finding& f) {
  const std::string role = c.capture(1) + "_lengths";
  const Operand *lengths = c.by_role(role), *scores = c.by_role("log_probs");
  const std::string name = c.name(role, role), of = c.name("log_probs", "log_probs");
  f.argument = role;
  const bool known = lengths && lengths->shape.size() == 1 && scores && scores->shape.size() >= 2;
  if (!known) {
    f.summary = fmt::format("ctc_loss: {} has to hold a length for each sample of the batch", name);
  } else {
    const std::int64_t count = lengths->shape[0];
    const std::int64_t batch = scores->shape.size() == 3 ? scores->shape[1] : 1;
    f.summary =
        fmt::format("ctc_loss: {} has {} lengths, but {} {} holds {} samples: it is [time, batch, classes]",
                    name, count, of, to_text(scores->shape), batch);
    f.tensor = TensorInfo{scores->shape, scores->dtype, scores->device};
    f.valid = Valid{fmt::format("{} lengths", batch), {}, {}, {}};
    if (ctc_batch_first(scores, count)) {
      f.argument = "log_probs";
      f.valid = Valid{fmt::format("[time, {}, classes]", count), {}, {}, {}};
      return ctc_transpose(c, f);
    }
  }
  f.fix.push_back(
      "log_probs is [time, batch, classes]: where the network puts out [batch, time, classes], it is "
      "log_probs.transpose(0, 1)");
  f.fix.push_back(fmt::format("give one number for each sample: {} = torch.full((batch,), ...)", name));
}

// A size of log_probs or of the targets: message of checkDim(), checkDimRange(), checkSize().
void ctc_sizes(const HostCase& c, Finding& f) {
  const std::string& role = c.capture(2);
  const Operand* operand = c.by_role(role);
  f.argument = role;
  if (operand) f.tensor = TensorInfo{operand->shape, operand->dtype, operand->device};
  const std::string given = operand ? " " + to_text(operand->shape) : std::string();
  std::string said = c.capture(1);
  f.summary = fmt::format("ctc_loss: {}{}: expected {}", c.name(role, role), given, said);
  if (role == "log_probs") {
    f.fix.push_back("log_probs is [time, batch, classes], or [time, classes] of one sample");
    return;
  }
  f.fix.push_back(
      "targets are [batch, longest], padded to the longest target_length, or all letters in one row, as many "
      "as target_lengths.sum()");
  const Operand *lengths = c.by_role("target_lengths"), *scores = c.by_role("log_probs");
  if (lengths && lengths->shape.size() == 1 && ctc_batch_first(scores, lengths->shape[0]))
    ctc_transpose(c, f);
}

void ctc_empty(const HostCase& c, Finding& f) {
  f.summary = fmt::format("ctc_loss: {} is empty: there is no time step", c.name("log_probs", "log_probs"));
  f.fix.push_back(
      "leave out samples that the network puts nothing out for: strides and poolings may leave no step");
}

void ctc_integral(const HostCase& c, Finding& f) {
  const std::string role = c.capture(1) + "_lengths";
  const std::string name = c.name(role, role);
  f.argument = role;
  if (const Operand* operand = c.by_role(role))
    f.tensor = TensorInfo{operand->shape, operand->dtype, operand->device};
  f.summary = fmt::format("ctc_loss: {} has to hold whole numbers", name);
  f.fix.push_back(
      fmt::format("use `{}.long()`; where they are shares of the longest, round them to steps first", name));
}

// The number of the blank itself, whatever the targets are.
void ctc_blank(const HostCase& c, Finding& f) {
  const Operand* scores = c.by_role("log_probs");
  f.summary = "ctc_loss: blank is not one of the classes of log_probs";
  if (scores && !scores->shape.empty()) {
    const std::int64_t classes = scores->shape.back();
    f.argument = "log_probs";  // the blank itself is a number of the call's
    f.tensor = TensorInfo{scores->shape, scores->dtype, scores->device};
    f.summary += fmt::format(", which has {}: valid are [0, {})", classes, classes);
    f.valid = Valid{fmt::format("[0, {})", classes), Scalar{std::int64_t{0}}, Scalar{classes - 1}, {}};
  }
  f.fix.push_back(
      "the blank is a class of its own: the layer before needs one output more than the alphabet has "
      "letters");
  f.fix.push_back("blank is its number there: 0 where letters begin at 1, else the number of letters");
}

}  // namespace

std::span<const HostErrorRow> ctc_rows() {
  static const auto* const rows = new std::vector<HostErrorRow>{
      {"ctc.lengths",
       "RuntimeError",
       R"(Expected (input|target)_lengths to have value at (most|least) (\d{1,18}), but got value (-?\d{1,18}))",
       "_lengths to have value at",
       kShape,
       "ctc_loss",
       "input_lengths",
       ctc_lengths,
       {"Expected input_lengths to have value at most 16, but got value 48 (while checking arguments for "
        "ctc_loss_allocate_outputs)",
        "Expected target_lengths to have value at least 0, but got value -1 (while checking arguments for "
        "ctc_loss_allocate_outputs)"}},
      // LossCTC.cpp asks so in each of its kernels: ctc_loss_allocate_outputs, ctc_loss_gpu.
      {"ctc.counts",
       "RuntimeError",
       R"((input|target)_lengths must be of size batch_size)",
       "_lengths must be of size batch_size",
       kShape,
       "ctc_loss",
       "input_lengths",
       ctc_counts,
       {"input_lengths must be of size batch_size", "target_lengths must be of size batch_size"}},
      {"ctc.sizes",
       "RuntimeError",
       R"(Expected ([^()]{1,80}) for argument #\d '(log_probs|targets)' \(while checking arguments for ctc_loss_(?:allocate_outputs|gpu)\))",
       "(while checking arguments for ctc_loss_",
       kShape,
       "ctc_loss",
       "targets",
       ctc_sizes,
       {"Expected tensor to have size 30 at dimension 0, but got size 29 for argument #2 'targets' (while "
        "checking arguments for ctc_loss_allocate_outputs)",
        "Expected 3-dimensional tensor, but got 5-dimensional tensor for argument #1 'log_probs' (while "
        "checking arguments for ctc_loss_gpu)"}},
      {"ctc.empty",
       "RuntimeError",
       R"(log_probs tensor must not be empty)",
       "log_probs tensor must not be empty",
       kShape,
       "ctc_loss",
       "log_probs",
       ctc_empty,
       {"log_probs tensor must not be empty"}},
      {"ctc.integral",
       "RuntimeError",
       R"((input|target)_lengths must be integral)",
       "_lengths must be integral",
       Cause::kDtypeMismatch,
       "ctc_loss",
       "input_lengths",
       ctc_integral,
       {"input_lengths must be integral", "target_lengths must be integral"}},
      {"ctc.blank",
       "RuntimeError",
       R"(blank must be in label range)",
       "blank must be in label range",
       Cause::kNumClassesMismatch,
       "ctc_loss",
       "blank",
       ctc_blank,
       {"blank must be in label range"}},
  };
  return *rows;
}

}  // namespace trapline::diagnose
