// Floating point arguments: inputs and targets of binary_cross_entropy, probabilities and rates.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnose/violation/writer.hpp"

namespace trapline {
namespace {

constexpr double kRounding = 1e-3;

double number(const std::optional<Scalar>& value) { return value ? as_double(*value) : std::nan(""); }

// "row 3 of 8": multinomial looks at rows.
std::string row(const Case& c) {
  if (c.facts.tensor.shape.size() != 2 || c.facts.index.empty()) return "the row";
  return fmt::format("row {}", c.facts.index.front());
}

void fix_nan(const Case& c, const std::string& what) {
  if (explain_nan(c)) return c.fix_sample();
  if (!nan_watched(c)) {
    c.fix(
        fmt::format("find where the NaN begins: torch.autograd.set_detect_anomaly(True), or assert "
                    "torch.isfinite(x).all() after each layer, backwards from `{}`",
                    what));
  }
  if (nan_trains(c)) {
    c.fix("if the loss grew from step to step before, lower the learning rate");
  }
  c.fix(
      "check the data: assert torch.isfinite(inputs).all(); log of 0 or below, 0/0 and float16 overflow make "
      "NaN as well");
  c.fix_sample();
}

// A few records among many that are good.
bool few_are_bad(const Case& c) {
  constexpr std::int64_t kFew = 8;
  return c.facts.scan.bad * kFew <= c.facts.scan.total;
}

bool is_whole(double value) { return value == std::floor(value); }

// Every value of the target that is known is a whole number.
bool all_whole(const Case& c) {
  if (c.facts.whole) return *c.facts.whole;
  const auto& values = c.facts.values;
  return is_whole(number(c.facts.scan.min)) && is_whole(number(c.facts.scan.max)) &&
         std::all_of(values.begin(), values.end(),
                     [](const auto& pair) { return is_whole(as_double(pair.first)); });
}

void fix_record(const Case& c) {
  const ScanFact& scan = c.facts.scan;
  c.fix_sample();
  c.fix(fmt::format("correct or drop {}: {} of {} targets {} outside [0, 1]",
                    scan.bad == 1 ? "that record" : "those records", scan.bad, scan.total,
                    scan.bad == 1 ? "is" : "are"));
}

// Whole numbers: pixels, two labels with other names, or classes.
void fix_whole_target(const Case& c, double min, double max) {
  constexpr double kWhite = 255, kMostClasses = 100;
  if (min >= 0 && max == kWhite) {
    c.finding.summary += "; they go to 255";
    c.fix("if these are pixels of an image or a mask: target = target / 255");
    if (c.only(Scalar(kWhite))) {
      c.fix(
          "if 255 marks what is not labelled, leave it out: keep = target <= 1; loss on input[keep], "
          "target[keep]");
    }
  } else if (min == 1 && max == 2) {
    c.finding.summary += "; labels look like 1 and 2";
    c.fix("if the two classes are called 1 and 2: target = target - 1");
  } else if (min == -1 && max <= 1 && c.facts.holds_zero.value_or(false)) {
    c.finding.summary += "; -1 stands beside 0 and 1";
    c.fix(
        "if -1 marks what is not labelled, leave it out: keep = target >= 0; loss on input[keep], "
        "target[keep]");
  } else if (min == -1 && max <= 1) {
    c.finding.summary += "; labels look like -1 and 1";
    c.fix("if the two classes are called -1 and 1: target = (target + 1) / 2");
  } else if (min >= 0 && max <= kMostClasses && !few_are_bad(c)) {
    c.finding.summary += fmt::format("; they are whole numbers up to {}", to_text(*c.facts.scan.max));
    c.fix("if they are class labels: F.cross_entropy, with one output per class");
    if (max > 2) c.fix("if they are counts or grades: a loss for numbers, F.mse_loss");
  } else {
    fix_record(c);
    if (min >= 0 && max <= kMostClasses) {
      c.fix("only if there are more than two classes: F.cross_entropy, with one output per class");
    }
    return;
  }
  c.fix_sample();
}

void fix_fractions(const Case& c, double min, double max) {
  constexpr double kPercent = 100;
  if (min >= -kRounding && max <= 1 + kRounding) {
    c.finding.summary += ": rounding";
    c.fix("target = target.clamp(0, 1)");
    c.fix_sample();
    return;
  }
  const bool percent = min >= 0 && max > 2 && max <= kPercent;
  if (few_are_bad(c)) {
    fix_record(c);
    if (percent) c.fix(fmt::format("if {} is a percentage: divide it by 100, there only", c.value()));
    return;
  }
  c.finding.summary +=
      fmt::format("; they run from {} to {}", to_text(*c.facts.scan.min), to_text(*c.facts.scan.max));
  if (percent) c.fix("if these are percentages: target = target / 100");
  c.fix("if they are numbers to be predicted, no probabilities: F.mse_loss or F.l1_loss");
  c.fix(fmt::format("or rescale them to [0, 1] before training, by the range of the whole data set{}",
                    min > 1 ? ": all of these lie above 1" : ""));
  c.fix_sample();
}

void write_target(const Case& c) {
  const double min = number(c.facts.scan.min), max = number(c.facts.scan.max);
  c.finding.summary = fmt::format("{}, but targets must lie in [0, 1]", c.opening());
  if (c.facts.scan.reason == Reason::kNan) {
    if (c.all_bad()) {
      c.finding.summary =
          fmt::format("{}, as are all targets of this call: they were computed so", c.opening());
      c.fix(
          "look at where the targets are scaled: one NaN or Inf in a column, or a range of 0, makes its "
          "mean, std, min or max so, and then every value");
      return;
    }
    c.finding.summary = fmt::format("{}: a missing value in the data", c.opening());
    c.fix("leave missing targets out: keep = torch.isfinite(target); loss on input[keep], target[keep]");
    c.fix_sample();
  } else if (!std::isfinite(min) || !std::isfinite(max)) {
    c.fix("find what makes it infinite: log(0), a division by 0, or a missing value in the data");
    c.fix_sample();
  } else {
    all_whole(c) ? fix_whole_target(c, min, max) : fix_fractions(c, min, max);
  }
}

void write_input(const Case& c) {
  const double min = number(c.facts.scan.min), max = number(c.facts.scan.max);
  if (c.facts.scan.reason == Reason::kNan) {
    c.finding.summary =
        fmt::format("{}: the NaN was made before the loss; a sigmoid is not what is missing", c.opening());
    fix_nan(c, c.argument());
    return;
  }
  if (std::isinf(min) || std::isinf(max)) {
    c.finding.summary = fmt::format("{}, but {} takes probabilities in [0, 1]", c.opening(), c.op());
    fix_nan(c, c.argument());
    return;
  }
  if (min >= -kRounding && max <= 1 + kRounding) {
    c.finding.summary = fmt::format("{}, just outside [0, 1]: rounding", c.opening());
    c.fix("input = input.clamp(0, 1)");
    c.fix("or pass raw scores to F.binary_cross_entropy_with_logits, which cannot leave the range");
    return;
  }
  c.finding.summary = fmt::format("{}, but {} takes probabilities in [0, 1]", c.opening(), c.op());
  if (min < 0) {  // raw scores are of both signs
    c.finding.summary += ": the sigmoid is missing";
    c.fix(
        "F.binary_cross_entropy_with_logits(input, target), or nn.BCEWithLogitsLoss(): takes the raw scores");
    c.fix("or input = torch.sigmoid(input) before the loss");
    return;
  }
  c.fix(fmt::format("look at where {} is computed: {} of {} {} above 1, {} is the highest",
                    c.own("the input"), c.facts.scan.bad, c.facts.scan.total,
                    c.facts.scan.bad == 1 ? "is" : "are",
                    c.facts.scan.max ? to_text(*c.facts.scan.max) : c.value()));
  c.fix(
      "if these are raw scores: F.binary_cross_entropy_with_logits(input, target), or "
      "nn.BCEWithLogitsLoss()");
}

void fix_multinomial(const Case& c) {
  switch (c.facts.scan.reason) {
    case Reason::kNan:
      if (explain_nan(c)) break;
      c.fix(
          "check the logits: assert torch.isfinite(logits).all() before softmax; float16 overflows: "
          "torch.softmax(logits.float(), dim=-1)");
      if (nan_when(c, "generation")) {
        c.fix(
            "a row in which every logit is -inf gives NaN: keep at least one token in top-k, top-p and "
            "bad-word filters");
        c.fix("temperature must be above 0, and not so small that logits / temperature overflows");
      } else if (nan_when(c, "policy")) {
        c.fix("an action mask must leave at least one action: a row in which every logit is -inf gives NaN");
      }
      break;
    case Reason::kInf:
      if (explain_nan(c)) break;
      c.fix("pass softmax output, not exp(logits): torch.softmax(logits.float(), dim=-1)");
      if (nan_when(c, "generation"))
        c.fix("temperature must be above 0, and not so small that logits / temperature overflows");
      break;
    case Reason::kZeroSum:
      c.fix(
          "every weight of that row is 0: keep at least one, e.g. weights = weights + (weights.sum(-1, "
          "keepdim=True) == 0)");
      c.fix("if the weights come from a mask, the mask leaves nothing: check it for that row");
      break;
    default:
      c.fix(
          "if these are logits: torch.multinomial(torch.softmax(logits, dim=-1), ...), or "
          "Categorical(logits=logits).sample()");
      c.fix(fmt::format("if they are weights, look at where {} is computed: none may be negative",
                        c.own("the input")));
      break;
  }
  c.fix_sample();
}

// The weights of a data sampler: no model is asked, so no logits, no temperature and no learning rate.
void write_sampler(const Case& c) {
  const SamplerFact& sampler = *c.facts.sampler;
  std::string where = sampler.name;
  if (!c.facts.index.empty()) where = to_text(Variable{sampler.name, c.facts.index});
  if (sampler.variable) where += fmt::format(" ({})", to_text(*sampler.variable));
  const std::string name =
      sampler.variable ? fmt::format("`{}`", sampler.variable->name) : fmt::format("`{}`", sampler.name);
  const Reason reason = c.facts.scan.reason;
  if (reason == Reason::kZeroSum) {
    c.finding.summary = fmt::format("multinomial: all of {} are 0: the sampler can draw nothing", name);
    c.fix(fmt::format("look at where {} is computed: at least one weight must be above 0", name));
    return;
  }
  c.finding.summary = fmt::format(
      "multinomial: {} is {}, but the weights of a sampler must be finite and >= 0", where, c.value());
  if (reason == Reason::kNan || reason == Reason::kInf) {
    c.fix(fmt::format(
        "look at where {} is computed: 1 / count is Inf for a class without a sample, and 0 * Inf is NaN: "
        "counts.clamp(min=1)",
        name));
    return;
  }
  c.fix(fmt::format("look at where {} is computed: {} of {} are below 0", name, c.facts.scan.bad,
                    c.facts.scan.total));
}

}  // namespace

void diagnose_finite(const Case& c) {
  const bool weight = c.facts.table == "weight";
  const ScanFact& scan = c.facts.scan;
  constexpr double kMostFloat16 = 65504;
  c.finding.summary = fmt::format("{}: {} of {} values {} not finite", c.opening(), scan.bad, scan.total,
                                  scan.bad == 1 ? "is" : "are");
  if (scan.reason == Reason::kInf && c.facts.tensor.dtype == "float16") {
    c.fix(fmt::format("float16 ends at {}: keep the values in bfloat16 or float32", kMostFloat16));
  }
  if (weight) {
    c.fix("take an earlier checkpoint: training does not recover from a weight that is NaN or Inf");
    c.fix("find the step that made it: assert torch.isfinite(loss) before loss.backward()");
    if (scan.bad == scan.total)
      c.fix("every value is bad: the file may have been written from memory that was never filled");
    return;
  }
  c.fix("drop or fill the rows: x = x[np.isfinite(x).all(axis=1)], or np.nan_to_num(x, nan=0.0)");
  c.fix("find where they come from: missing values, log(0), 0/0 and float16 overflow make NaN and Inf");
  c.fix_sample();
}

void diagnose_loss_input(const Case& c) { c.argument() == "target" ? write_target(c) : write_input(c); }

void diagnose_probability(const Case& c) {
  if (c.facts.sampler) return write_sampler(c);
  const Reason reason = c.facts.scan.reason;
  if (c.facts.contract->predicate == Predicate::kProbabilityRows) {
    c.finding.summary =
        reason == Reason::kZeroSum
            ? fmt::format("{}: {} of the probabilities has sum 0: nothing can be drawn from it",
                          c.facts.source.empty() ? c.op() : c.facts.source, row(c))
            : fmt::format("{}: {} of the probabilities is not finite and >= 0", c.opening(), row(c));
    fix_multinomial(c);
    return;
  }
  if (reason == Reason::kNan) {
    c.finding.summary = fmt::format("{}: the NaN was made before the sampling", c.opening());
    fix_nan(c, c.argument());
    return;
  }
  if (c.op() == "poisson") {
    c.finding.summary = fmt::format("{}, but a rate must not be negative", c.opening());
    c.fix("rate = F.softplus(raw), or torch.exp(log_rate)");
    c.fix("or rate.clamp(min=0) when only rounding makes it negative");
  } else if (c.op() == "binomial") {
    const bool is_count = c.argument() == "count";
    c.finding.summary =
        fmt::format("{}, but {}", c.opening(),
                    is_count ? "a count must not be negative" : "a probability lies in [0, 1]");
    c.fix(is_count ? "count = count.clamp(min=0), or leave those elements out"
                   : "probs = torch.sigmoid(logits), or Binomial(total_count, logits=logits)");
  } else {
    c.finding.summary = fmt::format("{}, but a probability lies in [0, 1]", c.opening());
    const double min = number(c.facts.scan.min), max = number(c.facts.scan.max);
    if (min >= -kRounding && max <= 1 + kRounding) {
      c.fix("p.clamp(0, 1): only rounding leaves the range");
    } else {
      c.fix(
          "if these are logits: torch.bernoulli(torch.sigmoid(logits)), or "
          "Bernoulli(logits=logits).sample()");
      c.fix(fmt::format("if they are probabilities, look at where {} is computed", c.own("the input")));
    }
  }
  c.fix_sample();
}

}  // namespace trapline
