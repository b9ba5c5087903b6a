// What of one row is to be checked on a device: check_call without the elements.
#pragma once

#include <span>

#include "contracts/bounds.hpp"
#include "contracts/contract.hpp"
#include "trapline/types.h"

namespace trapline {

// Fills the checks from the front and `count`; `row` of each is the caller's to fill in. Only sizes, strides
// and dtypes are looked at. Never allocates, never throws.
trapline_plan_verdict plan_call(const Contract& contract, const CallArguments& call,
                                std::span<trapline_device_check> checks, int& count, trapline_scan& scan);

}  // namespace trapline
