// Invalid probabilities and class values that PyTorch itself tells on the host: torch.distributions' argument
// checks, and the CPU's own words for multinomial and one_hot when no guard looked first.
#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

#include "diagnose/host/case.hpp"
#include "diagnose/host/rows.hpp"

namespace trapline::diagnose {
namespace {

constexpr auto kProbability = Cause::kInvalidProbability;

void look_upstream(const HostCase& c, const std::string& name, Finding& f) {
  if (c.facts().element) f.element = c.facts().element;
  if (explain_host_nan(c.facts(), name, f)) return;
  const std::optional<Sample>& sample = c.facts().sample;
  const bool given = sample && (sample->by == "rows" || sample->by == "nan");
  if (given && c.facts().weights && c.facts().weights->bad == 0) {
    f.fix.assign(1,
                 "the batch itself has NaN or Inf in that row: a missing value is filled in, or its row left "
                 "out, where the data are read");
    return;
  }
  f.fix.push_back(
      fmt::format("find the first NaN: check the loss and `torch.isfinite({}).all()` each step; usual "
                  "sources are log(0), 0/0, a too "
                  "high learning rate, float16 overflow",
                  name));
  if (!c.facts().nan || c.facts().nan->trains) {
    f.fix.push_back(
        "if the loss grew before it was NaN: lower the learning rate, or clip gradients "
        "(`torch.nn.utils.clip_grad_norm_`)");
  }
}

// A constraint of torch.distributions as a range: "GreaterThan(lower_bound=0.0)" is "> 0".
std::string words_of(std::string_view constraint) {
  constexpr std::string_view kEach = "IndependentConstraint(";
  if (constraint.starts_with(kEach)) {
    constraint.remove_prefix(kEach.size());
    constraint = constraint.substr(0, constraint.rfind(','));
  }
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"Real()", "numbers, not NaN"},
      {"Simplex()", ">= 0, the sum of each row 1"},
      {"GreaterThan(lower_bound=0.0)", "> 0"},
      {"GreaterThanEq(lower_bound=0.0)", ">= 0"},
      {"Interval(lower_bound=0.0, upper_bound=1.0)", "[0, 1]"},
      {"PositiveDefinite()", "a symmetric matrix with positive eigenvalues"},
      {"LowerCholesky()", "a lower triangular matrix with a positive diagonal"},
  };
  for (const auto& [name, words] : kWords) {
    if (constraint == name) return std::string(words);
  }
  return std::string(constraint);
}

// The row of a printed matrix in which the first NaN stands; -1: not printed, or rows before it are left out.
std::int64_t row_with_nan(std::string_view printed) {
  const std::size_t at = printed.find("nan");
  if (at == std::string_view::npos || !printed.starts_with("tensor([[") ||
      printed.starts_with("tensor([[[")) {
    return -1;
  }
  const std::string_view before = printed.substr(0, at);
  // "..." on a line of its own stands for rows, within a row for columns.
  if (before.find("\n        ...,") != std::string_view::npos) return -1;
  return std::count(before.begin(), before.end(), '[') - 2;
}

