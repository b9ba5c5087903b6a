// Floating point arguments: inputs and targets of binary_cross_entropy, probabilities and rates.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {
namespace {

constexpr double kRounding = 1e-3;
constexpr double kLeastPercent = 2;  // hardly anybody means 1.33 % of something

double number(const std::optional<Scalar>& value) { return value ? as_double(*value) : std::nan(""); }

// "row 3 of 8": multinomial looks at rows.
std::string row(const ViolationWriter& w) {
  if (w.facts.tensor.shape.size() != 2 || w.facts.index.empty()) return "the row";
  return fmt::format("row {}", w.facts.index.front());
}

// With the same weights the other rows are finite: what is wrong is in this one.
bool one_row(const ViolationWriter& w) {
  const bool known = w.facts.sample && w.facts.sample->row && w.facts.sample->dataset_index;
  return known && weights_are_finite(w) && w.facts.scan.bad < w.facts.scan.total;
}

void fix_nan(ViolationWriter& w, const std::string& what) {
  if (explain_nan(w)) return w.fix_sample();
  const bool entered = w.facts.assigned && w.facts.assigned->entered && w.facts.scan.reason == Reason::kNan;
  if (entered)
    w.fix(
        fmt::format("{}: it has NaN there, before it is a tensor: a value that is missing, or one that what "
                    "is called gives no answer for",
                    w.look_at_value("the " + what)));
  if (one_row(w)) {
    w.fix_sample();
    w.guess(
        "the other rows of this call are finite with the same weights: compare that sample's numbers with "
        "theirs (a missing value, another unit or scale, a length of 0)");
    auto& fix = w.finding().fix;
    if (nan_watched(w) && !entered)
      std::rotate(fix.begin(), fix.begin() + 1, fix.end());  // the layer is asked for last
    return;
  }
  if (!nan_watched(w)) {
    w.fix(
        fmt::format("find where the NaN begins: torch.autograd.set_detect_anomaly(True), or assert "
                    "torch.isfinite(x).all() after each layer, backwards from `{}`",
                    what));
  }
  if (nan_trains(w)) {
    w.fix("if the loss grew from step to step before, lower the learning rate");
  }
  w.fix(
      "check the data: torch.isfinite(x).all() of all that goes in; log of 0 or below, 0/0 and float16 "
      "overflow make "
      "NaN as well");
  w.fix_sample();
}

// Of numbers that are of another range altogether (scores, percentages) more are outside.
bool some_are_bad(const ViolationWriter& w) {
  constexpr std::int64_t kSome = 4;
  return w.facts.scan.bad * kSome <= w.facts.scan.total;
}

bool is_whole(double value) { return value == std::floor(value); }

// Every value of the target that is known is a whole number.
bool all_whole(const ViolationWriter& w) {
  if (w.facts.whole) return *w.facts.whole;
  const auto& values = w.facts.values;
  return is_whole(number(w.facts.scan.min)) && is_whole(number(w.facts.scan.max)) &&
         std::all_of(values.begin(), values.end(),
                     [](const auto& pair) { return is_whole(as_double(pair.first)); });
}

void fix_record(ViolationWriter& w) {
  const ScanFact& scan = w.facts.scan;
  w.fix_sample();
  if (w.facts.sample && (w.facts.sample->by == "function" || w.facts.sample->likely)) {
    w.fix(fmt::format("{} from what the batch holds: {} of {} {} outside [0, 1]",
                      w.look_at_value("the target"), scan.bad, scan.total, scan.bad == 1 ? "is" : "are"));
    return;
  }
  // Of the batch in hand no tensor holds the value: the program made it.
  if (w.facts.sample && (w.facts.sample->by == "hand" || w.facts.sample->by == "place")) {
    w.fix(fmt::format("{}: {} of {} {} outside [0, 1]", w.look_at_value("the target"), scan.bad, scan.total,
                      scan.bad == 1 ? "is" : "are"));
    return;
  }
  const char* records = scan.bad == 1 ? "that record" : "those records";
  const char* are = scan.bad == 1 ? "is" : "are";
  if (all_whole(w)) {
    return w.fix(
        fmt::format("correct {} if wrong; if not, {}: {} of {} {} outside [0, 1]; a sum of one-hot rows is 2 "
                    "where a class "
                    "stands twice",
                    records, w.look_at_making("the target"), scan.bad, scan.total, are));
  }
  const std::string made = w.facts.assigned ? w.look_at_value("the target")
                                            : "look at what made the targets (a model without a limit, a "
                                              "scaler fitted on other data)";
  w.fix(fmt::format("correct {} if wrong; if not, {}: {} of {} {} outside [0, 1]", records, made, scan.bad,
                    scan.total, are));
}

std::string none_here(const ViolationWriter& w) {
  return fmt::format(" (none of these {} is)", w.facts.scan.total);
}

// Whole numbers: pixels, two labels with other names, or classes.
void fix_whole_target(ViolationWriter& w, double min, double max) {
  constexpr double kWhite = 255, kMaxClasses = 100;
  if (min >= 0 && max == kWhite) {
    w.finding().summary += "; they go to 255";
    // Beside 1 it is no white, and between grey values no mark.
    const bool mark = w.only(Scalar(kWhite)) && w.facts.holds_one.value_or(false);
    if (mark) {
      w.fix(
          "255 stands beside 1, so it is no white: what marks what is not labelled has to be left out of "
          "input and target: keep = target != 255; loss on input[keep], target[keep]");
    } else if (w.facts.tensor.shape.size() >= 3 && w.facts.holds_one && w.facts.holds_zero.value_or(false)) {
      w.fix("a mask as pictures have it: target = target / 255, or ToTensor() on the picture itself");
    } else {
      w.fix("pixels go to 255 and have to be divided by it; a mark has to be left out of input and target");
    }
  } else if (min == 1 && max == 2) {
    w.finding().summary += "; labels look like 1 and 2";
    w.fix(fmt::format(
        "if no target of the data is 0{}, the two classes are called 1 and 2: target = target - 1",
        none_here(w)));
  } else if (min == -1 && max <= 1 && w.facts.holds_zero.value_or(false)) {
    w.finding().summary += "; -1 stands beside 0 and 1";
    w.fix(
        "see what -1 stands for: class 0, where a part of the data is numbered -1 and 1 (make it 0 where "
        "that "
        "part is read); what is not labelled (leave it out of input and target); or a third class "
        "(F.cross_entropy, with one output per class)");
  } else if (min == -1 && max <= 1) {
    w.finding().summary += "; labels look like -1 and 1";
    w.fix(fmt::format(
        "if no target of the data is 0{}, the two classes are called -1 and 1: target = (target + 1) / 2",
        none_here(w)));
  } else if (min >= 0 && max <= kMaxClasses && !some_are_bad(w)) {
    w.finding().summary += fmt::format("; they are whole numbers up to {}", to_text(*w.facts.scan.max));
    constexpr double kPercent = 100, kGrades = 20;
    w.fix(fmt::format("{}: {} of {} are above 1{}", w.look_at_value("the target"), w.facts.scan.bad,
                      w.facts.scan.total,
                      max > kGrades ? "" : "; a sum of one-hot rows is 2 where a class stands twice"));
    if (max > kGrades && max <= kPercent) w.fix("if they are percent, or scores up to 100: target / 100");
    w.fix("if they are class labels: F.cross_entropy, with one output per class");
    if (max > 2)
      w.fix("if they are counts: a loss for numbers (F.mse_loss), of an output that no sigmoid has passed");
  } else {
    fix_record(w);
    if (min >= 0 && max <= kMaxClasses) {
      w.fix(
          "only if each record has one of more than two classes: F.cross_entropy, with one output per class");
    }
    return;
  }
  w.fix_sample();
}

// A share of 255 that is none of a smaller number: 357 / 255 is 7 / 5, as of votes, and speaks for no pixel.
bool is_level(double share) {
  constexpr std::int64_t kWhite = 255, kLeast = 51;  // 255 is 3 * 5 * 17
  const double levels = share * static_cast<double>(kWhite);
  const auto whole = std::llround(levels);
  return std::abs(levels - std::round(levels)) < 1e-3 && kWhite / std::gcd(whole, kWhite) >= kLeast;
}

void fix_fractions(ViolationWriter& w, double min, double max) {
  constexpr double kPercent = 100;
  if (min >= -kRounding && max <= 1 + kRounding) {
    w.finding().summary += ": rounding";
    w.fix("target = target.clamp(0, 1)");
    w.fix_sample();
    return;
  }
  // Of pictures that were divided by 255 and go further.
  const double levels = max * 255.0;
  const bool picture = w.facts.tensor.shape.size() >= 3 || is_level(min) || is_level(max);
  if (min >= 0 && levels > 256 && std::abs(levels - std::round(levels)) < 1e-3 &&
      std::abs(max - std::round(max)) > 1e-6 && picture) {
    w.finding().summary += fmt::format("; the highest is {:.0f} / 255", levels);
    w.fix(
        "if they were divided by 255, they hold more than 8 bits: divide by what they can hold (4095 of 12 "
        "bits, "
        "65535 of 16)");
    return w.fix_sample();
  }
  const bool percent = min >= 0 && max > kPercent / 5 && max <= kPercent;
  if (some_are_bad(w)) {
    fix_record(w);
    if (percent) w.fix("if it is a percentage, divide it by 100, there only");
    return;
  }
  w.finding().summary +=
      fmt::format("; they run from {} to {}", to_text(*w.facts.scan.min), to_text(*w.facts.scan.max));
  const bool quotient = w.facts.assigned && w.facts.assigned->at.text.find(" / ") != std::string::npos;
  w.fix(fmt::format("{}: {}", w.look_at_value("the target"),
                    min < 0
                        ? std::string("some are below 0, which no probability is")
                        : fmt::format("{} of {} are above 1{}", w.facts.scan.bad, w.facts.scan.total,
                                      quotient ? ", as a quotient is whose divisor is the smaller" : "")));
  if (percent) w.fix("if they are percentages, divide them by 100 where they are read");
  w.fix(
      "if they are numbers to be predicted, no probabilities: F.mse_loss or F.l1_loss, behind a last layer "
      "that "
      "can give such numbers (no sigmoid)");
  w.fix_sample();
}

void write_target(ViolationWriter& w) {
  const double min = number(w.facts.scan.min), max = number(w.facts.scan.max);
  w.finding().summary = fmt::format("{}, but targets must lie in [0, 1]", w.opening());
  if (w.facts.exchanged) {
    w.finding().summary += "; the target has a gradient, as scores of a model have, and the input has none";
    w.finding().sample.reset();
    return w.fix(
        "the two are exchanged: what the model puts out comes first, F.binary_cross_entropy(scores, labels), "
        "and through a sigmoid; where there is none, F.binary_cross_entropy_with_logits(scores, labels)");
  }
  if (w.facts.scan.reason == Reason::kNan) {
    if (w.all_bad()) {
      w.finding().summary =
          fmt::format("{}, as are all targets of this call: they were computed so", w.opening());
      w.fix(
          "look at where the targets are scaled: one NaN or Inf in a column, or a range of 0, makes its "
          "mean, std, min or max so, and then every value");
      return;
    }
    w.finding().summary = fmt::format("{}: a missing value, or one that was computed so", w.opening());
    w.fix(
        "if it is missing in the data, leave such targets out: keep = torch.isfinite(target); loss on "
        "input[keep], "
        "target[keep]");
    w.fix(fmt::format("if not, {}: 0/0, log(0)", w.look_at_value("the target")));
    w.fix_sample();
  } else if (!std::isfinite(min) || !std::isfinite(max)) {
    w.fix("find what makes it infinite: log(0), a division by 0, or a missing value in the data");
    w.fix_sample();
  } else if (w.write_part()) {
    w.fix_sample();
  } else {
    all_whole(w) ? fix_whole_target(w, min, max) : fix_fractions(w, min, max);
  }
}

// Scores that are no raw ones, and what makes probabilities of them.
struct Squashed {
  std::string_view by, what, fix;
};
constexpr std::array kSquashed{
    Squashed{"tanh", "a tanh puts out [-1, 1]",
             "torch.sigmoid in place of the tanh; or nothing in its place, and nn.BCEWithLogitsLoss()"},
    Squashed{"cosine", "a cosine lies in [-1, 1]",
             "scale it, and take it for a score: F.binary_cross_entropy_with_logits(scale * input, target); "
             "or, as "
             "a probability, it is (1 + input) / 2; a loss for cosines, F.cosine_embedding_loss, takes "
             "targets of 1 "
             "and -1, and nothing of 0"},
    Squashed{
        "one_less_exp", "1 - exp(x) is below 0 where x is above 0",
        "find why what the exp is given is above 0: for a rate it is -rate, and a rate must not be negative "
        "(its parameters kept above 0 by F.softplus or exp)"},
    Squashed{
        "one_less_sum", "1 less a running sum is below 0 where that goes beyond 1",
        "let what is summed up be shares of 1 (a softmax); or, for what is left after each step, take the "
        "product: torch.cumprod(1 - hazard, dim)"},
    Squashed{
        "past_sigmoid", "it has been between 0 and 1, and has left that since",
        "see what is done with it after its sigmoid or softmax (a difference, a sum, a weight): a second "
        "sigmoid would hide that; where the loss is to have a difference of scores, take it of raw ones, "
        "and give it to F.binary_cross_entropy_with_logits"},
    Squashed{"quotient", "a quotient is above 1 where its divisor is the smaller",
             "see what is divided there, and by what: a probability that is divided by another one (a "
             "propensity, a prior) is none any more: that factor is to be multiplied, or is a weight of the "
             "loss"},
    Squashed{"difference", "a difference may lie below 0",
             "find what is subtracted there, and why it goes beyond 1: a share or a probability has to stay "
             "within "
             "[0, 1]; a distance has no such end (torch.exp(-distance) lies in (0, 1]), nor has a score "
             "(F.binary_cross_entropy_with_logits)"},
    Squashed{
        "log", "these are logarithms",
        "give the loss the probabilities themselves, input.exp(), or the raw scores before the logarithm: "
        "F.binary_cross_entropy_with_logits; logarithms of a softmax belong into F.nll_loss"},
};

void write_input(ViolationWriter& w) {
  const double min = number(w.facts.scan.min), max = number(w.facts.scan.max);
  if (w.facts.scan.reason == Reason::kNan) {
    w.finding().summary = fmt::format(
        "{}: the input is already NaN before the loss; this is not a missing sigmoid", w.opening());
    fix_nan(w, w.argument());
    return;
  }
  if (std::isinf(min) || std::isinf(max)) {
    w.finding().summary = fmt::format("{}, but {} takes probabilities in [0, 1]", w.opening(), w.op());
    fix_nan(w, w.argument());
    return;
  }
  if (min >= -kRounding && max <= 1 + kRounding) {
    w.finding().summary = fmt::format("{}, just outside [0, 1]: rounding", w.opening());
    w.fix(w.facts.variable ? fmt::format("{0} = {0}.clamp(0, 1)", w.in_code("input"))
                           : std::string("clamp what the loss is given: .clamp(0, 1)"));
    return;
  }
  w.finding().summary = fmt::format("{}, but {} takes probabilities in [0, 1]", w.opening(), w.op());
  const auto* squashed = std::find_if(kSquashed.begin(), kSquashed.end(),
                                      [&](const Squashed& one) { return one.by == w.facts.squashed; });
  if (squashed != kSquashed.end()) {
    w.finding().summary += fmt::format(": {}", squashed->what);
    const std::string where = w.facts.assigned ? w.look_at_value("the input") + ": " : std::string();
    return w.fix(where + std::string(squashed->fix));
  }
  if (min < 0) {  // raw scores are of both signs
    const bool raw = w.facts.squashed == "raw";
    if (raw && w.facts.passed > 0) {  // another loss would be wrong for what went before
      w.finding().summary += ": the sigmoid is missing, in this call and not before";
      w.fix(fmt::format(
          "the {} before it, of the same line, {} given values in [0, 1]: find what leaves the "
          "sigmoid out since then: a flag of the model, train() or eval(), another branch of forward",
          w.facts.passed == 1 ? "call" : fmt::format("last {} calls", w.facts.passed),
          w.facts.passed == 1 ? "was" : "were"));
      return;
    }
    if (!raw && w.facts.passed > 0) {  // a ratio, a sum: scores would have left the range before
      w.fix(fmt::format("{}: {}; the {} before it, of the same line, {} in [0, 1]",
                        w.look_at_value("the input"), w.outside(),
                        w.facts.passed == 1 ? "call" : fmt::format("last {} calls", w.facts.passed),
                        w.facts.passed == 1 ? "was" : "were"));
      return;
    }
    if (raw) w.finding().summary += ": the sigmoid is missing";
    if (!raw) w.fix(fmt::format("{}: {}", w.look_at_value("the input"), w.outside()));
    w.fix(fmt::format(
        "{}F.binary_cross_entropy_with_logits(input, target), or nn.BCEWithLogitsLoss(): takes the raw "
        "scores{}",
        raw ? "" : "if a layer puts them out as raw scores, the sigmoid is missing: ",
        raw ? "" : "; or torch.sigmoid(input) before the loss"));
    if (raw) w.fix("or input = torch.sigmoid(input) before the loss");
    return;
  }
  w.fix(fmt::format("{}: {} of {} {} above 1, {} is the highest", w.look_at_value("the input"),
                    w.facts.scan.bad, w.facts.scan.total, w.facts.scan.bad == 1 ? "is" : "are",
                    w.facts.scan.max ? to_text(*w.facts.scan.max) : w.value()));
  // Raw scores are of both signs, as a rule.
  constexpr std::int64_t kTelling = 16;
  // A few, a little: what interpolates with negative weights does that to numbers of [0, 1].
  constexpr std::int64_t kFew = 20;
  constexpr double kLittle = 1.25;
  if (w.facts.scan.bad * kFew <= w.facts.scan.total && max <= kLittle)
    return w.fix(
        "only a few are above 1, and only a little: bicubic and Lanczos interpolation overshoot so (bilinear "
        "does not; or interpolate before the sigmoid), and so do sums of shares");
  if (w.facts.scan.total >= kTelling)
    return w.fix(
        "none of them is below 0: softplus, relu, exp, sums, products and quotients have no upper end; only "
        "where a layer puts them out as scores do they need a sigmoid in place of these");
  w.fix(
      "only if a layer without sigmoid puts them out, they are raw scores: nn.BCEWithLogitsLoss() takes "
      "those");
}

}  // namespace

