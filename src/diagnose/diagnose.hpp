// Facts of a violation to a finding. All words about violations are made here and in diagnose_*.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "contracts/contract.hpp"
#include "core/finding.hpp"
#include "core/result.hpp"

namespace trapline {

// Facts of kind "violation" (docs/facts.md).
Result<Finding> diagnose_violation(const nlohmann::json& facts);

// What surrounds a NaN that PyTorch itself found in `argument` (a parameter of a distribution): adds to
// summary and fix what the facts `nan` and `weights` tell. False when they tell nothing that is enough.
bool explain_host_nan(const nlohmann::json& facts, const std::string& argument, Finding& finding);
// The same facts say that the program trains, or nobody knows what it does.
bool host_trains(const nlohmann::json& facts);

// What the predicate allows: "[0, 195) or -100", "[0, 1]", "finite, >= 0, row sum > 0".
std::string valid_text(const Contract& contract, std::int64_t lo, std::int64_t hi, const std::int64_t* also);

}  // namespace trapline