void distribution(const HostCase& c, Finding& f) {
  const std::string& parameter = c.capture(1);
  const std::string& type = c.capture(3);
  const std::string& values = c.capture(5);
  // Of all numbers only NaN is not Real() to PyTorch; a log may have lost the values, or has them cut.
  const bool nan =
      values.find("nan") != std::string::npos || c.capture(4).find("Real()") != std::string::npos;
  const Operand* operand = c.by_role(parameter);
  // By its shape only where no other has the same: `loc` and `scale` usually do.
  const auto fits = [&](const Operand& candidate) { return candidate.user && candidate.shape == c.shape(2); };
  if (operand == nullptr && std::ranges::count_if(c.operands(), fits) == 1) {
    operand = &*std::ranges::find_if(c.operands(), fits);
  }
  const std::string name = operand && operand->user ? operand->name : parameter;
  f.op = type;
  f.argument = parameter;
  f.tensor = TensorInfo{c.shape(2), operand ? operand->dtype : "", operand ? operand->device : ""};
  const std::string valid = words_of(c.capture(4));
  f.valid = Valid{valid, {}, {}, {}};
  const std::int64_t row = nan ? row_with_nan(values) : -1;
  const std::string shown = name == parameter ? name : fmt::format("{}={}", parameter, name);
  const std::optional<Element>& bad = c.facts().element;
  if (!nan && bad && bad->value) {
    f.element = bad;
    f.summary = fmt::format("{}: {}{} is {}, but must be {}", type, name == parameter ? "" : parameter + "=",
                            to_text(Variable{name, bad->index}), to_text(*bad->value), valid);
  } else {
    f.summary =
        fmt::format("{}: {} {} {}", type, shown, to_text(c.shape(2)),
                    nan ? (row < 0 ? std::string("holds NaN") : fmt::format("holds NaN in row {}", row))
                        : fmt::format("must be {}", valid));
  }
  if (nan && parameter == "logits" && values.find("inf") != std::string::npos) {
    f.fix.push_back(
        "a row in which every logit is -inf becomes NaN: a mask that leaves no choice; keep at least one in "
        "each "
        "row");
  }
  if (nan) return look_upstream(c, name, f);
  if (parameter == "probs" &&
      (type == "Categorical" || type == "OneHotCategorical" || type == "Multinomial")) {
    f.fix.push_back(fmt::format("network outputs are not probabilities: use `{}(logits={})`", type, name));
    f.fix.push_back(fmt::format("or `{}.softmax(-1)`", name));
  } else if (parameter == "probs") {
    f.fix.push_back(fmt::format("use `{}(logits={})`, or `{}.sigmoid()`", type, name, name));
  } else if (parameter == "scale" || parameter == "rate" || parameter == "concentration" ||
             parameter == "df") {
    f.fix.push_back(fmt::format("make it positive: `F.softplus({}) + 1e-6` or `{}.exp()`", name, name));
  } else {
    f.fix.push_back(fmt::format("give {} values that are {}", name, valid));
  }
}

// The numbers of a Categorical are those of its classes.
bool classes(const HostCase& c, Finding& f) {
  const std::optional<Element>& bad = c.facts().element;
  std::int64_t last = -1;
  static const RE2 kInterval(R"(IntegerInterval\(lower_bound=0, upper_bound=(\d{1,9})\))");
  if (!bad || !bad->value || !is_integer(*bad->value) || !RE2::FullMatch(c.capture(2), kInterval, &last))
    return false;
  const std::string name = c.name("value", c.shape(1), "value");
  f.cause = Cause::kLabelOutOfRange;
  f.element = bad;
  f.summary = fmt::format("{}: {} is {}, but Categorical has {} classes: valid are [0, {})", f.op,
                          to_text(Variable{name, bad->index}), to_text(*bad->value), last + 1, last + 1);
  f.valid = Valid{fmt::format("[0, {})", last + 1), Scalar{std::int64_t{0}}, Scalar{last}, {}};
  const bool from_one = bad->min && bad->max && as_double(*bad->min) >= 1 && bad->max == Scalar{last + 1};
  if (from_one) {
    f.fix.push_back(
        fmt::format("if they are counted from 1 (no 0 among {} here), number them from 0 where {} is read",
                    bad->total.value_or(0), name));
  }
  const std::string knob = knob_advice(Situation::kIndex, c.facts().library,
                                       {std::to_string(last + 2), to_text(*bad->value), "", last + 1});
  if (!knob.empty()) f.fix.push_back(knob);
  f.fix.push_back(fmt::format("look at where {} is computed: {} of {} {} outside [0, {})", name,
                              bad->bad.value_or(1), bad->total.value_or(1),
                              bad->bad.value_or(1) == 1 ? "is" : "are", last + 1));
  f.fix.push_back("validate_args=False only hides it: the number is then used as an index all the same");
  return true;
}

void support(const HostCase& c, Finding& f) {
  const std::string& type = c.capture(3);
  const bool nan = c.capture(4).find("nan") != std::string::npos;
  f.op = type + ".log_prob";
  f.argument = "value";
  f.tensor = TensorInfo{c.shape(1), "", ""};
  f.summary = fmt::format("{}: the value{} {}", f.op, c.shape(1).empty() ? "" : " " + to_text(c.shape(1)),
                          nan ? "holds NaN" : "is outside the support " + c.capture(2));
  f.valid = Valid{c.capture(2), {}, {}, {}};
  if (nan) return look_upstream(c, "value", f);
  if (type == "Categorical" && classes(c, f)) return;
  f.fix.push_back(fmt::format(
      "the value must lie in {}; check that the action or label belongs to this distribution", c.capture(2)));
}

