#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "diagnose/frame.hpp"
#include "diagnose/operations.hpp"
#include "diagnose/position.hpp"
#include "diagnose/watch_words.hpp"

namespace trapline::diagnose {
namespace {

// "`acos` (at 1 and -1) or `div` (...)": of the operations those that have such a point, nearest to the loss
// first, and those that the program has written itself. Empty: none.
std::string points_text(const std::vector<std::string>& operations) {
  constexpr std::size_t kMost = 3;
  std::string text;
  std::size_t count = 0;
  for (const std::string& op : operations) {
    const Point* point = point_of(op);
    const bool by_hand = op.ends_with(".backward");
    if ((point == nullptr && !by_hand) || ++count > kMost) continue;
    text += fmt::format("{}`{}`{}", text.empty() ? "" : " or ", op,
                        by_hand ? std::string() : fmt::format(" ({})", point->where));
  }
  return text;
}

// An epsilon would hide what is wrong with weights and running statistics.
std::string own_text(const std::string& op, const std::string& given) {
  return fmt::format(
      "`{}`{}, the module's weights and buffers alone: look at how they came to be (an initialisation, a "
      "checkpoint, the steps before)",
      op, given);
}

// "torch.stack([b[1] for b in batch])"; not "torch.tensor(total / counts)", which makes numbers of its own.
bool puts_together(std::string_view text) {
  constexpr std::array kMakes{" / ", "** ", "log", "sqrt("};
  if (std::ranges::any_of(kMakes,
                          [&](std::string_view by) { return text.find(by) != std::string_view::npos; }))
    return false;
  constexpr std::array kCalls{"torch.stack(", "torch.cat(",         "torch.tensor(", "torch.as_tensor(",
                              "np.stack(",    "np.concatenate(",    "np.array(",     "torch.from_numpy(",
                              "numpy.stack(", "numpy.concatenate(", "torch.concat("};
  return std::ranges::any_of(kCalls, [&](std::string_view call) { return text.starts_with(call); });
}

// It makes no infinity: it takes some numbers of a tensor.
bool picks(std::string_view op) {
  constexpr std::array kPicks{"gather",        "index",    "index_select", "take",
                              "masked_select", "nll_loss", "nll_loss2d"};
  return std::ranges::find(kPicks, op) != kPicks.end();
}

// It gives an infinity of a mask where a row is nothing else.
bool reduces(std::string_view op) {
  constexpr std::array kReduces{"amax", "amin", "max", "min", "logsumexp", "max_pool2d_with_indices"};
  return std::ranges::find(kReduces, op) != kReduces.end();
}

// It has an infinity written where a condition says so.
bool puts(std::string_view op) {
  constexpr std::array kPuts{"index_put", "masked_fill",    "where",          "full",
                             "fill",      "masked_scatter", "index_fill",     "scatter",
                             "full_like", "new_full",       "_index_put_impl"};
  if (op.ends_with('_')) op.remove_suffix(1);
  return std::ranges::find(kPuts, op) != kPuts.end();
}

// "`log` was given finite numbers: clamp ..."; empty: nothing is known of the operation.
std::string domain_help(const WatchFact& watch, const std::string& op) {
  // Its logarithm is finite but for a score of -inf; a row of nothing else is NaN.
  if (!watch.nan && (op == "logsoftmax" || op == "_log_softmax"))
    return fmt::format(
        "`{}`: a score of -inf (a mask) stays -inf: the loss must not meet it, be it as the target's, by "
        "label_smoothing or in a KL divergence",
        op);
  if (!watch.nan && watch.smoothed && puts(op))
    return fmt::format(
        "label_smoothing adds the log-probabilities of all classes, also of those that `{}` gives -inf: no "
        "smoothing there, or the loss of the classes that are left alone (logits[:, :n])",
        op);
  if (!watch.nan && picks(op))
    return fmt::format(
        "`{}` picked an infinity that was there on purpose (a mask's -inf): what it picks must not be masked",
        op);
  if ((watch.inf_before || !watch.nan) && !watch.finite_before && reduces(op))
    return fmt::format(
        "`{}` of a row in which a mask of -inf leaves nothing is infinite: give such a row a number (0), or "
        "leave it out",
        op);
  if (!watch.nan && puts(op))
    return fmt::format(
        "`{}` puts an infinity there by its own condition (what lies outside a distribution's support, what "
        "a "
        "mask hides): look at what meets that, and keep it inside",
        op);
  if (watch.nan && !watch.finite_before && op == "mul")
    return "`mul`: 0 times an infinity: look at which of its two factors is infinite (the logarithm of 0, a "
           "mask)";
  const Domain* domain = domain_of(op);
  if (op.ends_with("mm") && !watch.finite_before) return {};  // 0 times an infinity is another thing
  if (domain == nullptr || (watch.first.kind == "output" && !watch.finite_before && !domain->of_any)) {
    return {};
  }
  const std::string given = watch.finite_before ? " was given finite numbers" : "";
  if (watch.origin && watch.origin->user == false)  // nobody edits it there
    return fmt::format(
        "`{}`{}, in a line of a library: {}: look at what it was given in {} {}, and how it was set up", op,
        given, domain->advice.substr(0, domain->advice.find(':')), watch.first.unit, watch.first.step);
  if (!watch.zeros.empty() && watch.nan && watch.finite_before)  // an epsilon would hide it
    return fmt::format(
        "`{}`{}: its weights `{}` are 0 everywhere: look at how they are initialised; what is added to a "
        "divisor "
        "would hide that",
        op, given, watch.zeros);
  if (watch.own) return fmt::format("{}; only if they are right: {}", own_text(op, given), domain->advice);
  return fmt::format("`{}`{}: {}", op, given, domain->advice);
}

// Of an infinity that was put there on purpose, and that nothing has replaced.
std::string met_text(const WatchFact& watch, const WatchSeen& at) {
  std::string where;
  if (const BadPart& met = watch.met_part; !met.at.empty())
    where = fmt::format(" at [{}] ({} of {})", fmt::join(met.at, ", "), met.bad, met.total);
  return fmt::format(
      "`{}` was given an infinity{}, which `{}` puts there in {}, and nothing has replaced: give what is "
      "left "
      "of it a number (0), or leave it out, before {}",
      at.op, where, watch.met_op, file_and_line(watch.met->file, watch.met->line),
      at.name.empty() ? fmt::format("`{}`", at.op) : layer_name(at.name, '`'));
}

// Of a data set's own arithmetic: it was asked for the sample once more.
std::string fetched_help(const WatchFact& watch) {
  if (!watch.fetched_numpy.empty()) {
    const bool zero = watch.fetched_numpy.starts_with("divide");
    const bool invalid = watch.fetched_numpy.starts_with("invalid");
    return fmt::format(
        "when that sample is made once more, NumPy meets an `{}` in this line{}: look at what goes in there, "
        "and mend it or leave the sample out",
        watch.fetched_numpy,
        zero      ? " (a division by 0, the log of 0)"
        : invalid ? " (0/0, the log or root of a negative number)"
                  : "");
  }
  const Domain* domain = domain_of(watch.fetched_op);
  const std::string made = fmt::format("`{}` in this line is given finite numbers{}", watch.fetched_op,
                                       watch.rows_batch ? "" : " of that sample");
  return domain == nullptr ? made + ": look at these" : fmt::format("{}: {}", made, domain->advice);
}

std::string derivative_help(const WatchFact& watch) {
  if (!watch.infinite.empty())
    return fmt::format(
        "the weight {} held an infinity before that, of which the forward pass made finite numbers and the "
        "derivative cannot: look at what put it there (the initialisation, what the program writes)",
        layer_name(watch.infinite, '`'));
  if (watch.left_out)
    return "what a loss leaves out (nanmean, a mask, where) still goes through its derivative, where 0 times "
           "NaN "
           "is NaN: take it out before, of both: seen = target.isfinite(), then the loss of pred[seen] and "
           "target[seen]";
  const WatchSeen& at = watch.inf_before ? *watch.inf_before : watch.first;
  const std::string& op = at.op;
  if (op.ends_with(".backward") && !watch.backward && !watch.origin)
    return fmt::format("look at the divisions and roots of `{}`: no other derivative here can be the one",
                       op);
  if (op.ends_with(".backward"))
    return fmt::format("`{}` was given finite gradients and made others: look at its divisions and roots",
                       op);
  const char* half = watch.half ? ", or overflowed in float16 (above 65504: compute it in float32)" : "";
  const Point* point = point_of(op);
  // What has become 0 by underflow is no 0 that an epsilon may stand for: the quotient would be another one.
  if (op == "div")
    return fmt::format(
        "the derivative of `div` is not finite where the divisor is 0 or next to it{}: where that is a sum "
        "of "
        "exp() or a "
        "product that has underflowed, compute it in logarithms (softmax, logsumexp), as an epsilon makes "
        "another "
        "number of the quotient; where 0 is to be expected, keep it away from 0 before the division; a "
        "where() behind "
        "it does not help",
        half);
  if (op == "log" || op == "log2" || op == "log10")
    return fmt::format(
        "the derivative of `{}` is not finite at 0 or next to it{}: where a product, a determinant or a sum "
        "of exp() has "
        "underflowed there, compute its logarithm itself (logdet, logsumexp, log_softmax), as an epsilon "
        "makes "
        "another number of it; where 0 is to be expected, keep it away from 0 before the `{}`; a where() "
        "behind it does "
        "not help",
        op, half, op);
  if (point == nullptr) {
    return fmt::format(
        "the loss was finite and the derivative of `{}` was not: look at what it was given in {} {}", op,
        at.unit, at.step);
  }
  if (op.starts_with("linalg.eig") || op == "linalg.svd")
    return fmt::format(
        "the derivative of `{}` is not finite {}: part them before it (another small number on each place of "
        "the diagonal; the same on all parts nothing), or use what needs no single vectors (eigvalsh, "
        "svdvals, "
        "matrix_exp)",
        op, point->where);
  if (op == "pow" && watch.half)
    return fmt::format(
        "the derivative of `pow` overflowed in float16 (above 65504), or is that of 0 with an exponent below "
        "1: "
        "compute it in float32, and look for the number that is so large");
  // No epsilon moves an infinity.
  const bool infinite = std::string_view(point->where).find("-inf") != std::string_view::npos;
  return fmt::format(
      "the derivative of `{}` is not finite {}{}: keep what goes into it away from there ({}); a where() "
      "behind it does not help, one before it does",
      op, point->where, half, infinite ? "a large negative number in place of -inf" : "an epsilon, a clamp");
}

}  // namespace

std::string rows_text(const WatchFact& watch) {
  if (watch.rows_bad < 2) return {};
  if (watch.rows_batch)
    return fmt::format(
        "all {} rows of that batch hold such numbers at the same place: look at how all of them are "
        "made",
        watch.rows_bad);
  const std::string how_many =
      fmt::format("{} of the {} rows of that data set hold such numbers", watch.rows_bad, watch.rows_total);
  if (2 * watch.rows_bad > watch.rows_total)
    return watch.rows_place.empty()
               ? how_many + ": look at how all of them are made"
               : fmt::format(
                     "{}, all at [{}] of a row: look at how that column is made (a constant one has a "
                     "deviation of 0)",
                     how_many, fmt::join(watch.rows_place, ", "));
  const bool more = watch.rows_bad > static_cast<std::int64_t>(watch.rows_first.size());
  return fmt::format("{}: {}{}", how_many, fmt::join(watch.rows_first, ", "), more ? ", ..." : "");
}

std::string look_text(const WatchFact& watch) {
  const WatchSeen& at = watch.inf_before ? *watch.inf_before : watch.first;
  if (at.given && at.by_hand && at.derived) return derivative_help(watch);
  if (std::string help = domain_help(watch, at.op); at.given && at.by_hand && !help.empty()) return help;
  if (at.given && at.by_hand)
    return watch.origin
               ? "what that line computed of finite numbers was not: look at its divisions, roots and "
                 "logarithms (a standard deviation of 0)"
               : "the program computes these gradients itself: look at its divisions, roots and "
                 "logarithms (a standard deviation of 0)";
  if (at.given)
    return "the program computes that gradient itself: look at its divisions, roots and logarithms (a "
           "probability "
           "that is 0 or 1 exactly)";
  if (!watch.looked && at.kind == "loss" && at.op.empty())
    return fmt::format("look at {} {} and the one before; `--watch nan` looks at every layer", at.unit,
                       at.step);
  if (!watch.looked && at.kind == "gradient")
    return fmt::format(
        "the loss of {} {} was finite: look at functions without a finite derivative (sqrt or pow at 0, "
        "where() "
        "around log) and at the loss scale; `--watch nan` looks at every layer",
        at.unit, at.step);
  if (!watch.fetched_op.empty() || !watch.fetched_numpy.empty()) return fetched_help(watch);
  if (!watch.looked && at.kind == "input" && watch.element)
    return fmt::format(
        "look at what makes `{}`, from its data on: a missing value, a division by 0, the log of 0, exp or a "
        "power "
        "that overflows",
        watch.element->name);
  if (!watch.looked && at.kind == "input")
    return fmt::format(
        "look at what is computed before {}, and from what: log, division or sqrt of the data, exp",
        at.type.empty() ? "the model" : at.type);
  if (at.kind == "input")
    return std::string("the numbers are not finite before the model: mend them, or leave them out") +
           (watch.sample ? "" : ", where they are made (the data, an environment, a replay buffer)") +
           "; torch.isfinite(x).all() of each tells which";
  if (at.kind == "target" && watch.made)
    return "these numbers are not finite: if they are data, mend them or leave them out; if the program "
           "computes "
           "them (a target network, a return, a logarithm of the data), look at the logs, divisions and exps "
           "of that";
  if (at.kind == "target")
    return "these numbers are not finite before the loss (targets, weights of samples): mend them, or leave "
           "them "
           "out; torch.isfinite(...).all() of each tells";
  if (at.written == "forward" && at.buffer)
    return fmt::format(
        "look at what the forward pass writes into {}: a sum that overflows (float16 holds 65504 at most), a "
        "division by 0, or rows that are not finite themselves",
        layer_name(at.name, '`'));
  if (at.written == "forward")
    return fmt::format(
        "{} was finite before the forward pass of {} {}, which wrote it (as a layer does that takes its "
        "first "
        "values from data): look for a column that is constant, whose std is 0, or a batch of one",
        at.name.empty() ? "the weight" : layer_name(at.name, '`'), at.unit, at.step);
  const Domain* domain = domain_of(at.op);
  if (at.written == "loaded" && domain != nullptr)
    return fmt::format("`{}` was given finite numbers, before the state was loaded: {}", at.op,
                       domain->advice);
  if (at.written == "loaded")
    return "look at how the state that is loaded there was made: an average of nothing is 0/0, a checkpoint "
           "may "
           "have been saved too late";
  if (at.written == "first")
    return fmt::format(
        "look at what writes {} besides the optimizer (a pretrained table, a pruning, an average): a "
        "logarithm "
        "of 0, a division by 0, a root of a number below 0",
        at.name.empty() ? "the weight" : layer_name(at.name, '`'));
  if (!at.written.empty())
    return fmt::format(
        "{} was finite after {}, and it was no optimizer's step that changed that: look at what else writes "
        "weights there (a perturbation, an average, a projection, pruning): a division by 0, a mean of "
        "nothing, a root of a "
        "number below 0",
        at.name.empty() ? "the weight" : layer_name(at.name, '`'), written_after(at));
  if (at.kind == "weights" && at.buffer && !at.type.empty())
    return fmt::format(
        "look at what {} was given when it was made (a count of 0, a share, a table): nothing in the program "
        "writes {}, and {} has no weights that training could break",
        at.type, layer_name(at.name, '`'), at.type);
  if (at.kind == "weights" && at.since_made)
    return fmt::format(
        "look at what makes {}{}: {} of {} {} not finite, and nothing has written it since{}; a look-up that "
        "is good for some rows is bad for those that name these",
        layer_name(at.name, '`'), at.text.empty() ? "" : fmt::format(" (`{}`)", at.text), at.bad, at.total,
        at.bad == 1 ? "is" : "are",
        at.text.find("empty") == std::string::npos ? "" : " (torch.empty holds whatever was there)");
  if (at.kind == "weights" && at.buffer && !at.beside)
    return fmt::format(
        "look at what writes {} (a queue, a running statistic, an average), at rows that nothing has written "
        "yet "
        "(torch.empty holds whatever was there), and at the checkpoint",
        layer_name(at.name, '`'));
  if (at.kind == "weights" && at.since_start)
    return fmt::format(
        "if the -inf is there on purpose (to forbid something), {0} {1} holds what it forbids: mend or leave "
        "out that sample; else look at the initialisation or the checkpoint (a logarithm of 0)",
        at.unit, at.step);
  if (at.kind == "weights")
    return fmt::format("look at the checkpoint{}: the weights were not finite before {} {}",
                       at.step > 1 ? ", or what the program writes there itself" : " or the initialisation",
                       at.unit, at.step);
  if (at.kind == "state")
    return "the gradients are so large that their squares overflow, and those elements of the weight stop "
           "moving: "
           "find what is so large, a fill value in the data (1e20, 9.97e36) or numbers that grow from step "
           "to "
           "step; then begin again with a new optimizer, as this one keeps the infinity";
  if (at.kind == "optimizer" && !watch.scheduler.empty())
    return fmt::format(
        "{}: {} gave it: look at what that computes of this step (one beyond its last, a power of a number "
        "below 0, a "
        "division by 0); a rate that is set beside it is overwritten",
        watch.setting, watch.scheduler);
  if (at.kind == "optimizer" && !watch.setting.empty())
    return fmt::format("set the optimizer's {}: it cannot be right",
                       watch.setting.substr(0, watch.setting.find('='))) +
           fmt::format(" as it is ({})", watch.setting);
  if (has_unseen_gradients(watch) && !at.op.empty()) return derivative_help(watch);
  if (has_unseen_gradients(watch)) {
    const std::string points = points_text(watch.made_with);
    return fmt::format(
        "look at {} {}: its gradients, which were not looked at, the update that they made, and what the "
        "program writes into "
        "weights itself{}",
        at.unit, at.step,
        points.empty() ? "" : "; a derivative that is not finite can be the one of " + points);
  }
  if (is_made_in_update(watch))
    return fmt::format(
        "the gradients of step {} were finite, `{}` in the update was not: look at what it was given there "
        "(a "
        "norm, a root without an eps, or a bias correction 1 - beta ** step that is 0; a number below 0)",
        at.step, at.op);
  if (at.kind == "optimizer" && watch.gradients_finite && at.unit == "backward pass")
    return fmt::format(
        "the gradients of backward pass {} were finite, and what the program's own update made of them was "
        "not: look at its {}",
        at.step,
        watch.divides
            ? fmt::format("only division, `{}` ({}), and at its roots and settings", watch.divides->text,
                          file_and_line(watch.divides->file, watch.divides->line))
            : std::string("divisions, roots and logarithms, and at its settings"));
  if (at.kind == "optimizer")
    return fmt::format(
        "{}look at the optimizer in step {}: its state and its settings (lr, eps) before and after",
        watch.gradients_finite
            ? fmt::format("the gradients of step {} were finite, the update was not: ", at.step)
            : std::string(),
        at.step);
  if (at.derived) return derivative_help(watch);
  if (at.kind == "loss" && at.op.empty()) {
    return fmt::format("look at the loss of {} {}: targets that are not finite, log(0), 0/0 or an empty mean",
                       at.unit, at.step);
  }
  if (const Domain* makes = domain_of(watch.factor_by); watch.factor && makes != nullptr)
    return fmt::format("`{}` made that of finite numbers in this line: {}", watch.factor_by, makes->advice);
  if (at.kind == "loss" && watch.factor && puts_together(watch.factor_text))
    return fmt::format(
        "`{0}` is not finite, and `{1}` only puts together what was so before: look at what made the parts "
        "(a buffer, "
        "a list), when it did",
        watch.factor_name, watch.factor_text);
  if (at.kind == "loss" && watch.factor) {
    std::string where = watch.factor_text.empty()
                            ? "where it is computed"
                            : fmt::format("`{} = {}`", watch.factor_name, watch.factor_text);
    if (const auto& before = watch.factor_before; before && !before->text.empty())
      where += fmt::format(", and at what it was made of there, `{}` ({})", before->text,
                           file_and_line(before->file, before->line));
    const bool one = watch.element && watch.element->name == watch.factor_name;
    return fmt::format("{} is not finite: look at {}: a division by 0, log(0), the std of one element{}",
                       watch.factor_name.empty()
                           ? "what the loss is multiplied or divided with (weights, advantages, a mask)"
                           : fmt::format("`{}`", one ? to_text(*watch.element) : watch.factor_name),
                       where, one ? ", a value that was missing" : "");
  }
  if (!watch.site_parameter.empty() && watch.first.kind == "loss")
    return fmt::format(
        "the distribution does not allow that {}: make it of a number that may be any by a transform that "
        "stays in "
        "its range (softplus or exp for what has to be above 0), or give its pyro.param that constraint",
        watch.site_parameter);
  const bool averages = watch.nan && (at.op.starts_with("nll_loss") || at.op == "mean");
  if (averages && (at.kind == "loss" || (at.kind == "output" && watch.nan && watch.finite_before)))
    return fmt::format(
        "`{}` had nothing to average: {}; find why nothing is left there; where that may happen, this term "
        "is 0: "
        "its sum, divided by the count with clamp(min=1)",
        at.op,
        at.op == "mean" ? "it was given no element"
                        : "the batch was empty, or every target was ignore_index, or of weight 0");
  if (at.kind == "loss") {
    const std::string help = domain_help(watch, at.op);
    return help.empty() ? fmt::format("look at what goes into `{}` in {} {}", at.op, at.unit, at.step) : help;
  }
  if (watch.backward || (at.kind == "gradient" && !at.op.empty())) return derivative_help(watch);
  if (watch.changed)
    return "look at what is done to the gradients between `backward` and `step`: they are divided by a norm "
           "that "
           "is 0, or clipped by one that is not finite";
  if (at.kind == "gradient" && watch.half)
    return fmt::format(
        "the loss of {} {} was finite, and something is float16: look at the loss scale, and at sums",
        at.unit, at.step);
  if (const std::string points = points_text(watch.made_with); at.kind == "gradient" && !points.empty())
    return "the loss that `backward` began from was finite, a derivative was not: here that can be the one "
           "of " +
           points;
  if (at.kind == "gradient") {
    return fmt::format(
        "the loss that `backward` began from was finite: look at functions without a finite derivative (sqrt "
        "or pow at 0, "
        "where() around log) on the way to {}",
        place_text(at));
  }
  if (std::string help = domain_help(watch, at.op); !help.empty()) return help;
  if (watch.own) return own_text(at.op, watch.finite_before ? " was given finite numbers" : "");
  if (watch.nan && watch.met && !watch.finite_before) return met_text(watch, at);
  if (watch.nan && !watch.finite_before && at.op.ends_with("mm") && at.kind == "output")
    return fmt::format(
        "`{}` was given an infinity, and 0 times that is NaN: look at the input of {} for one that is left "
        "(a "
        "maximum that begins with -inf and met nothing, a mask, a logarithm of 0)",
        at.op, layer_name(at.name, '`'));
  return fmt::format("print the input of {} in {} {}{}",
                     at.name.empty() ? "that layer" : layer_name(at.name, '`'), at.unit, at.step,
                     watch.finite_before && !at.op.empty()
                         ? fmt::format(": `{}` was given finite numbers", at.op)
                         : std::string());
}

}  // namespace trapline::diagnose
