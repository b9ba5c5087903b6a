// Weights and probabilities that something is drawn by.
#include <fmt/format.h>

#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {

bool are_weights(const ViolationWriter& w) {
  return !w.facts.scores && !nan_when(w, "generation") && !nan_when(w, "policy");
}

namespace {

// Inf / Inf is NaN, a finite number / Inf is 0.
bool zeros_beside(const ViolationWriter& w) {
  const auto& [min, max] = std::pair(w.facts.scan.min, w.facts.scan.max);
  const bool some = w.facts.scan.bad < w.facts.scan.total && w.facts.tensor.shape.size() < 2;
  return some && min && max && as_double(*min) == 0 && as_double(*max) == 0;
}

void fix_weights(ViolationWriter& w) {
  const std::string look = w.look_at_value("the input");
  if (w.facts.scan.reason == Reason::kInf) {
    w.fix(fmt::format(
        "{}: a weight is Inf after a division by 0, exp() of more than 88, or a record far out of "
        "the range of the others",
        look));
  } else {
    w.fix(
        fmt::format("{}: 0/0 (a row that is divided by its own sum of 0), Inf/Inf (a weight that a division "
                    "by 0 or an overflow made infinite, divided by its sum), the root or the logarithm of a "
                    "negative number, or a missing value makes NaN",
                    look));
  }
}

}  // namespace

void fix_multinomial(ViolationWriter& w) {
  switch (w.facts.scan.reason) {
    case Reason::kNan:
      if (!nan_made(w) && w.facts.computed && w.facts.computed->line > 0 && weights_are_finite(w)) {
        const ComputedFact& made = *w.facts.computed;
        w.fix(
            fmt::format("look at `{}{}` (line {}): where what it is divided by is 0, a row of zeros as a "
                        "rule, 0/0 is NaN; where that has overflowed (a large power, exp), Inf/Inf is",
                        made.name.empty() ? std::string() : made.name + " = ", made.text, made.line));
        break;
      }
      if (explain_nan(w)) break;
      if (zeros_beside(w)) {
        w.fix(fmt::format(
            "the others are 0: an infinite weight divided by a sum that it made infinite is NaN, and all "
            "others "
            "0: {}, for a division by 0 or an exp() that overflows before the sum",
            w.look_at_value("the input")));
        break;
      }
      if (are_weights(w)) {
        fix_weights(w);
        break;
      }
      if (w.facts.sample && w.facts.sample->by == "rows" && weights_are_finite(w)) {
        w.fix(
            "that row of the batch holds NaN or Inf itself: look at what makes it: log(0), a division by 0, "
            "a "
            "missing value");
        break;
      }
      if (nan_when(w, "") && weights_are_finite(w) && w.facts.tensor.dtype != "float16") {
        w.fix(
            "find the first step that gives NaN, backwards from " + w.own("here") +
            ": assert torch.isfinite(x).all() after "
            "each; with finite weights it is 0/0, as a rule, as where a row is divided by its own sum of 0, "
            "or a softmax over a row in which every score is -inf");
        break;
      }
      // Where the model was looked at, and is not float16, nothing overflows there.
      // A mask of -inf is no fault there.
      w.fix(fmt::format("check the logits: assert (logits < float('inf')).all() before softmax{}",
                        w.facts.weights && w.facts.tensor.dtype != "float16"
                            ? ""
                            : "; float16 overflows: torch.softmax(logits.float(), dim=-1)"));
      if (nan_when(w, "generation")) {
        w.fix(
            "a row in which every logit is -inf gives NaN: keep at least one token in top-k, top-p and "
            "bad-word filters");
        w.fix("temperature must be above 0, and not so small that logits / temperature overflows");
      } else if (nan_when(w, "policy")) {
        w.fix(
            "a state in which the action mask leaves nothing gives NaN, as every logit is -inf there: see to "
            "it "
            "before (a pass, an end), or find why it leaves nothing");
      } else if (nan_when(w, "")) {
        w.fix(
            "a row in which every score is -inf (a mask, a filter) gives NaN: find why it leaves nothing of "
            "it");
      }
      break;
    case Reason::kInf:
      if (w.facts.scan.value && as_double(*w.facts.scan.value) < 0) {
        w.fix(w.look_at_value("the input") +
              ": -inf takes a place out of scores, before the softmax; out of probabilities 0 does");
        break;
      }
      if (explain_nan(w)) break;
      if (are_weights(w)) {
        fix_weights(w);
        break;
      }
      w.fix(fmt::format(
          "{}: exp() of more than 88 is Inf in float32, and so is a "
          "division by 0; of scores, torch.softmax(logits.float(), dim=-1) in place of exp(logits)",
          w.look_at_value("the input")));
      if (nan_when(w, "generation"))
        w.fix("temperature must be above 0, and not so small that logits / temperature overflows");
      else if (nan_when(w, ""))
        w.fix("if the scores are divided by a temperature, it must not be so small that they overflow");
      break;
    case Reason::kZeroSum:
      if (w.facts.tensor.shape.size() < 2) {
        w.fix(
            fmt::format("all {} weights are 0: {}: a mask that leaves nothing, or numbers of "
                        "another scale (exp() of less than -104 is 0 in float32)",
                        w.facts.scan.total, w.look_at_value("the input")));
        break;
      }
      w.count_rows();
      w.fix(fmt::format("every weight of that row is 0: {}", w.look_at_value("the input")));
      w.fix(
          "if the weights come from a mask, it leaves nothing, or only what is 0 already: check it for that "
          "row; where a softmax makes the weights, mask its scores instead, by -inf");
      break;
    default: {
      // Logits are of both signs, as a rule; weights that were computed wrongly are so in a few places.
      const bool weights = w.facts.scan.bad * 4 < w.facts.scan.total;
      if (w.facts.sums_to_one) {
        constexpr double kRounding = -1e-4;
        const bool rounded = w.facts.scan.min && as_double(*w.facts.scan.min) > kRounding;
        const std::string look = w.look_at_value("the input");
        w.fix(rounded
                  ? fmt::format("each row adds up to 1, and what is below 0 is so close to it that it may be "
                                "left of a 0 by arithmetic that rounds (a root, an inverse or a product of "
                                "matrices): {}; where it is that, p.clamp(min=0) of it",
                                look)
                  : fmt::format("each row adds up to 1, so these are probabilities and no logits: {}: "
                                "differences of cumulative ones (of thresholds, of a CDF) are negative where "
                                "these are not in order",
                                look));
        break;
      }
      // What float32 leaves of a difference of numbers as large as the others.
      constexpr double kRounding = 1e-6;
      const auto& [least, most] = std::pair(w.facts.scan.min, w.facts.scan.max);
      if (least && most && as_double(*least) >= -kRounding * as_double(*most)) {
        w.fix(fmt::format(
            "{}: {} is so close to 0, beside {}, that arithmetic that rounds may have made it of a 0; "
            "where it is that, .clamp(min=0) of it",
            w.look_at_value("the input"), to_text(*least), to_text(*most)));
        break;
      }
      w.fix(fmt::format("{}: {} of {} {} below 0, and none may be", w.look_at_value("the input"),
                        w.facts.scan.bad, w.facts.scan.total, w.facts.scan.bad == 1 ? "is" : "are"));
      if (!weights && !are_weights(w))  // something in the program speaks of scores
        w.guess(
            "if these are raw scores as a layer puts them out (logits): "
            "torch.multinomial(torch.softmax(logits, "
            "dim=-1), ...), or Categorical(logits=logits).sample()");
      break;
    }
  }
  w.fix_sample();
}

