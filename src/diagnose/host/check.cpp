// The words about a check of an installed package. What the check said is certain; what to do depends on what
// the argument is, which its names and the message tell.
#include "diagnose/host/check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "diagnose/host/case.hpp"
#include "diagnose/host/facts.hpp"
#include "diagnose/markers.hpp"

namespace trapline::diagnose {
namespace {

// What an argument is, by the words of the condition, the name and the message. The first that fits counts.
struct CheckRow {  // NOLINT(clang-analyzer-optin.performance.Padding): in the order of a row
  std::string_view kinds;
  bool integers;           // only for integers
  std::string_view words;  // RE2
  Cause cause;
  Situation situation;  // of the library's knob
};

constexpr CheckRow kRows[] = {
    {"shape", false, R"(max_\w*(?:position|length|seq)|\bblock_size\b|\bcontext_length\b|\bn_ctx\b)",
     Cause::kPositionIndexOutOfRange, Situation::kClasses},
    {"shape", false, "", Cause::kShapeMismatch, Situation::kClasses},
    {"nan", false, "", Cause::kNonFiniteValue, Situation::kClasses},
    {"value|distinct", true, "label|class|target|\\btags?\\b|categor", Cause::kLabelOutOfRange,
     Situation::kClasses},
    {"value", true, "index|indices|idx|\\bids?\\b|_ids?\\b|edge", Cause::kIndexOutOfRange, Situation::kIndex},
    {"unknown|number", false, "", Cause::kIndexOutOfRange, Situation::kIndex},
    {"value|rows", false, "pred|prob|score|logit|target|label|box|mask|\\btags?\\b|input",
     Cause::kLossInputOutOfRange, Situation::kIgnore},
};

bool names(std::string_view list, std::string_view kind) {
  while (true) {
    const std::size_t bar = list.find('|');
    if (list.substr(0, bar) == kind) return true;
    if (bar == std::string_view::npos) return false;
    list.remove_prefix(bar + 1);
  }
}

const CheckRow* row_of(const HostError& facts, const CheckFact& check) {
  const bool integers = check.element && check.element->value && is_integer(*check.element->value) &&
                        check.tensor.dtype != "bool";
  std::string text = check.name + " " + check.condition + " " + facts.message;
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  // The name of a distribution says what its values are; those of other classes say what they make.
  if (RE2::PartialMatch(check.within, R"(Categorical\b)")) text += " category";
  for (const CheckRow& row : kRows) {
    if (!names(row.kinds, check.kind) || (row.integers && !integers)) continue;
    if (RE2::PartialMatch(text, RE2(re2::StringPiece(row.words.data(), row.words.size())))) return &row;
  }
  return nullptr;
}

std::string element_name(const CheckFact& check) {
  if (check.variable) return to_text(*check.variable);
  return to_text(Variable{check.name, check.element ? check.element->index : std::vector<std::int64_t>{}});
}

// The user's name of the tensor, else the package's.
std::string tensor_name(const CheckFact& check) { return check.variable ? check.variable->name : check.name; }

std::string opening(const CheckFact& check) {
  return check.op.empty() ? check.package + ": " : check.op + ": ";
}

std::string rule(const CheckFact& check) {
  return fmt::format("{} {} `{}`", check.package, check.needs ? "needs" : "refuses", check.condition);
}

// "[0, 3)", "below 3", "0 or 1"; empty where the condition does not say it.
std::string range(const CheckFact& check) {
  if (!check.allowed.empty()) {
    std::string text;
    for (std::size_t i = 0; i < check.allowed.size(); ++i) {
      text += i == 0 ? "" : i + 1 == check.allowed.size() ? " or " : ", ";
      text += to_text(check.allowed[i]);
    }
    return text;
  }
  const std::string end = check.upper ? to_text(*check.upper) : "";
  if (check.lower && check.upper)
    return fmt::format("[{}, {}{}", to_text(*check.lower), end, check.closed ? "]" : ")");
  if (check.upper) return (check.closed ? "at most " : "below ") + end;
  return check.lower ? "at least " + to_text(*check.lower) : "";
}

// " (pred.size(1))" where the bound is no plain number.
std::string limit(const CheckFact& check) {
  const bool plain = check.limit.find_first_not_of("0123456789.-+ ") == std::string::npos;
  return plain ? "" : fmt::format(" (`{}`)", check.limit);
}

// What there are now: a knob for another number is not the one.
std::optional<std::int64_t> size_of(const CheckFact& check) {
  if (!check.upper || !is_integer(*check.upper)) return std::nullopt;
  return std::get<std::int64_t>(*check.upper) + (check.closed ? 1 : 0);
}

// The setting that the bound is, where its name is that of something else than a count of classes:
// "vocab_size" of self.config.vocab_size. A library's knob for its classes does not move it.
std::string other_setting(const CheckFact& check) {
  const std::size_t dot = check.limit.rfind('.');
  std::string word = check.limit.substr(dot == std::string::npos ? 0 : dot + 1);
  static const RE2 kSetting(R"([A-Za-z_]\w*_(?:size|len|length|embeddings|positions|num|dim|max))");
  return RE2::FullMatch(word, kSetting) ? word : "";
}

std::string count(const Element& element) {
  if (element.bad.value_or(1) < 2) return "";
  return fmt::format(", one of {} such elements of {}", *element.bad, element.total.value_or(0));
}

void write_values(const CheckFact& check, Finding& f) {
  const Element& e = *check.element;
  const std::string taken = range(check);
  if (check.kind == "distinct") {
    f.summary = fmt::format("{}{} holds {} different values, and {} are expected{}; {} is {}", opening(check),
                            tensor_name(check), check.distinct, to_text(*check.upper), limit(check),
                            element_name(check), to_text(*e.value));
  } else if (check.kind == "rows") {
    std::vector<std::string> numbers;
    for (const Scalar& number : check.row) numbers.push_back(to_text(number));
    f.summary = fmt::format("{}row {} of {} {} is {} {}", opening(check), e.index.front(), tensor_name(check),
                            to_text(check.tensor.shape),
                            numbers.empty() ? "refused:" : fmt::format("[{}];", fmt::join(numbers, ", ")),
                            rule(check));
  } else {
    f.summary = fmt::format(
        "{}{} is {}{}; {}", opening(check), element_name(check), to_text(*e.value), count(e),
        taken.empty() ? rule(check) : fmt::format("{} takes {}{}", check.package, taken, limit(check)));
  }
  if (check.kind == "rows") return;
  f.values = check.values;
  if (taken.empty()) return;
  f.valid = Valid{taken, check.lower, {}, {}};
  if (check.upper && is_integer(*check.upper))
    f.valid->max = Scalar{std::get<std::int64_t>(*check.upper) - (check.closed ? 0 : 1)};
}

// One value that is nobody's class: all wrong elements hold it, they are not the most, and it is negative or
// 255.
std::optional<Scalar> marker(const CheckFact& check) {
  if (check.values.size() != 1) return std::nullopt;
  const Element& e = *check.element;
  if (e.bad.value_or(1) * 2 > e.total.value_or(e.bad.value_or(1) * 2)) return std::nullopt;
  const double value = as_double(check.values.front().first);
  return value == -1 || value == -100 || value == 255 ? std::optional(check.values.front().first)
                                                      : std::nullopt;
}

void advise_cast(const CheckFact& check, Finding& f) {
  f.also.insert(f.also.begin(), f.cause);
  f.cause = Cause::kNanToIndex;
  f.summary += "; this is what a cast to an integer makes of NaN or Inf";
  f.fix.push_back(
      fmt::format("find the cast (.long(), .int(), .to(torch.int64)) that makes {}: NaN or Inf goes into "
                  "it, of a division by 0, log(0) or a missing value: mark it before the cast",
                  tensor_name(check)));
}

void advise_labels(const HostError& facts, const CheckFact& check, Finding& f) {
  const std::string name = tensor_name(check);
  const auto* const number = std::get_if<std::int64_t>(&*check.element->value);
  if (number != nullptr && is_cast_of_nan(*number)) return advise_cast(check, f);
  const bool binary = range(check) == "0 or 1";
  if (binary && check.values.size() == 1 && as_double(check.values.front().first) == -1) {
    f.fix.push_back("if -1 and 1 are the two classes, they have to be 0 and 1 here");
  }
  if (check.two_colours) {
    f.fix.push_back(fmt::format(
        "0 and 255 alone occur: 255 is the white of a picture of two colours, not a mark: {} // 255", name));
    return;
  }
  if (const auto mark = marker(check)) {
    const std::string value = to_text(*mark);
    const std::string knob = knob_advice(Situation::kIgnore, facts.library, {"N", value, ""});
    f.fix.push_back(fmt::format(
        "if {} marks what is not to count: {}", value,
        knob.empty()
            ? fmt::format("leave it out of both tensors before the call: keep = {} != {}", name, value)
            : knob));
  } else if (check.upper && !limit(check).empty() && check.element->value &&
             as_double(*check.element->value) >= as_double(*check.upper)) {  // beyond a count of classes
    const std::string knob = knob_advice(Situation::kClasses, facts.library, {"N", "", "", size_of(check)});
    const std::string setting = other_setting(check);
    const Scalar& highest = check.element->max ? *check.element->max : *check.element->value;
    if (!setting.empty() && is_integer(highest)) {
      f.fix.push_back(fmt::format(
          "if there are meant to be more: `{}`, which is {}, has to be as large as all data need, {} at "
          "least ({} is the highest seen here)",
          setting, to_text(*check.upper), std::get<std::int64_t>(highest) + (check.closed ? 0 : 1),
          to_text(highest)));
    } else {
      f.fix.push_back(fmt::format(
          "if there are meant to be more classes: {}",
          knob.empty() ? fmt::format("raise what {} takes{}", check.package, limit(check)) : knob));
    }
  }
  std::string look =
      fmt::format("{}look at where {} comes from", f.fix.empty() ? "" : "else ", element_name(check));
  if (check.variable) look += fmt::format(": print({}.unique())", name);
  f.fix.push_back(look);
}

void advise_index(const HostError& facts, const CheckFact& check, Finding& f) {
  const std::string knob = knob_advice(Situation::kIndex, facts.library, {"N", "", "", size_of(check)});
  if (!knob.empty()) f.fix.push_back(knob);
  if (check.kind == "number") {
    const std::string taken = range(check);
    f.fix.push_back(taken.empty() ? "look at where the index comes from"
                                  : fmt::format("look at where the index {} comes from: it has to be {}",
                                                to_text(*check.element->value), taken));
    return;
  }
  f.fix.push_back(fmt::format("look at where {} comes from", element_name(check)));
}

void advise_domain(const CheckFact& check, Finding& f) {
  const bool unit =
      check.lower && check.upper && as_double(*check.lower) == 0 && as_double(*check.upper) == 1;
  if (unit && check.tensor.dtype.starts_with("float"))
    f.fix.push_back(
        fmt::format("raw scores become probabilities by `{}.sigmoid()`; probabilities never "
                    "leave [0, 1]",
                    tensor_name(check)));
  f.fix.push_back(fmt::format("look at where {} comes from",
                              check.kind == "rows"
                                  ? fmt::format("{}[{}]", tensor_name(check), check.element->index.front())
                                  : element_name(check)));
}

bool is_number(std::string_view text) {
  return text.find_first_not_of("0123456789.-+ ") == std::string_view::npos;
}

// Class numbers in one channel, where the other tensor has a channel for each class.
std::string one_hot_knob(const HostError& facts, const CheckFact& check) {
  if (check.tensors.size() != 2) return {};
  for (std::size_t i = 0; i < 2; ++i) {
    const Shape &labels = check.tensors[i].tensor.shape, &scores = check.tensors[1 - i].tensor.shape;
    if (labels.size() < 2 || labels.size() != scores.size() || labels[1] != 1 || scores[1] < 2) continue;
    Shape spread = labels;
    spread[1] = scores[1];
    if (spread == scores)
      return knob_advice(Situation::kOneHot, facts.library, {std::to_string(scores[1]), "", ""});
  }
  return {};
}

// A size of one tensor beyond a limit that is none of its own.
std::string largest(const CheckFact& check) {
  static const RE2 kSize(R"((\w+)(?:\.shape\[(-?\d+)\]|\.size\((-?\d+)\)))");
  if (check.tensors.size() != 1 || check.joint) return {};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& [text, value] = check.sides[i];
    const auto& [limit, most] = check.sides[1 - i];
    std::string name, shape, size;
    if (!RE2::FullMatch(text, kSize, &name, &shape, &size) || !is_number(value) || !is_number(most)) continue;
    if (limit.find(name) != std::string::npos || std::stoll(value) <= std::stoll(most)) continue;
    if (check.condition.find_first_of("<>") == std::string::npos) continue;
    const bool equal_taken = (check.condition.find('=') != std::string::npos) == check.needs;
    const long long fits = std::stoll(most) - (equal_taken ? 0 : 1);
    const std::string dimension = shape + size;
    return fmt::format("{} may have {} at most in dimension {}{}: cut or leave out what is longer",
                       check.tensors.front().name, fits, dimension,
                       is_number(limit) ? "" : fmt::format(" (`{}`)", limit));
  }
  return {};
}

// Sizes that agree but for one dimension, where one is a multiple of the other: what strides make of frames.
std::string at_another_rate(const Checked& one, const Checked& other) {
  const Shape &a = one.tensor.shape, &b = other.tensor.shape;
  constexpr std::int64_t kMostSteps = 64;
  if (a.size() != b.size() || a.size() < 2) return {};
  const auto [at, in_b] = std::mismatch(a.begin(), a.end(), b.begin());
  if (at == a.end() || at == a.begin() || !std::equal(at + 1, a.end(), in_b + 1)) return {};
  const std::int64_t low = std::min(*at, *in_b), high = std::max(*at, *in_b);
  if (low < 2 || high % low != 0 || high / low > kMostSteps) return {};
  const std::string& longer = *at > *in_b ? one.name : other.name;
  std::string before;
  for (auto d = a.begin(); d != at; ++d) before += ":, ";
  return fmt::format(
      "{} is {} times as long in dimension {}: where strides or poolings shorten what it belongs to, make it "
      "at "
      "that rate, too: {}[{}::{}]",
      longer, high / low, at - a.begin(), longer, before, high / low);
}

void write_shapes(const HostError& facts, const CheckFact& check, Finding& f) {
  std::string tensors;
  for (std::size_t i = 0; i < check.tensors.size(); ++i) {
    tensors += i == 0 ? "" : i + 1 == check.tensors.size() ? " and " : ", ";
    tensors += check.tensors[i].name + " " + to_text(check.tensors[i].tensor.shape);
  }
  std::vector<std::string> sides;
  for (const auto& [text, value] : check.sides) {
    if (text != value) sides.push_back(fmt::format("`{}` is {}", text, value));
  }
  f.summary = fmt::format("{}{} {} not fit: {}", opening(check), tensors,
                          check.tensors.size() == 1 ? "does" : "do", fmt::join(sides, ", "));
  if (sides.size() < 2 || check.joint) f.summary += "; " + rule(check);
  f.argument = check.tensors.front().name;
  f.tensor = check.tensors.front().tensor;
  for (std::size_t i = 0; i < check.sides.size() && check.sides.size() == 2; ++i) {
    const auto& [text, value] = check.sides[i];
    if (text.find("class") == std::string::npos || !is_number(check.sides[1 - i].second)) continue;
    const std::string n = check.sides[1 - i].second;
    const std::string knob = knob_advice(Situation::kClasses, facts.library, {n, "", ""});
    if (!knob.empty()) f.fix.push_back(knob);
  }
  if (check.tensors.size() == 2) {
    const Checked &a = check.tensors[0], &b = check.tensors[1];
    const std::string call = call_that_fits(a.name, a.tensor.shape, b.tensor.shape);
    const std::string other = call_that_fits(b.name, b.tensor.shape, a.tensor.shape);
    const bool whole =
        check.sides[0].second == to_text(a.tensor.shape) && check.sides[1].second == to_text(b.tensor.shape);
    if (whole && !call.empty()) f.fix.push_back(fmt::format("use `{}`", call));
    if (whole && call.empty() && !other.empty()) f.fix.push_back(fmt::format("use `{}`", other));
    if (const std::string rate = at_another_rate(a, b); !rate.empty()) f.fix.push_back(rate);
  }
  if (const std::string knob = one_hot_knob(facts, check); !knob.empty()) f.fix.push_back(knob);
  if (const std::string most = largest(check); !most.empty()) f.fix.push_back(most);
  f.fix.push_back(fmt::format("the check is in {}: it {} `{}`", check.where,
                              check.needs ? "needs" : "refuses", check.condition));
}

}  // namespace

