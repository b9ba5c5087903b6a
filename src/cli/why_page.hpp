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

}  // namespace trapline::cli
