// What a contract demands, in words: of any call, and of one.
#pragma once

#include <string>

#include "contracts/contract.hpp"
#include "diagnose/violation/facts.hpp"

namespace trapline::diagnose {

// "in [0, classes of `self`), or equal to `ignore_index`": Markdown, in the operation's own argument names.
std::string rule_words(const Contract& contract);

// "[0, 195) or -100", "[0, 1]", "finite, >= 0, row sum > 0".
std::string valid_words(const Contract& contract, const ScanFact& scan);

}  // namespace trapline::diagnose
