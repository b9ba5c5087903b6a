// The facts as another process or another language hands them in: docs/facts.md.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/result.hpp"
#include "diagnose/facts.hpp"

namespace trapline::diagnose {

// Never throws, but where memory is exhausted. A member of the wrong type is left out as if it had not been
// there; only what a kind of facts requires is an error when it is missing.
Result<Facts> read_facts(const nlohmann::json& json);

}  // namespace trapline::diagnose