void multinomial(const HostCase& c, Finding& f) {
  const Operand* probs = c.by_role("input");
  if (probs == nullptr && !c.operands().empty()) probs = &c.operands().front();
  const std::string name = probs ? probs->name : "probs";
  if (probs) f.tensor = TensorInfo{probs->shape, probs->dtype, probs->device};
  const bool zero = c.message().find("sum of probabilities <= 0") != std::string::npos;
  f.valid = Valid{"finite, >= 0, each row's sum > 0", {}, {}, {}};
  f.summary = fmt::format("multinomial: {}{} {}", name, probs ? " " + to_text(probs->shape) : "",
                          zero ? "has a row whose sum is 0" : "holds NaN, Inf or a negative value");
  if (zero) {
    f.fix.push_back(
        "a mask or a top-k/top-p filter left no candidate: keep at least one, or mask logits with -inf "
        "before softmax");
    return;
  }
  f.fix.push_back(fmt::format("sample from `softmax(logits, -1)`, never from raw logits"));
  look_upstream(c, name, f);
}

void too_many_samples(const HostCase&, Finding& f) {
  f.summary = "multinomial: more samples than categories, without replacement";
  f.fix.push_back("pass `replacement=True`, or at most `probs.size(-1)` samples");
}

void unit_probability(const HostCase&, Finding& f) {
  f.summary = "bernoulli: a probability is outside [0, 1] (or NaN)";
  f.valid = Valid{"[0, 1]", Scalar{std::int64_t{0}}, Scalar{std::int64_t{1}}, {}};
  f.fix.push_back("use `torch.sigmoid(logits)` for the probabilities");
}

// torch.normal's own check of its deviations (aten/src/ATen/native/DistributionTemplates.h).
void deviation(const HostCase& c, Finding& f) {
  const Operand* std = c.by_role("std");
  const std::string name = std && std->user ? std->name : "std";
  const std::string shown = name == "std" ? name : "std=" + name;
  f.argument = "std";
  f.valid = Valid{">= 0", {}, {}, {}};
  if (std) f.tensor = TensorInfo{std->shape, std->dtype, std->device};
  const std::optional<Element>& bad = c.facts().element;
  const bool nan = bad && bad->value ? std::isnan(as_double(*bad->value)) : c.capture(1) == "nan";
  const std::string shape = std ? " " + to_text(std->shape) : "";
  if (nan) {
    f.summary = fmt::format("normal: {}{} holds NaN", shown, shape);
    return look_upstream(c, name, f);
  }
  f.element = bad;
  if (bad && bad->value) {
    f.summary = fmt::format("normal: {} is {}, but must be >= 0", to_text(Variable{name, bad->index}),
                            to_text(*bad->value));
  } else {
    f.summary = c.capture(1).empty() ? fmt::format("normal: {}{} holds NaN or a negative value", shown, shape)
                                     : fmt::format("normal: {} is {}, but must be >= 0", shown, c.capture(1));
  }
  f.fix.push_back(fmt::format("make it positive: `F.softplus({}) + 1e-6` or `{}.exp()`", name, name));
}

void rate(const HostCase&, Finding& f) {
  f.summary = "poisson: a rate is negative (or NaN)";
  f.fix.push_back("make the rate positive: `F.softplus(x)` or `x.exp()`");
}

void class_value(const HostCase& c, Finding& f) {
  const bool negative = c.message().find("non-negative") != std::string::npos;
  if (c.raised_in_library()) {
    // A library's one_hot, or its own check in the same words: which tensor it looked at is not known.
    f.op.clear();
    f.argument.clear();
    f.summary = negative ? "a class label is negative" : "a class label is not below the number of classes";
    f.fix.push_back(
        "look at the labels: print(labels.unique()); a value that marks what is not labelled has to be left "
        "out, "
        "or named to the library where it has ignore_index=");
    return;
  }
  const std::string name = c.operands().empty() ? "labels" : c.operands().front().name;
  f.summary =
      fmt::format("one_hot: {} {}", name,
                  negative ? "holds a negative class" : "holds a class that is not below num_classes");
  f.fix.push_back(
      negative ? fmt::format("look at the labels: print({}.unique()); a mark such as -1 has no class: leave "
                             "it out, or give it one",
                             name)
               : fmt::format("look at the labels: print({}.unique()); num_classes is how many there are in "
                             "all the data, not in one batch, and they begin at 0",
                             name));
}

}  // namespace

