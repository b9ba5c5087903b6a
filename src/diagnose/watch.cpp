#include "diagnose/watch.hpp"

#include <fmt/format.h>

#include "diagnose/diagnose.hpp"

namespace trapline::diagnose {
namespace {

// ", by `log`"
std::string by_text(const WatchSeen& seen) {
  return seen.op.empty() ? std::string() : fmt::format(", by `{}`", seen.op);
}

// "the output of `fc1` (Linear)", "the gradient of `fc1.weight`", "the loss"
std::string place_text(const WatchSeen& seen, bool looked = true) {
  if (seen.kind == "input") {
    return seen.type.empty() ? "the data" : fmt::format("what goes into {}", seen.type);
  }
  if (seen.kind == "weights")
    return fmt::format("the weights that the step began with: {}", layer_name(seen.name, '`'));
  if (seen.kind == "optimizer")
    return fmt::format("the optimizer's update of {}", layer_name(seen.name, '`'));
  if (seen.kind == "loss") return (looked ? "the loss" : "what leads to the loss") + by_text(seen);
  const std::string noun = seen.kind == "output" ? "output" : "gradient";
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

std::string look_text(const WatchFact& watch) {
  const WatchSeen& at = watch.inf_before ? *watch.inf_before : watch.first;
  if (!watch.looked && at.kind == "loss" && at.op.empty())
    return fmt::format("look at {} {} and the one before; `--watch nan` looks at every layer", at.unit,
                       at.step);
  if (at.kind == "input")
    return "the numbers are not finite before the model: mend them, or leave them out; "
           "torch.isfinite(inputs).all() tells";
  if (at.kind == "weights")
    return fmt::format(
        "look at the checkpoint or the initialisation: the weights were not finite before {} {}", at.unit,
        at.step);
  if (at.kind == "optimizer")
    return fmt::format(
        "{}look at the optimizer in step {}: its state and its settings (lr, eps) before and after",
        watch.gradients_finite
            ? fmt::format("the gradients of step {} were finite, the update was not: ", at.step)
            : std::string(),
        at.step);
  if (at.kind == "loss" && at.op.empty()) {
    return fmt::format("look at the loss of {} {}: log(0), 0/0 or an empty mean", at.unit, at.step);
  }
  if (at.kind == "loss" && (at.op == "var" || at.op == "std"))
    return fmt::format(
        "`{}` of one row is NaN: leave out batches of one (drop_last=True), or take correction=0", at.op);
  if (at.kind == "loss")
    return fmt::format("keep the input of `{}` where it is defined: add an epsilon or clamp it", at.op);
  if (at.kind == "gradient" && at.op.empty() && watch.half)
    return fmt::format(
        "the loss of {} {} was finite, and something is float16: look at the loss scale, and at sums",
        at.unit, at.step);
  if (at.kind == "gradient") {
    return fmt::format(
        "the forward pass was finite: look at functions without a finite derivative (sqrt or pow at 0, "
        "where() around log) on the way to {}",
        place_text(at));
  }
  return fmt::format("print the input of {} in {} {}{}",
                     at.name.empty() ? "that layer" : layer_name(at.name, '`'), at.unit, at.step,
                     watch.finite_before && !at.op.empty()
                         ? fmt::format(": `{}` was given finite numbers", at.op)
                         : std::string());
}

// Saved tensors name what may have made it, and a parameter's gradient only where it arrived.
bool is_seen(const WatchFact& watch) {
  const WatchSeen& first = watch.first;
  return first.kind != "gradient" && (first.kind != "loss" || (watch.looked && first.op.empty()));
}

}  // namespace

std::string watch_text(const WatchFact& watch) {
  if (!watch.looked && watch.first.kind == "loss" && watch.first.op.empty()) {
    return fmt::format("the first {} that was noticed was in {} {}; its place was not found",
                       watch.nan ? "NaN" : "Inf", watch.first.unit, watch.first.step);
  }
  std::string text = fmt::format("the first {} of this run was {}", watch.nan ? "NaN" : "Inf",
                                 where_text(watch.first, watch.looked));
  if (watch.inf_before) text += fmt::format("; before it, Inf {}", where_text(*watch.inf_before));
  return text;
}

void add_watch(const WatchFact& watch, Finding& finding) {
  finding.evidence.push_back({"watch", std::nullopt, watch_text(watch)});
  finding.fix.insert(finding.fix.begin(), look_text(watch));
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
  if (!first.name.empty()) finding.layer = Layer{first.name, first.type, "", {}, {}, ""};
  finding.origin = watch.seen.origin;
  finding.sample = watch.seen.sample;
  if (!watch.seen.growth.empty()) finding.evidence.push_back({"watch", std::nullopt, watch.seen.growth});
  // What the place rules out is not advised.
  const bool vague =
      first.op.empty() && first.kind != "input" && first.kind != "weights" && first.kind != "optimizer";
  const bool overflowed = !watch.seen.nan || watch.seen.inf_before;
  finding.fix = {look_text(watch.seen)};
  if (!watch.seen.growth.empty())
    finding.fix.emplace_back("lower the learning rate or clip gradients: the numbers grew from step to step");
  if (watch.seen.half && (overflowed || vague))
    finding.fix.emplace_back(
        "float16 overflows at 65504: use bfloat16, or torch.amp.GradScaler with float16");
  if (vague && !watch.seen.input_finite)
    finding.fix.emplace_back("check the data: assert torch.isfinite(inputs).all()");
  finding.process = watch.process;
  return finding;
}

}  // namespace trapline::diagnose
