#include "log/reason/distributions.hpp"

#include <re2/re2.h>

#include <string>

namespace trapline {

void decide_distribution(const Event& event, Decision& d) {
  if (event.host == nullptr || event.host->id != "distribution.parameter") return;
  static const RE2* const refused = new RE2(
      R"re(Expected parameter (\w+) .*of distribution (\w+).* to satisfy the constraint (.+), but found)re",
      RE2::Latin1);
  std::string parameter, type, constraint;
  if (!RE2::PartialMatch(event.host_message, *refused, &parameter, &type, &constraint)) return;
  // Probabilities that are NaN are invalid ones, as those are that do not sum up to one.
  if (parameter == "probs" || parameter == "logits") return;
  d.op = type;
  d.argument = parameter;
  d.certainty = Certainty::kLikely;
  // torch/distributions/constraints.py: a real is what equals itself. Infinity does.
  const bool is_nan = event.shows_nan || constraint.find("Real") != std::string::npos ||
                      event.host_message.find("nan") != std::string::npos;
  d.also = {is_nan ? Cause::kInvalidProbability : Cause::kNonFiniteValue};
  if (is_nan) d.cause = Cause::kNonFiniteValue;
}

}  // namespace trapline
