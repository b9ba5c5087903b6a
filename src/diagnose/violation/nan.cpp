// Where a NaN comes from: the weights, a banned row, what went in, the dtype; else the command that finds it.
#include "diagnose/nan.hpp"

#include <fmt/format.h>

#include <cmath>

#include "diagnose/frame.hpp"
#include "diagnose/host/facts.hpp"
#include "diagnose/operations.hpp"
#include "diagnose/violation/writer.hpp"
#include "diagnose/watch.hpp"

namespace trapline::diagnose {
namespace {

constexpr int kMaxFloat16 = 65504;

const NanFact& nan_of(const ViolationWriter& w) {
  static const NanFact nothing;
  return w.facts.nan ? *w.facts.nan : nothing;
}

bool not_finite(const ViolationWriter& w) {
  return w.facts.scan.reason == Reason::kNan || w.facts.scan.reason == Reason::kInf;
}

std::string lead(const ViolationWriter& w, const char* joint) {
  return weights_are_finite(w) ? fmt::format("; the model's weights are finite, {}", joint) : "; ";
}

void watch(ViolationWriter& w) {
  if (nan_of(w).command.empty() || (w.facts.assigned && w.facts.assigned->entered)) return;  // no layer's
  w.fix(fmt::format("let the layer be named that made the first NaN: trapline run --watch nan -- {}",
                    nan_of(w).command));
}

// Where the program's own losses turned: the step of the first bad one broke the weights, or the one before.
std::string first_bad_loss(const ViolationWriter& w) {
  const NanFact& nan = nan_of(w);
  if (!nan.loss) return {};
  return fmt::format(
      "{} is the first of {} that is not finite: look at the batch and the learning rate of that step and of "
      "the one before; to stop there: assert torch.isfinite(loss) before loss.backward()",
      to_text(*nan.loss), nan.losses > 0 ? fmt::format("{} losses", nan.losses) : std::string("the losses"));
}

// The step before this one broke the model: nothing that this call was given is to blame.
bool weights(ViolationWriter& w) {
  if (!w.facts.weights || w.facts.weights->bad == 0) return false;
  const WeightsFact& weights = *w.facts.weights;
  w.finding().summary += fmt::format("; the weights are NaN or Inf already: {} of {} parameters, `{}` first",
                                     weights.bad, weights.total, weights.name);
  if (!nan_of(w).trains) {
    w.fix(
        "if they were loaded so, look at the checkpoint: [n for n, p in model.named_parameters() if not "
        "p.isfinite().all()]; take an earlier one, or save it again: a conversion to float16 makes Inf above "
        "65504");
    const std::string loss = first_bad_loss(w);
    w.fix(loss.empty() ? "if they were trained in this program, stop at the first bad loss: assert "
                         "torch.isfinite(loss) before loss.backward()"
                       : "if they were trained in this program: " + loss);
    return true;
  }
  const NanFact& nan = nan_of(w);
  if (nan.data && nan.input) {
    w.fix(fmt::format(
        "{} is {} itself, which no step made: a missing value there breaks the weights in one step; "
        "fill it in, or leave its row out",
        to_text(*nan.input), nan.value && std::isnan(as_double(*nan.value)) ? "NaN" : "Inf"));
  }
  if (w.facts.watch && tells_place(*w.facts.watch)) return true;  // which is said below
  const std::string loss = first_bad_loss(w);
  w.fix(loss.empty()
            ? "if an earlier step broke the weights, stop at the first bad loss: assert "
              "torch.isfinite(loss) before loss.backward(); where no loss was bad, look at what else writes "
              "them: load_state_dict, an average of models, a copy"
            : "an earlier step broke the weights: " + loss);
  watch(w);
  w.fix(
      "NaN comes of missing data, 0/0 (the std of a constant column, or of one row), log of 0 or below, a "
      "softmax over a row that is masked everywhere, float16 overflow, a learning rate that is too high");
  return true;
}

// A running statistic that took a NaN in: it stays, and makes one of everything from then on.
bool buffer(ViolationWriter& w) {
  if (!w.facts.weights || w.facts.weights->buffer.empty() || !not_finite(w)) return false;
  w.finding().sample.reset();  // whose row it is says nothing of the buffer
  w.finding().summary += fmt::format("; the weights are finite, but the buffer `{}` of the model holds NaN",
                                     w.facts.weights->buffer);
  w.fix(fmt::format(
      "`{}` holds it from before this call: look at what writes it: where it is computed once, a root or a "
      "power of a number below 0, a logarithm, a division by 0; where each batch adds to it (a running "
      "statistic), the first one that has no row, one row (its std), or a NaN",
      w.facts.weights->buffer));
  w.fix("if it is a running statistic, it does not recover: begin again, or take a checkpoint from before");
  return true;
}

// -inf less -inf, as of two scores that a mask has both banned.
bool apart(ViolationWriter& w) {
  const NanFact& nan = nan_of(w);
  if (nan.apart.empty() || w.facts.scan.reason != Reason::kNan) return false;
  w.finding().summary += fmt::format("; `{}` (line {}) takes one infinity from another there, which is NaN",
                                     nan.apart, nan.apart_line);
  w.fix(
      fmt::format("put the mask's -inf into what comes out of `{}`, and into neither of the two", nan.apart));
  return true;
}

bool banned(ViolationWriter& w) {
  const NanFact& nan = nan_of(w);
  if (nan.banned.empty() || w.facts.scan.reason != Reason::kNan) return false;
  w.finding().summary += fmt::format(
      "; every score of row {} is -inf in `{}`: nothing is left to draw from, and softmax makes NaN of it",
      nan.banned_row, nan.banned);
  w.fix(nan_when(w, "generation") ? "a logits processor, a mask or a filter bans every choice of that row: "
                                    "leave at least one (top-k, top-p, "
                                    "bad words, prefix_allowed_tokens_fn)"
                                  : "a mask or a filter bans every choice of that row: leave at least one");
  w.fix(fmt::format(
      "or, where nothing may be chosen in truth (a game that is over, an empty list), leave row {} "
      "out before the call",
      nan.banned_row));
  return true;
}

bool divided_by_zero(ViolationWriter& w) {
  const std::string& zero = nan_of(w).zero;
  if (zero.empty() || !not_finite(w)) return false;
  w.finding().summary += fmt::format("; `{}` is 0, and a division by it makes Inf and NaN", zero);
  w.fix(fmt::format(
      "refuse a temperature of 0, or take the best choice without drawing: argmax(-1) where `{}` is 0",
      zero));
  return true;
}

bool input(ViolationWriter& w) {
  const NanFact& nan = nan_of(w);
  if (!nan.input || !not_finite(w)) return false;
  const std::string where = to_text(*nan.input);
  const char* what = std::isnan(as_double(*nan.value)) ? "NaN" : "Inf";
  if (nan.module.empty()) {
    w.finding().summary += lead(w, "") + fmt::format("{} is {}", where, what);
  } else {
    w.finding().summary += lead(w, "") + fmt::format("the input of `{}` is {}: {}", nan.module, what, where);
  }
  w.fix(fmt::format("find what makes {} {}, and stop there: assert that `{}` is finite before the call",
                    where, what, nan.input->name));
  if (!nan.warned.empty()) {
    for (const Warned& warned : nan.warned) w.fix(warned_text(warned));
  } else if (nan.situation == "policy") {
    w.fix(
        "an observation is NaN after a missing value in the data that the environment reads, 0/0 in step() "
        "or reset(), or a normalisation by a standard deviation of 0: (x - mean) / (std + 1e-8)");
  } else {
    w.fix(
        "missing values, 0/0, the log or root of a negative number, and a normalisation by a standard "
        "deviation of "
        "0 make NaN");
  }
  return true;
}

// Whole rows of probabilities are 0/0.
bool divides_empty_rows(const ViolationWriter& w) {
  const NanFact& nan = nan_of(w);
  const auto& shape = w.facts.tensor.shape;
  const bool draws = w.facts.contract != nullptr && w.op() == "multinomial";  // none of what PyTorch refuses
  return draws && nan.made_by == "div" && nan.made_of_finite && !shape.empty() && shape.back() > 0 &&
         w.facts.scan.bad % shape.back() == 0 && w.facts.scan.value &&
         std::isnan(as_double(*w.facts.scan.value));
}

// The operation that was given finite numbers, in the program's own statement.
bool made(ViolationWriter& w) {
  const NanFact& nan = nan_of(w);
  if (nan.made_by.empty() || !not_finite(w)) return false;
  std::string statement;
  if (!nan.made_text.empty()) {
    statement = fmt::format(" in `{}{}`", nan.made_name.empty() ? "" : nan.made_name + " = ", nan.made_text);
    if (nan.made_at) statement += fmt::format(" ({})", file_and_line(*nan.made_at));
  }
  // It takes the highest off before exp(): of finite numbers it makes finite ones.
  const bool softens = nan.made_by == "softmax" || nan.made_by == "log_softmax";
  w.finding().summary += fmt::format(
      "{}; `{}` made it {}{}", weights_are_finite(w) ? "; the model's weights are finite" : "", nan.made_by,
      nan.made_of_finite && !softens ? "of finite numbers"
                                     : "of a row that is -inf everywhere, or has an Inf",
      statement);
  w.finding().summary += made_text(nan.made_part);
  const Domain* domain = domain_of(nan.made_by);
  std::string_view advice = "look at what goes into it, and at its roots, logarithms and divisions";
  if (domain != nullptr) advice = domain->advice;
  if (divides_empty_rows(w)) {
    advice =
        "find why its divisor is 0: where exp() makes the numbers, all are too small for it (below -104 in "
        "float32): take the highest off before, or use torch.softmax; where nothing is left of a row, "
        "find why: a row of zeros has no probabilities, and multinomial refuses it as well";
  }
  w.fix(fmt::format("`{}`{}: {}", nan.made_by, statement, advice));
  return true;
}

bool half(ViolationWriter& w) {
  const NanFact& nan = nan_of(w);
  if (!not_finite(w)) return false;
  const bool argument = w.facts.tensor.dtype == "float16";
  if (nan.half.empty() && !nan.autocast && !argument) return false;
  const std::string what = !nan.half.empty() ? fmt::format("`{}` is float16", nan.half)
                           : nan.autocast    ? std::string("autocast computes in float16")
                                             : fmt::format("`{}` is float16", w.argument());
  w.finding().summary +=
      lead(w, "but ") +
      fmt::format("{}, which ends at {} and makes 0 of what is below 3e-8", what, kMaxFloat16);
  if (!nan.half.empty()) {
    const char* load =
        w.facts.resizable.empty() ? "model.to(torch.bfloat16)" : "from_pretrained(..., dtype=torch.bfloat16)";
    w.fix(fmt::format("load the model in bfloat16, which has the range of float32: {}", load));
  } else if (nan.autocast) {
    w.fix("use bfloat16, which has the range of float32: torch.autocast(..., dtype=torch.bfloat16)");
  } else {
    w.fix(fmt::format(
        "compute `{}` in float32 or bfloat16: .float() before the softmax, the sigmoid or the exp",
        w.argument()));
  }
  return true;
}

// It is about to overflow: what makes a NaN of it is one product more.
bool grown(ViolationWriter& w) {
  if (!weights_are_finite(w) || w.facts.weights->grown.empty() || !not_finite(w)) return false;
  w.finding().summary += fmt::format("; the model's weights are finite, but `{}` goes to {:.3g}",
                                     w.facts.weights->grown, w.facts.weights->to);
  w.fix(
      "if the weights grew from step to step, training has diverged: bring inputs and targets to a scale of "
      "about "
      "1, lower the learning rate, or clip the gradients: torch.nn.utils.clip_grad_norm_");
  watch(w);
  return true;
}

}  // namespace

bool weights_are_finite(const ViolationWriter& w) {
  return w.facts.weights && w.facts.weights->bad == 0 && w.facts.weights->buffer.empty();
}

bool explain_nan(ViolationWriter& w) {
  if ((w.facts.scan.reason == Reason::kNan && weights(w)) || buffer(w) || apart(w) || banned(w) || made(w) ||
      input(w) || divided_by_zero(w))
    return true;
  if (half(w)) {
    watch(w);  // a reading of the dtype, no proof
    return true;
  }
  if (grown(w)) return true;
  if (weights_are_finite(w) && not_finite(w)) w.finding().summary += "; the model's weights are finite";
  // Layers with finite weights seldom make one: what the program itself computes has no layer to be named.
  const bool drawn = w.facts.contract != nullptr && w.facts.contract->cause == Cause::kInvalidProbability;
  if (!weights_are_finite(w) || !drawn || (!nan_of(w).situation.empty() && !are_weights(w))) watch(w);
  return false;
}

bool explain_broken_weights(ViolationWriter& w) { return weights(w); }

bool nan_watched(const ViolationWriter& w) { return !nan_of(w).command.empty(); }

bool nan_when(const ViolationWriter& w, const char* situation) { return nan_of(w).situation == situation; }

bool nan_made(const ViolationWriter& w) { return !nan_of(w).made_by.empty(); }

bool nan_trains(const ViolationWriter& w) { return nan_of(w).trains; }

std::string nan_cast_source(const ViolationWriter& w) {
  const NanFact& nan = nan_of(w);
  if (!nan.input) return {};
  return fmt::format("{} is {}", to_text(*nan.input), std::isnan(as_double(*nan.value)) ? "NaN" : "Inf");
}

bool explain_host_nan(const HostError& host, const std::string& argument, Finding& finding) {
  if (!host.nan && !host.weights) {
    if (host.watch) add_watch(*host.watch, finding);
    return false;
  }
  Violation facts;
  facts.nan = host.nan;
  facts.weights = host.weights;
  facts.watch = host.watch;
  facts.column = argument;
  facts.scan.reason = Reason::kNan;
  if (finding.tensor) facts.tensor = *finding.tensor;
  ViolationWriter writer(facts, finding);
  const bool explained = explain_nan(writer);
  if (host.watch) add_watch(*host.watch, finding);
  return explained;
}

}  // namespace trapline::diagnose
