// Where a NaN comes from: the weights, a banned row, what went in, the dtype; else the command that finds it.
#include <fmt/format.h>

#include <cmath>

#include "diagnose/diagnose.hpp"
#include "diagnose/violation/writer.hpp"

namespace trapline {
namespace {

constexpr int kMostFloat16 = 65504;

const NanFact& nan_of(const Case& c) {
  static const NanFact nothing;
  return c.facts.nan ? *c.facts.nan : nothing;
}

bool not_finite(const Case& c) {
  return c.facts.scan.reason == Reason::kNan || c.facts.scan.reason == Reason::kInf;
}

// Every parameter in reach was looked at, and none is bad.
bool weights_are_finite(const Case& c) { return c.facts.weights && c.facts.weights->bad == 0; }

std::string lead(const Case& c, const char* joint) {
  return weights_are_finite(c) ? fmt::format("; the model's weights are finite, {}", joint) : "; ";
}

void watch(const Case& c) {
  if (nan_of(c).command.empty()) return;
  c.fix(fmt::format("let the layer be named that made the first NaN: trapline run --watch nan -- {}",
                    nan_of(c).command));
}

// The step before this one broke the model: nothing that this call was given is to blame.
bool weights(const Case& c) {
  if (!c.facts.weights || c.facts.weights->bad == 0 || c.facts.scan.reason != Reason::kNan) return false;
  const WeightsFact& weights = *c.facts.weights;
  c.finding.summary += fmt::format("; the weights are NaN or Inf already: {} of {} parameters, `{}` first",
                                   weights.bad, weights.total, weights.name);
  if (!nan_of(c).trains) {
    c.fix(
        "if they were loaded so, look at the checkpoint: [n for n, p in model.named_parameters() if not "
        "p.isfinite().all()]; take an earlier one, or save it again: a conversion to float16 makes Inf above "
        "65504");
    c.fix(
        "if they were trained in this program, stop at the first bad loss: assert torch.isfinite(loss) "
        "before loss.backward()");
    return true;
  }
  c.fix(
      "an earlier step broke the weights: stop at the first bad loss: assert torch.isfinite(loss) before "
      "loss.backward()");
  watch(c);
  c.fix(
      "NaN comes of missing data, 0/0 (the std of a constant column, or of one row), log of 0 or below, a "
      "softmax over a row that is masked everywhere, float16 overflow, a learning rate that is too high");
  return true;
}

bool banned(const Case& c) {
  const NanFact& nan = nan_of(c);
  if (nan.banned.empty() || c.facts.scan.reason != Reason::kNan) return false;
  c.finding.summary += fmt::format(
      "; every score of row {} is -inf in `{}`: nothing is left to draw from, and softmax makes NaN of it",
      nan.banned_row, nan.banned);
  c.fix(
      "a logits processor, a mask or a filter bans every choice of that row: leave at least one (top-k, "
      "top-p, "
      "bad words, prefix_allowed_tokens_fn, action masks)");
  c.fix(fmt::format(
      "or, where nothing may be chosen in truth (a game that is over, an empty list), leave row {} "
      "out before the call",
      nan.banned_row));
  return true;
}

bool divided_by_zero(const Case& c) {
  const std::string& zero = nan_of(c).zero;
  if (zero.empty() || !not_finite(c)) return false;
  c.finding.summary += fmt::format("; `{}` is 0, and a division by it makes Inf and NaN", zero);
  c.fix(fmt::format(
      "refuse a temperature of 0, or take the best choice without drawing: argmax(-1) where `{}` is 0",
      zero));
  return true;
}

bool input(const Case& c) {
  const NanFact& nan = nan_of(c);
  if (!nan.input || !not_finite(c)) return false;
  const std::string where = to_text(*nan.input);
  const char* what = std::isnan(as_double(*nan.value)) ? "NaN" : "Inf";
  if (nan.module.empty()) {
    c.finding.summary += lead(c, "") + fmt::format("{} is {}", where, what);
  } else {
    c.finding.summary += lead(c, "") + fmt::format("the input of `{}` is {}: {}", nan.module, what, where);
  }
  c.fix(fmt::format("find what makes {} {}, and stop there: assert that `{}` is finite before the call",
                    where, what, nan.input->name));
  if (nan.situation == "policy") {
    c.fix(
        "an observation is NaN after 0/0 in step() or reset(), or a normalisation by a standard deviation of "
        "0: "
        "(x - mean) / (std + 1e-8)");
  } else {
    c.fix("missing values, 0/0, log(0) and a normalisation by a standard deviation of 0 make NaN");
  }
  return true;
}

bool half(const Case& c) {
  const NanFact& nan = nan_of(c);
  if (!not_finite(c)) return false;
  const bool argument = c.facts.tensor.dtype == "float16";
  if (nan.half.empty() && !nan.autocast && !argument) return false;
  const std::string what = !nan.half.empty() ? fmt::format("`{}` is float16", nan.half)
                           : nan.autocast    ? std::string("autocast computes in float16")
                                             : fmt::format("`{}` is float16", c.argument());
  c.finding.summary += lead(c, "but ") + fmt::format("{}, which overflows above {}", what, kMostFloat16);
  if (!nan.half.empty()) {
    const char* load =
        c.facts.resizable.empty() ? "model.to(torch.bfloat16)" : "from_pretrained(..., dtype=torch.bfloat16)";
    c.fix(fmt::format("load the model in bfloat16, which has the range of float32: {}", load));
  } else if (nan.autocast) {
    c.fix("use bfloat16, which has the range of float32: torch.autocast(..., dtype=torch.bfloat16)");
  } else {
    c.fix(fmt::format(
        "compute `{}` in float32 or bfloat16: .float() before the softmax, the sigmoid or the exp",
        c.argument()));
  }
  return true;
}

}  // namespace

bool explain_nan(const Case& c) {
  if (weights(c) || banned(c) || input(c) || divided_by_zero(c)) return true;
  if (half(c)) {
    watch(c);  // a reading of the dtype, no proof
    return true;
  }
  if (weights_are_finite(c) && not_finite(c)) c.finding.summary += "; the model's weights are finite";
  watch(c);
  return false;
}

bool nan_watched(const Case& c) { return !nan_of(c).command.empty(); }

bool nan_when(const Case& c, const char* situation) {
  return nan_of(c).situation.empty() || nan_of(c).situation == situation;
}

bool nan_trains(const Case& c) { return nan_of(c).trains; }

std::string nan_cast_source(const Case& c) {
  const NanFact& nan = nan_of(c);
  if (!nan.input) return {};
  return fmt::format("{} is {}", to_text(*nan.input), std::isnan(as_double(*nan.value)) ? "NaN" : "Inf");
}

bool explain_host_nan(const nlohmann::json& facts, const std::string& argument, Finding& finding) {
  Facts read;
  read.nan = read_nan(facts);
  read.weights = read_weights(facts);
  if (!read.nan && !read.weights) return false;
  read.column = argument;
  read.scan.reason = Reason::kNan;
  if (finding.tensor) read.tensor = *finding.tensor;
  return explain_nan(Case(read, finding));
}

bool host_trains(const nlohmann::json& facts) {
  const std::optional<NanFact> nan = read_nan(facts);
  return !nan || nan->trains;
}

}  // namespace trapline
