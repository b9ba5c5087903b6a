// The contracts table as the C structures that callers hold.
#pragma once

#include <vector>

#include "contracts/contract.hpp"
#include "trapline/capi.h"

namespace trapline {

// In the order of contracts().
const std::vector<trapline_contract>& rows();

// Rows are handed out by address; one that a caller copied is found again by its id. Null: no such row.
const Contract* contract_of(const trapline_contract* row);

}  // namespace trapline
