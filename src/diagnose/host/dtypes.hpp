// The many spellings of a dtype in PyTorch's messages.
#pragma once

#include <string>
#include <string_view>

#include "diagnose/host/case.hpp"

namespace trapline::diagnose {

// Spellings are "Long", "long int", "c10::Half", "torch.cuda.HalfTensor", "torch.float64"; an unknown one
// stays itself.
std::string dtype_name(std::string_view spelling);  // "int64"
std::string dtype_cast(std::string_view spelling);  // the call that converts to it: "long()"
bool is_floating_name(std::string_view spelling);
// Float8 and float4 have no arithmetic in PyTorch's ordinary operations: what is stored so is cast up to be
// used.
bool is_storage_only(std::string_view spelling);

// The operand of this dtype, rather one that the user named; nullptr when there is none.
const Operand* operand_of_dtype(const HostCase& host_case, std::string_view spelling);

// Puts the operand into the finding, if there is one.
void set_tensor(Finding& finding, const Operand* operand);

// The words for class labels of a wrong dtype.
void explain_label_dtype(const HostCase& host_case, Finding& finding, std::string_view got);

}  // namespace trapline::diagnose
