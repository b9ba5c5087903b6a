#include "diagnose/watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "diagnose/diagnose.hpp"
#include "diagnose/frame.hpp"
#include "diagnose/operations.hpp"
#include "diagnose/sample.hpp"

namespace trapline::diagnose {
namespace {

// ", by `log`"; of a gradient ", by the derivative of `log`"
std::string by_text(const WatchSeen& seen) {
  if (seen.op.empty()) return {};
  if (seen.op == "cast") return ", by a cast to another type";
  const bool derived = (seen.derived || seen.kind == "gradient" || seen.kind == "optimizer") &&
                       !seen.op.ends_with(".backward");
  return fmt::format(", by {}`{}`", derived ? "the derivative of " : "", seen.op);
}

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

// "torch.stack([b[1] for b in batch])"
bool puts_together(std::string_view text) {
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

// "`log` was given finite numbers: clamp ..."; empty: nothing is known of the operation.
std::string domain_help(const WatchFact& watch, const std::string& op) {
  // Its logarithm is finite but for a score of -inf; a row of nothing else is NaN.
  if (!watch.nan && (op == "logsoftmax" || op == "_log_softmax"))
    return fmt::format(
        "`{}`: a score of -inf (a mask) stays -inf: the loss must not meet it, be it as the target's, by "
        "label_smoothing or in a KL divergence",
        op);
  if (!watch.nan && picks(op))
    return fmt::format(
        "`{}` picked an infinity that was there on purpose (a mask's -inf): what it picks must not be masked",
        op);
  if (watch.nan && !watch.finite_before && op == "mul")
    return "`mul`: 0 times an infinity: look at which of its two factors is infinite (the logarithm of 0, a "
           "mask)";
  const Domain* domain = domain_of(op);
  if (domain == nullptr || (watch.first.kind == "output" && !watch.finite_before && !domain->of_any)) {
    return {};
  }
  const std::string given = watch.finite_before ? " was given finite numbers" : "";
  if (watch.own) return fmt::format("{}; only if they are right: {}", own_text(op, given), domain->advice);
  return fmt::format("`{}`{}: {}", op, given, domain->advice);
}

// "the derivative of `sqrt`, in `norm` (Norm)"; "`Scale.backward`"
std::string derivative_text(const WatchFact& watch) {
  const std::string& op = watch.first.op;
  std::string text =
      op.ends_with(".backward") ? fmt::format("`{}`", op) : fmt::format("the derivative of `{}`", op);
  if (!watch.backward_name.empty()) {
    text += fmt::format(", in {} ({})", layer_name(watch.backward_name, '`'), watch.backward_type);
  } else if (!watch.backward_type.empty()) {
    text += fmt::format(", in {}", watch.backward_type);
  } else {
    text += ", between the modules and the loss";
  }
  return text;
}

std::string derivative_help(const WatchFact& watch) {
  const WatchSeen& at = watch.inf_before ? *watch.inf_before : watch.first;
  const std::string& op = at.op;
  if (op.ends_with(".backward") && !watch.backward && !watch.origin)
    return fmt::format("look at the divisions and roots of `{}`: no other derivative here can be the one",
                       op);
  if (op.ends_with(".backward"))
    return fmt::format("`{}` was given finite gradients and made others: look at its divisions and roots",
                       op);
  const Point* point = point_of(op);
  if (point == nullptr) {
    return fmt::format(
        "`{}` was finite in the forward pass and its derivative was not: look at what it was "
        "given in {} {}",
        op, at.unit, at.step);
  }
  return fmt::format(
      "the derivative of `{}` is not finite {}: keep what goes into it away from there (an epsilon, a "
      "clamp); "
      "a where() behind it does not help, one before it does",
      op, point->where);
}

std::string written_after(const WatchSeen& seen) {
  if (seen.written == "loss") return fmt::format("the `backward` of the {} before", seen.unit);
  return seen.written == "step" ? "the optimizer's step" : "`backward`";
}

// "`fc.bias` and 3 others"
std::string weights_text(const WatchSeen& seen, const char* unnamed) {
  const std::string name = seen.name.empty() ? unnamed : layer_name(seen.name, '`');
  if (seen.others <= 0) return name;
  return fmt::format("{} and {} other{}", name, seen.others, seen.others == 1 ? "" : "s");
}

// "the output of `fc1` (Linear)", "the gradient of `fc1.weight`", "the loss"
std::string place_text(const WatchSeen& seen, bool looked = true) {
  if (seen.kind == "input") {
    return seen.type.empty() ? "the data" : fmt::format("what goes into {}", seen.type);
  }
  if (seen.kind == "target") return "the targets that the loss was given";
  if (!seen.written.empty())
    return seen.written == "forward"
               ? fmt::format("{}, which the forward pass itself has written", weights_text(seen, "a weight"))
               : fmt::format("{}, which the program itself changed after {}", weights_text(seen, "a weight"),
                             written_after(seen));
  if (seen.kind == "weights")
    return fmt::format(
        "the weights {}: {}{}",
        seen.beside ? "of another module than the one that is trained (a teacher, a target network)"
                    : "that the step began with",
        seen.row ? fmt::format("row {} of ", *seen.row) : std::string(), layer_name(seen.name, '`'));
  if (seen.kind == "optimizer")
    return fmt::format("{} update of {}", seen.unit == "step" ? "the optimizer's" : "the program's",
                       weights_text(seen, "a weight"));
  if (seen.kind == "state")
    return fmt::format("the optimizer's `{}` of {}", seen.state,
                       seen.name.empty() ? "a weight" : layer_name(seen.name, '`'));
  if (seen.kind == "loss") return (looked ? "the loss" : "what leads to the loss") + by_text(seen);
  const std::string noun = seen.kind == "output" ? "output" : "gradient";
  if (seen.name.empty() && noun == "gradient") return "the gradients" + by_text(seen);
  if (seen.name.empty()) {
    return (seen.type.empty() ? fmt::format("the {} of a layer without a name", noun)
                              : fmt::format("the {} of a {}", noun, seen.type)) +
           by_text(seen);
  }
  const std::string name = layer_name(seen.name, '`');
  return (seen.type.empty() ? fmt::format("the {} of {}", noun, name)
                            : fmt::format("the {} of {} ({})", noun, name, seen.type)) +
         by_text(seen);
}

std::string where_text(const WatchSeen& seen, bool looked = true) {
  return fmt::format("in {} {}, in {}", seen.unit, seen.step, place_text(seen, looked));
}

// Its gradients were finite, and an operation of the step has made other numbers of them.
bool is_made_in_update(const WatchFact& watch) {
  return watch.first.kind == "optimizer" && watch.gradients_finite && !watch.first.op.empty();
}

// " (Normal, whose scale is -0.3)"
std::string site_text(const WatchFact& watch) {
  if (watch.site_type.empty()) return {};
  if (watch.site_parameter.empty()) return fmt::format(" ({})", watch.site_type);
  return fmt::format(" ({}, whose {} is {:g})", watch.site_type, watch.site_parameter, watch.site_value);
}

// An update whose gradients nobody has looked at: they may have been bad before it.
bool has_unseen_gradients(const WatchFact& watch) {
  return watch.first.kind == "optimizer" && !watch.gradients_finite && watch.setting.empty() &&
         !watch.inf_before;
}

std::string look_text(const WatchFact& watch) {
  const WatchSeen& at = watch.inf_before ? *watch.inf_before : watch.first;
  if (!watch.looked && at.kind == "loss" && at.op.empty())
    return fmt::format("look at {} {} and the one before; `--watch nan` looks at every layer", at.unit,
                       at.step);
  if (!watch.looked && at.kind == "gradient")
    return fmt::format(
        "the loss of {} {} was finite: look at functions without a finite derivative (sqrt or pow at 0, "
        "where() "
        "around log) and at the loss scale; `--watch nan` looks at every layer",
        at.unit, at.step);
  if (!watch.looked && at.kind == "input")
    return fmt::format(
        "look at what is computed before {}, and from what: log, division or sqrt of the data, exp",
        at.type.empty() ? "the model" : at.type);
  if (at.kind == "input")
    return "the numbers are not finite before the model: mend them, or leave them out; "
           "torch.isfinite(inputs).all() tells";
  if (at.kind == "target" && watch.made)
    return "the targets are not finite: if they are data, mend them or leave them out; if the program "
           "computes "
           "them (a target network, a return, a logarithm of the data), look at the logs, divisions and exps "
           "of that";
  if (at.kind == "target")
    return "the targets are not finite: mend them, or leave them out; torch.isfinite(targets).all() tells";
  if (at.written == "forward")
    return fmt::format(
        "{} was finite before the forward pass of {} {}, which wrote it (as a layer does that takes its "
        "first "
        "values from data): look for a column that is constant, whose std is 0, or a batch of one",
        at.name.empty() ? "the weight" : layer_name(at.name, '`'), at.unit, at.step);
  if (!at.written.empty())
    return fmt::format(
        "{} was finite after {}, and it was no optimizer's step that changed that: look at what else writes "
        "weights there (a perturbation, a moving average, a projection, pruning), and what it divides by",
        at.name.empty() ? "the weight" : layer_name(at.name, '`'), written_after(at));
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
    return "the gradients are so large that their squares overflow, and the weight hardly changes from then "
           "on: look "
           "for a fill value in the data (1e20, 9.97e36); clip the gradients, and begin again with a new "
           "optimizer";
  if (at.kind == "optimizer" && !watch.setting.empty())
    return fmt::format("set the optimizer's {}: it cannot be right",
                       watch.setting.substr(0, watch.setting.find('='))) +
           fmt::format(" as it is ({})", watch.setting);
  if (has_unseen_gradients(watch) && !at.op.empty()) return derivative_help(watch);
  if (has_unseen_gradients(watch)) {
    const std::string points = points_text(watch.made_with);
    return fmt::format(
        "look at {} {}: its gradients, which were not looked at, and the update that they made{}", at.unit,
        at.step, points.empty() ? "" : "; a derivative that is not finite can be the one of " + points);
  }
  if (is_made_in_update(watch))
    return fmt::format(
        "the gradients of step {} were finite, `{}` in the update was not: look at what it was given there "
        "(a "
        "norm, a root without an eps, or a bias correction 1 - beta ** step that is 0; a number below 0)",
        at.step, at.op);
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
  if (at.kind == "loss" && watch.factor && puts_together(watch.factor_text))
    return fmt::format(
        "`{0}` is not finite, and `{1}` only puts together what was so before: look at what made the parts "
        "(a buffer, "
        "a list), when it did",
        watch.factor_name, watch.factor_text);
  if (at.kind == "loss" && watch.factor) {
    const std::string where = watch.factor_text.empty()
                                  ? "where it is computed"
                                  : fmt::format("`{} = {}`", watch.factor_name, watch.factor_text);
    return fmt::format("{} is not finite: look at {}: a division by 0, log(0), the std of one element",
                       watch.factor_name.empty()
                           ? "what the loss is multiplied or divided with (weights, advantages, a mask)"
                           : fmt::format("`{}`", watch.factor_name),
                       where);
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
        "`{}` had nothing to average: {}; leave such a batch out of the loss", at.op,
        at.op == "mean" ? "it was given no element" : "every target was ignore_index, or of weight 0");
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
  return fmt::format("print the input of {} in {} {}{}",
                     at.name.empty() ? "that layer" : layer_name(at.name, '`'), at.unit, at.step,
                     watch.finite_before && !at.op.empty()
                         ? fmt::format(": `{}` was given finite numbers", at.op)
                         : std::string());
}

// Saved tensors name what may have made it, and a parameter's gradient only where it arrived.
bool is_seen(const WatchFact& watch) {
  const WatchSeen& first = watch.first;
  if (watch.backward) return true;
  if (first.kind == "optimizer") return watch.gradients_finite;
  if (first.kind == "output" && !first.op.empty()) return watch.finite_before;
  if (first.kind == "input" || first.kind == "target") return watch.looked && !watch.late && !watch.made;
  if (first.beside) return false;  // bad weights and a bad target: that the one made the other nobody saw
  return first.kind != "gradient" && (first.kind != "loss" || (watch.looked && first.op.empty()));
}

}  // namespace

std::string watch_text(const WatchFact& watch) {
  const std::string which =
      fmt::format("{} {}", watch.later ? "a later" : "the first", watch.nan ? "NaN" : "Inf");
  if (!watch.looked && watch.first.kind == "loss" && watch.first.op.empty()) {
    return fmt::format("{} that was noticed was in {} {}; its place was not found", which, watch.first.unit,
                       watch.first.step);
  }
  if (!watch.looked && watch.first.kind == "gradient") {
    return fmt::format("{} that was noticed was in the gradients of {} {}: its loss was finite", which,
                       watch.first.unit, watch.first.step);
  }
  if (watch.backward) {
    return fmt::format("{} of this run was in {} {}, in {}: the forward pass was finite", which,
                       watch.first.unit, watch.first.step, derivative_text(watch));
  }
  if (has_unseen_gradients(watch) && !watch.first.op.empty()) {
    return fmt::format("{} of this run was in {} {}, in the gradients{}", which, watch.first.unit,
                       watch.first.step, by_text(watch.first));
  }
  if (has_unseen_gradients(watch) && (watch.or_before || !watch.first.name.empty())) {
    return fmt::format("{} of this run was in {} {}{}, in the gradient or the update of {}", which,
                       watch.first.unit, watch.first.step, watch.or_before ? " or before it" : "",
                       watch.first.name.empty() ? "a weight" : layer_name(watch.first.name, '`'));
  }
  if (watch.factor)
    return fmt::format("{} of this run was in {} {}, in {} the loss is multiplied or divided with (`{}`)",
                       which, watch.first.unit, watch.first.step,
                       watch.factor_name.empty() ? "what" : fmt::format("`{}`, which", watch.factor_name),
                       watch.first.op);
  if (watch.first.since_start)
    return fmt::format(
        "{} Inf loss of this run was in {} {}: it is the first to meet the -inf in {}, which was there "
        "before "
        "the first step",
        watch.later ? "a later" : "the first", watch.first.unit, watch.first.step,
        layer_name(watch.first.name, '`'));
  const bool of_data = watch.first.kind == "input" || watch.first.kind == "target";
  if (of_data && watch.element && watch.looked)
    return fmt::format("{} of this run was {}: {} is {}", which, where_text(watch.first),
                       to_text(*watch.element), watch.element_nan ? "NaN" : "Inf");
  if (watch.first.kind == "target" && watch.made)
    return fmt::format("{} that was noticed was in {} {}, in the targets that the loss was given", which,
                       watch.first.unit, watch.first.step);
  if (watch.changed)
    return fmt::format(
        "{} of this run was in {} {}, in the gradients, between `backward` and the optimizer's step", which,
        watch.first.unit, watch.first.step);
  std::string text = fmt::format("{} of this run was {}", which, where_text(watch.first, watch.looked));
  if (!watch.site.empty()) text += fmt::format(", at the site `{}`{}", watch.site, site_text(watch));
  if (is_made_in_update(watch)) text += fmt::format(", by `{}`", watch.first.op);
  if (watch.inf_before) text += fmt::format("; before it, Inf {}", where_text(*watch.inf_before));
  return text;
}

bool tells_place(const WatchFact& watch) {
  const WatchSeen& at = watch.inf_before ? *watch.inf_before : watch.first;
  return !at.op.empty() || (watch.looked && at.kind != "gradient" && at.kind != "loss");
}

// " (main.py:27, of sample 1377)": the finding's own line and sample are those of the fault.
std::string made_at(const WatchFact& watch) {
  std::string text = watch.origin ? file_and_line(*watch.origin) : std::string();
  if (watch.sample && watch.sample->dataset_index)
    text += fmt::format("{}sample {}", text.empty() ? "" : ", of ", *watch.sample->dataset_index);
  else if (watch.sample && watch.sample->batch)
    text += fmt::format("{}batch {}", text.empty() ? "" : ", of ", *watch.sample->batch);
  return text.empty() ? text : fmt::format(" ({})", text);
}

void add_watch(const WatchFact& watch, Finding& finding) {
  finding.evidence.push_back({"watch", std::nullopt, watch_text(watch)});
  finding.last_steps = watch.last_steps;
  std::string help = look_text(watch);
  const WatchSeen& at = watch.inf_before ? *watch.inf_before : watch.first;
  const std::string when = fmt::format("{} {}", at.unit, at.step);
  if (help.find(when) == std::string::npos) {
    help = fmt::format("in {}{}: {}", when, made_at(watch), help);
  } else {
    help += made_at(watch);
  }
  finding.fix.insert(finding.fix.begin(), std::move(help));
}

Finding finding_of(const Watch& watch) {
  Finding finding;
  finding.cause = Cause::kNonFiniteValue;
  finding.certainty = is_seen(watch.seen) ? Certainty::kProven : Certainty::kLikely;
  finding.role = Role::kRoot;
  finding.device_assert = false;
  finding.contained = true;
  finding.summary = watch_text(watch.seen);
  const WatchSeen& first = watch.seen.first;
  if (watch.seen.backward) {
    if (!watch.seen.backward_name.empty())
      finding.layer = Layer{watch.seen.backward_name, watch.seen.backward_type, "", {}, {}, ""};
  } else if (!first.name.empty()) {
    finding.layer = Layer{first.name, first.type, "", {}, {}, ""};
  }
  finding.last_steps = watch.seen.last_steps;
  finding.origin = watch.seen.origin;
  finding.sample = watch.seen.sample;
  if (watch.seen.drawn)
    finding.evidence.push_back(
        {"watch", std::nullopt,
         "with other random numbers the same statements are finite: what was drawn is to "
         "blame, and no sample"});
  if (!watch.seen.growth.empty()) finding.evidence.push_back({"watch", std::nullopt, watch.seen.growth});
  // What the place rules out is not advised.
  // Data, targets, weights and updates are told as what they are: neither a rate nor a dtype made them.
  const bool given = first.kind == "input" || first.kind == "target" || first.kind == "weights";
  const bool vague =
      first.op.empty() && !given && first.kind != "optimizer" && first.kind != "state" && !watch.seen.changed;
  const bool overflowed = !watch.seen.nan || watch.seen.inf_before;
  const bool grew = !watch.seen.growth.empty() && !watch.seen.nan && first.kind == "loss" && first.op.empty();
  if (!grew) finding.fix = {look_text(watch.seen)};  // a loss that has grown until it overflowed is explained
  const bool by_growth = vague || (overflowed && !given) ||
                         (first.kind == "optimizer" && first.op.empty() && watch.seen.setting.empty() &&
                          !(watch.seen.nan && has_unseen_gradients(watch.seen)));
  if (!watch.seen.growth.empty() && by_growth)
    finding.fix.emplace_back("lower the learning rate or clip gradients: the numbers grew from step to step");
  const bool cast = watch.seen.inf_before ? watch.seen.inf_before->op == "cast" : first.op == "cast";
  if (watch.seen.half && !cast && first.kind != "optimizer" && ((overflowed && !given) || vague))
    finding.fix.emplace_back(
        "float16 overflows at 65504: use bfloat16, or torch.amp.GradScaler with float16");
  if (vague && !watch.seen.input_finite)
    finding.fix.emplace_back("check the data: assert torch.isfinite(inputs).all()");
  if (finding.sample &&
      (first.kind == "output" || first.kind == "gradient" || first.kind == "loss" || first.kind == "state")) {
    if (std::string look = look_at(*finding.sample); !look.empty()) finding.fix.push_back(std::move(look));
  }
  finding.process = watch.process;
  return finding;
}

}  // namespace trapline::diagnose
