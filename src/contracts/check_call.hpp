// Applies one row of the contracts table to the arguments of one call.
#pragma once

#include "contracts/bounds.hpp"
#include "contracts/contract.hpp"
#include "trapline/types.h"

namespace trapline {

// TRAPLINE_NOT_APPLICABLE whenever the operation's own host checks should speak, or when it accepts such a
// call (an empty result, for which nothing is read). Fills `scan` otherwise. Never allocates, never throws.
trapline_verdict check_call(const Contract& contract, const CallArguments& call, trapline_scan& scan);

}  // namespace trapline
