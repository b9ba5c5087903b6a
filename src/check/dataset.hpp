// A folder of data as a whole: what its columns hold is guessed from their names and dtypes, and said.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/files.hpp"
#include "check/rule.hpp"
#include "core/finding.hpp"
#include "core/result.hpp"

namespace trapline::check {

// What is known of the model that the data is for; limits of 0 are not known.
struct Expected {
  Rule labels{RuleKind::kLabels, 0, -100, {}, {}, {}, {}, false, false};
  Rule ids{RuleKind::kIds, 0, {}, {}, {}, {}, {}, false, false};
  std::string label_column;  // empty: found by evidence
};

Report check_dataset(const std::vector<std::string>& paths, const Expected& expected, const Job& job,
                     std::vector<Error>& problems);

}  // namespace trapline::check