// A checkpoint that a training goes on from: at its next step the weights are as bad as the state.
void fix_optimizer(ViolationWriter& w) {
  w.fix("take an earlier checkpoint: with this state the next step makes the weights NaN");
  w.fix(
      "if the weights of this one are finite (`trapline check finite`), load them and begin with a new "
      "optimizer");
  w.fix(
      "find the step that made it: torch.nn.utils.clip_grad_norm_(parameters, norm, error_if_nonfinite=True) "
      "before optimizer.step()");
}

void diagnose_finite(ViolationWriter& w) {
  const bool weight = w.facts.table == "weight";
  const ScanFact& scan = w.facts.scan;
  constexpr double kMaxFloat16 = 65504;
  w.finding().summary = fmt::format("{}: {} of {} values {} not finite", w.opening(), scan.bad, scan.total,
                                    scan.bad == 1 ? "is" : "are");
  if (scan.reason == Reason::kInf && w.facts.tensor.dtype == "float16") {
    w.fix(fmt::format("float16 ends at {}: keep the values in bfloat16 or float32", kMaxFloat16));
  }
  if (w.facts.table == "optimizer") return fix_optimizer(w);
  if (weight) {
    w.fix("take an earlier checkpoint: training does not recover from a weight that is NaN or Inf");
    // Of a path in HDF5, which Keras writes.
    w.fix(w.facts.column.starts_with('/')
              ? "find the step that made it: keras.callbacks.TerminateOnNaN() among the callbacks of fit()"
              : "find the step that made it: assert torch.isfinite(loss) before loss.backward()");
    if (scan.bad == scan.total)
      w.fix("every value is bad: the file may have been written from memory that was never filled");
    return;
  }
  // Without them nan_to_num() makes the largest number of an infinity, which overflows at the next step.
  const bool inf = scan.reason == Reason::kInf;
  w.fix(
      fmt::format("drop or fill the rows: x = x[np.isfinite(x).all(axis=1)], or np.nan_to_num(x, nan=0.0{})",
                  inf ? ", posinf=0.0, neginf=0.0" : ""));
  w.fix("find where they come from: missing values, log(0), 0/0 and float16 overflow make NaN and Inf");
  w.fix_sample();
}