// The weights of a data sampler: no model is asked, so no logits, no temperature and no learning rate.
void write_sampler(ViolationWriter& w) {
  const SamplerFact& sampler = *w.facts.sampler;
  w.finding().device_assert = false;  // a sampler draws in host memory, whatever the model is on
  std::string where = sampler.name;
  if (!w.facts.index.empty()) where = to_text(Variable{sampler.name, w.facts.index});
  if (sampler.variable) where += fmt::format(" ({})", to_text(*sampler.variable));
  const std::string name =
      sampler.variable ? fmt::format("`{}`", sampler.variable->name) : fmt::format("`{}`", sampler.name);
  const Reason reason = w.facts.scan.reason;
  if (reason == Reason::kZeroSum) {
    w.finding().summary = fmt::format("multinomial: all of {} are 0: the sampler can draw nothing", name);
    w.fix(fmt::format("look at where {} is computed: at least one weight must be above 0", name));
    return;
  }
  w.finding().summary = fmt::format(
      "multinomial: {} is {}, but the weights of a sampler must be finite and >= 0", where, w.value());
  if (reason == Reason::kNan || reason == Reason::kInf) {
    w.fix(
        fmt::format("look at where {} is computed: 1 / 0 is Inf, of the count of a class without a sample "
                    "(counts.clamp(min=1)) or of the logarithm of 1, and 0 * Inf is NaN",
                    name));
    return;
  }
  w.fix(fmt::format("look at where {} is computed: {} of {} are below 0", name, w.facts.scan.bad,
                    w.facts.scan.total));
}

}  // namespace trapline::diagnose
