// What the language of the program does about a violation: Python in python/raise.cpp, C++ in cpp/host.cpp.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>

#include "guard/check.hpp"

namespace trapline::guard {

// Python calls the handler under the GIL and throws the instance that it returns as python_error, which
// crosses autograd's threads and the dispatcher; C++ throws an exception of its own. `arguments` points at
// all arguments of the call, in schema order; `says` is what PyTorch's operation throws because of the value,
// "" where that is not known, and becomes the second half of the exception's text.
//
// With --on-fault skip the handler may return a tensor instead of an exception: the argument without its bad
// elements. It then takes the place of the bad one in `arguments` (in a copy, where that is a list), and this
// function returns. The caller checks the call again: another argument of it may be bad too.
void answer_violation(ThreadState& state, const Plan& plan, const Violation& violation,
                      const std::string& says, c10::IValue* arguments);

// The same for a fault of an earlier call. There is nothing to heal any more: True in the place of a tensor
// means that the handler has dealt with it, which it can where the operation got a healed copy.
struct LateFault;
void answer_fault(ThreadState& state, const LateFault& fault);

// What there is to say of a violation when its answer fails: libtrapline's last resort.
inline std::string bare_sentence(const trapline_contract& row, const trapline_scan& scan) {
  char text[1024];
  const int length = trapline_bare_sentence(row.id, &scan, text, sizeof text);
  return {text, static_cast<std::size_t>(length)};
}

}  // namespace trapline::guard
