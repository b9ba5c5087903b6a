// Applies one row of the contracts table to the arguments of one call.
#pragma once

#include "contracts/contract.hpp"
#include "trapline/capi.h"

namespace trapline {

// The arguments that the row names; null where it names none. They are the C structures, so that nothing is
// copied between the guard and the check.
struct CallArguments {
  const trapline_arg* argument = nullptr;
  const trapline_arg* bound = nullptr;
  const trapline_arg* dim = nullptr;
  const trapline_arg* also = nullptr;
};

// TRAPLINE_NOT_APPLICABLE whenever the operation's own host checks should speak, or when it accepts such a
// call (an empty result, for which nothing is read). Fills `scan` otherwise. Never allocates, never throws.
trapline_verdict check_call(const Contract& contract, const CallArguments& call, trapline_scan& scan);

}  // namespace trapline
