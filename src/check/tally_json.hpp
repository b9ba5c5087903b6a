// Tallies as JSON: what one worker of a cluster hands to whoever merges them.
#pragma once

#include <nlohmann/json.hpp>

#include "check/tally.hpp"
#include "check/verdict.hpp"
#include "core/result.hpp"

namespace trapline::check {

nlohmann::json to_json(const Tally& tally);
nlohmann::json to_json(const Lengths& lengths);

// Members of the wrong type are left out; never throws for what the text holds.
Tally tally_from(const nlohmann::json& object);
Lengths lengths_from(const nlohmann::json& object);

}  // namespace trapline::check
