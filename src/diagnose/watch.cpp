#include "diagnose/watch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "diagnose/diagnose.hpp"
#include "diagnose/frame.hpp"
#include "diagnose/operations.hpp"
#include "diagnose/sample.hpp"
#include "diagnose/watch_words.hpp"

namespace trapline::diagnose {
namespace {

// ", by `log`"; of a gradient ", by the derivative of `log`"
std::string by_text(const WatchSeen& seen) {
  if (seen.op.empty()) return {};
  if (seen.op == "cast") return ", by a cast to another type";
  const bool made = (seen.kind == "gradient" && !seen.by_hand) || seen.kind == "optimizer";
  const bool derived = (seen.derived || made) && !seen.op.ends_with(".backward");
  return fmt::format(", by {}`{}`", derived ? "the derivative of " : "", seen.op);
}

bool zero_breaks(std::string_view op) {
  constexpr std::array kOperations{"div", "reciprocal", "rsqrt", "log", "log2", "log10", "linalg.inv"};
  return std::ranges::find(kOperations, op) != kOperations.end();
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

std::string where_text(const WatchSeen& seen, bool looked = true) {
  return fmt::format("in {} {}, in {}", seen.unit, seen.step, place_text(seen, looked));
}

// The same of what came before it, without what both have: "there, by `bmm`".
std::string before_text(const WatchSeen& first, const WatchSeen& before) {
  if (before.step != first.step) return where_text(before);
  const bool same = before.kind == first.kind && before.name == first.name && before.type == first.type;
  if (same) return "there" + by_text(before);
  // The operation is inside: its result need not be what the layer puts out.
  WatchSeen layer = before;
  layer.op.clear();
  const std::string place = place_text(layer, true);
  constexpr std::string_view kOutput = "the output of ";
  const bool inside = !before.op.empty() && place.starts_with(kOutput);
  return "in " + (inside ? place.substr(kOutput.size()) : place) + by_text(before);
}

// " (Normal, whose scale is -0.3)"
std::string site_text(const WatchFact& watch) {
  if (watch.site_type.empty()) return {};
  if (watch.site_parameter.empty()) return fmt::format(" ({})", watch.site_type);
  return fmt::format(" ({}, whose {} is {:g})", watch.site_type, watch.site_parameter, watch.site_value);
}

// Saved tensors name what may have made it, and a parameter's gradient only where it arrived.
bool is_seen(const WatchFact& watch) {
  const WatchSeen& first = watch.first;
  if (watch.backward || first.given) return true;
  if (first.kind == "optimizer") return watch.gradients_finite;
  if (first.written == "first") return false;  // that it was written is seen, not what
  if (first.kind == "output" && !first.op.empty()) return watch.finite_before;
  if (first.kind == "input" || first.kind == "target") return watch.looked && !watch.late && !watch.made;
  if (first.beside) return false;  // bad weights and a bad target: that the one made the other nobody saw
  return first.kind != "gradient" && (first.kind != "loss" || (watch.looked && first.op.empty()));
}

// "`fc.bias` and 3 others"
std::string weights_text(const WatchSeen& seen, const char* unnamed) {
  std::string name = seen.name.empty() ? unnamed : layer_name(seen.name, '`');
  if (seen.others <= 0) return name;
  return fmt::format("{} and {} other{}", name, seen.others, seen.others == 1 ? "" : "s");
}

}  // namespace

std::string written_after(const WatchSeen& seen) {
  if (seen.written == "loss") return fmt::format("the `backward` of the {} before", seen.unit);
  return seen.written == "step" ? "the optimizer's step" : "`backward`";
}

std::string place_text(const WatchSeen& seen, bool looked) {
  if (seen.kind == "input") {
    if (!seen.name.empty())
      return fmt::format("what goes into {} ({})", layer_name(seen.name, '`'), seen.type);
    return seen.type.empty() ? "the data" : fmt::format("what goes into {}", seen.type);
  }
  if (seen.kind == "target") return "the targets or weights that the loss was given";
  if (seen.written == "first")
    return fmt::format("{}, which the program itself has written besides the optimizer's steps",
                       weights_text(seen, "a weight"));
  if (seen.written == "loaded")
    return fmt::format("{}, which `load_state_dict` has put in place{}", weights_text(seen, "a weight"),
                       seen.op.empty() ? std::string() : fmt::format("; `{}` made it", seen.op));
  if (!seen.written.empty())
    return seen.written == "forward"
               ? fmt::format("{}, which the forward pass itself has written", weights_text(seen, "a weight"))
               : fmt::format("{}, which the program itself changed after {}", weights_text(seen, "a weight"),
                             written_after(seen));
  if (seen.kind == "weights" && seen.since_made)
    return fmt::format("the buffer {}, which has held it{} since it was made", layer_name(seen.name, '`'),
                       seen.at.empty() ? "" : fmt::format(" at [{}]", fmt::join(seen.at, ", ")));
  if (seen.kind == "weights" && seen.buffer && !seen.beside)
    return fmt::format("the buffer {}, which held it before the forward pass", layer_name(seen.name, '`'));
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
  if (seen.kind == "loss")
    return (looked && !seen.leads ? "the loss" : "what leads to the loss") + by_text(seen);
  const std::string noun = seen.kind == "output" ? "output" : "gradient";
  if (seen.given && seen.by_hand) return "gradients that the program has written itself" + by_text(seen);
  if (seen.given) return "the gradient that `backward` was given";
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

bool is_made_in_update(const WatchFact& watch) {
  return watch.first.kind == "optimizer" && watch.gradients_finite && !watch.first.op.empty();
}

bool has_unseen_gradients(const WatchFact& watch) {
  return watch.first.kind == "optimizer" && !watch.gradients_finite && watch.setting.empty() &&
         !watch.inf_before;
}

// The text of it all, without whose step it is.
std::string plain_text(const WatchFact& watch) {
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
    const char* value = watch.element_nan ? "NaN" : "Inf";
    const std::string left =
        !watch.left_out ? ""
        : watch.element ? fmt::format("; it leaves out {}, which is {}", to_text(*watch.element), value)
                        : "; it leaves out what is not finite in the data";
    return fmt::format("{} of this run was in {} {}, in {}: the loss was finite{}", which, watch.first.unit,
                       watch.first.step, derivative_text(watch), left);
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
    return fmt::format("{} that was noticed was in {} {}, in the targets or weights that the loss was given",
                       which, watch.first.unit, watch.first.step);
  if (watch.changed)
    return fmt::format(
        "{} of this run was in {} {}, in the gradients, between `backward` and the optimizer's step", which,
        watch.first.unit, watch.first.step);
  std::string text = fmt::format("{} of this run was {}", which, where_text(watch.first, watch.looked));
  const bool open = watch.first.kind == "loss" && watch.looked && watch.first.op.empty() && !watch.origin;
  if (open && watch.site.empty()) text += ", or in what it was given beside the model's output";
  if (!watch.site.empty()) text += fmt::format(", at the site `{}`{}", watch.site, site_text(watch));
  if (is_made_in_update(watch)) text += fmt::format(", by `{}`", watch.first.op);
  if (watch.first.kind == "input" && watch.element)
    text += fmt::format(": {} is {}", to_text(*watch.element), watch.element_nan ? "NaN" : "Inf");
  if (watch.inf_before) text += "; before it, Inf " + before_text(watch.first, *watch.inf_before);
  const WatchSeen& at = watch.inf_before ? *watch.inf_before : watch.first;
  // A sample says more.
  if (!at.op.empty() && !(watch.sample && !watch.sample->likely)) text += made_text(watch.part);
  return text;
}

std::string watch_text(const WatchFact& watch) {
  std::string text = plain_text(watch);
  const WatchSeen& first = watch.first;
  const std::string step = fmt::format("{} {}", first.unit, first.step);
  const std::size_t at = text.find(step);
  if (first.optimizers < 2 || at == std::string::npos) return text;
  return text.insert(at + step.size(), first.uneven ? " of the optimizer that steps most"
                                                    : fmt::format(" of the {} optimizers", first.optimizers));
}

bool tells_place(const WatchFact& watch) {
  const WatchSeen& at = watch.inf_before ? *watch.inf_before : watch.first;
  return !at.op.empty() || (watch.looked && at.kind != "gradient" && at.kind != "loss");
}

// " (main.py:27, of sample 1377)": the finding's own line and sample are those of the fault.
std::string made_at(const WatchFact& watch) {
  std::string text = watch.origin ? file_and_line(*watch.origin) : std::string();
  if (watch.sample && watch.sample->dataset_index) {
    const bool named =
        watch.sample->dataset && !watch.sample->dataset->name.empty() && watch.sample->loader.empty();
    text += text.empty() ? "" : ", of ";
    text += named ? fmt::format("{}[{}]", watch.sample->dataset->name, *watch.sample->dataset_index)
                  : fmt::format("sample {}", *watch.sample->dataset_index);
  } else if (watch.sample && watch.sample->batch) {
    text += fmt::format("{}batch {}", text.empty() ? "" : ", of ", *watch.sample->batch);
  }
  return text.empty() ? text : fmt::format(" ({})", text);
}

namespace {

// Data, targets and weights are told as what they are: no rate made them.
bool is_given(const WatchSeen& first) {
  return first.given || first.kind == "input" || first.kind == "target" || first.kind == "weights";
}

bool is_vague(const WatchFact& watch) {
  const WatchSeen& first = watch.first;
  return first.op.empty() && !is_given(first) && first.kind != "optimizer" && first.kind != "state" &&
         !watch.changed;
}

bool has_overflowed(const WatchFact& watch) { return !watch.nan || watch.inf_before; }

// Empty: numbers did not grow, or what was seen has another reason.
std::string growth_help(const WatchFact& watch) {
  const WatchSeen& first = watch.first;
  const bool by_growth = is_vague(watch) || (has_overflowed(watch) && !is_given(first)) ||
                         (first.kind == "optimizer" && first.op.empty() && watch.setting.empty() &&
                          !(watch.nan && has_unseen_gradients(watch)));
  return watch.growth.empty() || !by_growth
             ? std::string()
             : "lower the learning rate or clip gradients: the numbers grew from step to step";
}

}  // namespace

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
  if (std::string growth = growth_help(watch); !growth.empty())
    finding.fix.insert(finding.fix.begin(), std::move(growth));
  finding.fix.insert(finding.fix.begin(), std::move(help));
  for (const Warned& warned : watch.warned) finding.fix.insert(finding.fix.begin(), warned_text(warned));
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
  finding.surfaced = watch.seen.called;
  finding.sample = watch.seen.sample;
  if (watch.seen.drawn)
    finding.evidence.push_back(
        {"watch", std::nullopt,
         "with other random numbers the same statements are finite: what was drawn is to "
         "blame, and no sample"});
  if (!watch.seen.growth.empty()) finding.evidence.push_back({"watch", std::nullopt, watch.seen.growth});
  // What the place rules out is not advised.
  // Data, targets, weights and updates are told as what they are: neither a rate nor a dtype made them.
  const bool given = is_given(first);
  const bool vague = is_vague(watch.seen);
  const bool overflowed = has_overflowed(watch.seen);
  const bool grew = !watch.seen.growth.empty() && !watch.seen.nan && first.kind == "loss" && first.op.empty();
  for (const Warned& warned : watch.seen.warned) finding.fix.push_back(warned_text(warned));
  if (watch.seen.warned.size() == 1 && !finding.origin) {
    finding.origin = watch.seen.warned[0].frame;
    finding.certainty = Certainty::kLikely;
  }
  if (!watch.seen.spoilt.empty())
    finding.fix.push_back(fmt::format(
        "begin with the data: the batch of this {} holds {}{}, and those before it held none", first.unit,
        watch.seen.spoilt, watch.seen.element ? fmt::format(" ({})", to_text(*watch.seen.element)) : ""));
  if (std::string rows = rows_text(watch.seen); !rows.empty()) finding.fix.push_back(std::move(rows));
  const bool whole = 2 * watch.seen.rows_bad > watch.seen.rows_total && watch.seen.rows_bad > 1;
  if (whole) finding.sample.reset();  // no row of it is special
  if (std::string growth = growth_help(watch.seen); !growth.empty()) {
    finding.fix.push_back(std::move(growth));
    if (finding.sample && finding.sample->likely)
      finding.sample.reset();  // some row is the first to overflow
  }
  if (!grew && !(whole && watch.seen.fetched_op.empty() && watch.seen.fetched_numpy.empty()))
    finding.fix.push_back(look_text(watch.seen));  // a loss that has grown until it overflowed is explained
  const bool cast = watch.seen.inf_before ? watch.seen.inf_before->op == "cast" : first.op == "cast";
  if (watch.seen.half && !cast && first.kind != "optimizer" && ((overflowed && !given) || vague))
    finding.fix.emplace_back(
        first.kind == "gradient" || (vague && first.kind != "loss")
            ? "float16 overflows at 65504: use bfloat16, or torch.amp.GradScaler with float16"
            : "float16 overflows at 65504: compute it in bfloat16 or float32 (no GradScaler helps a forward "
              "pass)");
  const std::string& op = watch.seen.inf_before ? watch.seen.inf_before->op : first.op;
  if (watch.seen.half && watch.seen.finite_before && zero_breaks(op))
    finding.fix.push_back(fmt::format(
        "float16 holds nothing below 6e-8: if what goes into `{}` became 0 by that, compute it in float32",
        op));
  if (vague && !watch.seen.input_finite)
    finding.fix.emplace_back("check the data: torch.isfinite(x).all() of all that goes in");
  if (finding.sample &&
      (first.kind == "output" || first.kind == "gradient" || first.kind == "loss" || first.kind == "state")) {
    if (std::string look = look_at(*finding.sample); !look.empty()) finding.fix.push_back(std::move(look));
  }
  finding.process = watch.process;
  return finding;
}

}  // namespace trapline::diagnose