std::span<const HostErrorRow> sampling_rows() {
  static const auto* const rows = new std::vector<HostErrorRow>{
      {"distribution.parameter",
       "ValueError",
       R"(Expected parameter (\w+) \(\w+ of shape \(([\d, ]*)\)\) of distribution (\w+)\(.*?\) to satisfy the constraint (.+?), but found invalid values:\s*(.*))",
       "to satisfy the constraint",
       kProbability,
       "distribution",
       "probs",
       distribution,
       {"Expected parameter probs (Tensor of shape (2,)) of distribution Categorical(probs: torch.Size([2])) "
        "to satisfy the constraint "
        "Simplex(), but found invalid values:\ntensor([nan, nan])",
        "Expected parameter scale (Tensor of shape (1,)) of distribution Normal(loc: tensor([0.]), scale: "
        "tensor([-1.])) to satisfy the "
        "constraint GreaterThan(lower_bound=0.0), but found invalid values:\ntensor([-1.])"}},
      {"distribution.old",
       "ValueError",
       R"(The parameter (\w+) has invalid values)",
       "The parameter...has invalid values",
       kProbability,
       "distribution",
       "probs",
       [](const HostCase& c, Finding& f) {
         f.argument = c.capture(1);
         f.summary =
             fmt::format("a distribution's parameter {} holds invalid values (often NaN)", c.capture(1));
         look_upstream(c, c.capture(1), f);
       },
       {"The parameter probs has invalid values"}},
      {"distribution.support",
       "ValueError",
       R"(Expected value argument \(\w+ of shape \(([\d, ]*)\)\) to be within the support \((.*?)\) of the distribution (\w+)\(.*?\), but found invalid values:\s*(.*))",
       "Expected value argument",
       kProbability,
       "distribution",
       "value",
       support,
       {"Expected value argument (Tensor of shape ()) to be within the support "
        "(IntegerInterval(lower_bound=0, upper_bound=1)) of the "
        "distribution Categorical(probs: torch.Size([2])), but found invalid values:\n3"}},
      {"multinomial.values",
       "RuntimeError",
       R"(probability tensor contains either `inf`, `nan` or element < 0)",
       "probability tensor contains either",
       kProbability,
       "multinomial",
       "input",
       multinomial,
       {"probability tensor contains either `inf`, `nan` or element < 0"},
       nullptr,
       {.argument = "probs"}},
      {"multinomial.distribution",
       "RuntimeError",
       R"(invalid multinomial distribution \()",
       "invalid multinomial distribution",
       kProbability,
       "multinomial",
       "input",
       multinomial,
       {"invalid multinomial distribution (sum of probabilities <= 0)",
        "invalid multinomial distribution (encountering probability entry < 0)",
        "invalid multinomial distribution (encountering probability entry = infinity or NaN)"},
       nullptr,
       {.argument = "probs"}},
      {"multinomial.samples",
       "RuntimeError",
       R"(cannot sample n_sample > prob_dist\.size\(-1\) samples without replacement)",
       "cannot sample n_sample > prob_dist",
       Cause::kShapeMismatch,
       "multinomial",
       "num_samples",
       too_many_samples,
       {"cannot sample n_sample > prob_dist.size(-1) samples without replacement"}},
      {"bernoulli.values",
       "RuntimeError",
       R"(Expected p_in >= 0 && p_in <= 1 to be true, but got false)",
       "Expected p_in >= 0 && p_in <= 1",
       kProbability,
       "bernoulli",
       "input",
       unit_probability,
       {"Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  "
        "If so, please report an enhancement "
        "request to PyTorch.)"}},
      {"normal.deviation",
       "RuntimeError",
       R"(normal expects (?:all elements of )?std >= 0\.0(?:, but found std (\S+))?)",
       "normal expects all elements of std >= 0|normal expects std >= 0",
       kProbability,
       "normal",
       "std",
       deviation,
       {"normal expects all elements of std >= 0.0", "normal expects std >= 0.0, but found std -1"}},
      {"poisson.values",
       "RuntimeError",
       R"(invalid Poisson rate, expected rate to be non-negative)",
       "invalid Poisson rate",
       kProbability,
       "poisson",
       "input",
       rate,
       {"invalid Poisson rate, expected rate to be non-negative"}},
      {"one_hot.values",
       "RuntimeError",
       R"((?:one_hot: )?Class values must be (?:smaller than num_classes|non-negative)\.)",
       "Class values must be smaller than num_classes|Class values must be non-negative",
       Cause::kLabelOutOfRange,
       "one_hot",
       "input",
       class_value,
       {"Class values must be smaller than num_classes.", "Class values must be non-negative.",
        "one_hot: Class values must be smaller than num_classes."},  // traced by torch.compile
       nullptr,
       {.certainty = Certainty::kLikely}},  // what is counted may be no label
  };
  return *rows;
}

}  // namespace trapline::diagnose