std::optional<Finding> finding_of_check(const HostError& facts) {
  if (!facts.check) return std::nullopt;
  const CheckFact& check = *facts.check;
  const CheckRow* row = row_of(facts, check);
  const bool complete = check.kind == "shape" ? !check.tensors.empty() && check.sides.size() == 2
                                              : check.element && check.element->value;
  if (row == nullptr || !complete || (check.kind == "distinct" && !check.upper)) return std::nullopt;
  if (check.kind == "rows" && check.element->index.empty()) return std::nullopt;
  Finding f;
  f.cause = row->cause;
  f.op = check.op.empty() ? check.package : check.op;
  f.argument = check.name;
  f.evidence.push_back({"check", std::nullopt, check.where + ": " + rule(check)});
  if (check.kind == "shape") {
    write_shapes(facts, check, f);
    return f;
  }
  f.tensor = check.tensor;
  if (check.kind == "number") f.tensor.reset();
  if (check.kind != "rows") f.element = check.element;  // there the row is wrong, and no element of it alone
  if (check.variable && f.element && check.variable->name != check.name) f.element->variable = check.variable;
  if (check.kind == "nan") {
    f.summary =
        fmt::format("{}{} is {}{}", opening(check), element_name(check),
                    std::isnan(as_double(*check.element->value)) ? "NaN" : "Inf", count(*check.element));
    if (explain_host_nan(facts, tensor_name(check), f)) return f;
    f.fix.push_back(
        check.variable
            ? fmt::format("look for the first NaN before the call: `torch.isfinite({}).all()`",
                          tensor_name(check))
            : fmt::format("{} is {}'s own, made of what it was given: look for the first NaN there",
                          check.name, check.package));
    return f;
  }
  write_values(check, f);
  if (row->cause == Cause::kLabelOutOfRange) advise_labels(facts, check, f);
  if (row->cause == Cause::kIndexOutOfRange) advise_index(facts, check, f);
  if (row->cause == Cause::kLossInputOutOfRange) advise_domain(check, f);
  return f;
}

}  // namespace trapline::diagnose