void diagnose_loss_input(ViolationWriter& w) { w.argument() == "target" ? write_target(w) : write_input(w); }

void diagnose_probability(ViolationWriter& w) {
  if (w.facts.sampler) return write_sampler(w);
  const Reason reason = w.facts.scan.reason;
  if (w.facts.contract->predicate == Predicate::kProbabilityRows) {
    w.finding().summary =
        reason == Reason::kZeroSum
            ? fmt::format("{}: {} of the probabilities has sum 0: nothing can be drawn from it",
                          w.facts.source.empty() ? w.op() : w.facts.source, row(w))
            : fmt::format("{}: {} of the probabilities {}", w.opening(), row(w),
                          reason == Reason::kNegative ? "has a negative one" : "is not finite");
    if (reason == Reason::kZeroSum && w.facts.tensor.shape.size() < 2 && w.finding().element) {
      w.finding().element->bad = w.facts.scan.total;  // the row is all there is
    }
    fix_multinomial(w);
    return;
  }
  if (reason == Reason::kNan) {
    w.finding().summary = fmt::format("{}: the NaN was made before the sampling", w.opening());
    fix_nan(w, w.argument());
    return;
  }
  if (w.op() == "poisson") {
    w.finding().summary = fmt::format("{}, but a rate must not be negative", w.opening());
    if (number(w.facts.scan.min) >= -kRounding) {
      w.fix("rate.clamp(min=0): only rounding makes it negative");
    } else {
      w.fix(fmt::format(
          "{}: {} of {} {} negative{}", w.look_at_value("the rate"), w.facts.scan.bad, w.facts.scan.total,
          w.facts.scan.bad == 1 ? "is" : "are",
          w.facts.sample
              ? ""
              : "; what a layer puts out becomes a rate in the same way as for its loss: torch.exp(x) where "
                "that takes a logarithm (nn.PoissonNLLLoss does by default)"));
    }
  } else if (w.op() == "binomial") {
    const bool is_count = w.argument() == "count";
    w.finding().summary =
        fmt::format("{}, but {}", w.opening(),
                    is_count ? "a count must not be negative" : "a probability lies in [0, 1]");
    w.fix(fmt::format(
        "{}: {} of {} {} {}", w.look_at_value("the " + w.argument()), w.facts.scan.bad, w.facts.scan.total,
        w.facts.scan.bad == 1 ? "is" : "are",
        is_count ? "negative" : "outside [0, 1]; raw scores go into Binomial(total_count, logits=logits)"));
  } else {
    w.finding().summary = fmt::format("{}, but a probability lies in [0, 1]", w.opening());
    const double min = number(w.facts.scan.min), max = number(w.facts.scan.max);
    if (min >= -kRounding && max <= 1 + kRounding) {
      w.fix("p.clamp(0, 1): only rounding leaves the range");
    } else {
      // Logits are of both signs; few of them lie within [0, 1].
      const bool alike = min == max && w.facts.scan.total > 1;  // a number of the program's own
      const bool logits = !some_are_bad(w) && min < 0 && !alike;
      w.fix(fmt::format(
          "{}: {}", w.look_at_value("the input"),
          alike && min < 0 ? fmt::format("all are {}: a schedule that goes below 0 needs a limit",
                                         to_text(*w.facts.scan.max))
          : min == max && max > 1
              ? fmt::format("all are {}: {}a schedule that goes beyond 1 needs a limit; of a formula, "
                            "see with which of its numbers it stays below",
                            to_text(*w.facts.scan.max),
                            max < kLeastPercent ? "" : "in percent, divide by 100; ")
          : min >= 0 && !some_are_bad(w) ? fmt::format("{}; a ratio of which 1 and more mean always wants "
                                                       ".clamp(max=1)",
                                                       w.outside())
                                         : w.outside()));
      if (logits)
        w.guess(
            "if a layer puts them out as raw scores (logits), the sigmoid is missing where they are made, "
            "for all "
            "that reads them as probabilities: torch.sigmoid(logits)");
    }
  }
  w.fix_sample();
}

}  // namespace trapline::diagnose
