// The page of a cause: its hand-written text, its examples, and what the tables know of it, as Markdown.
#pragma once

#include <string>

#include "contracts/contract.hpp"
#include "core/cause.hpp"

namespace trapline::cli {

// docs/causes/SLUG.md, byte for byte.
std::string cause_page(Cause cause);

// All causes, one line each.
std::string list_of_causes();

// What must hold for the argument of a contract: "in [0, rows of `weight`)".
std::string rule_text(const Contract& contract);

}  // namespace trapline::cli
