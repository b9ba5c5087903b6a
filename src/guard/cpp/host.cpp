// The guard in a C++ program: what src/guard leaves to the language of the program. Frames are read only when
// there is something to report, and a violation is thrown as a C++ exception.
#include <c10/util/Exception.h>
#include <torch/csrc/api/include/torch/version.h>
#include <torch/library.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "guard/answer.hpp"
#include "guard/device_faults.hpp"
#include "guard/hooks_install.hpp"
#include "guard/intern.hpp"
#include "trapline/native.h"

// A guarded call does not remember where it was made: a walk of the C++ stack takes microseconds.
int trapline_frames_walk(trapline_frame*, int) { return 0; }

namespace trapline {

// What the program catches: std::exception, c10::Error, c10::IndexError. what() is the report's headline,
// and PyTorch's own words in a second line.
class DeviceAssertError : public c10::IndexError {
 public:
  explicit DeviceAssertError(const std::string& headline) : c10::IndexError(headline, c10::Backtrace()) {}
};

namespace guard {
namespace {

Argument argument_of(const c10::IValue& value) {
  Argument argument;
  if (value.isTensor()) {
    argument.kind = TRAPLINE_ARG_TENSOR;
    argument.tensor = &value.toTensor();
  } else if (value.isInt()) {
    argument.kind = TRAPLINE_ARG_INT;
    argument.integer = value.toInt();
  } else if (value.isList()) {
    argument.kind = TRAPLINE_ARG_LIST;
    argument.list = value.toListRef();
  }
  return argument;
}

std::string headline_of(const Plan& plan, const Violation& violation, const c10::IValue* arguments) {
  const auto& schema = plan.handle.schema().arguments();
  std::vector<trapline_native_arg> described(schema.size());
  std::vector<Scratch> scratch(schema.size());
  for (std::size_t i = 0; i < schema.size(); ++i) {
    const Argument argument = argument_of(arguments[i]);
    trapline_native_arg& out = described[i];
    out = {schema[i].name().c_str(), "cpu", {}};
    const bool defined = argument.kind != TRAPLINE_ARG_TENSOR || argument.tensor->defined();
    if (!defined || !describe(argument, Part::kElements, out.value, scratch[i]))
      out.value.kind = TRAPLINE_ARG_NONE;
  }
  const trapline_native_fault fault{violation.row->row,      &violation.scan,
                                    plan.op.c_str(),         static_cast<std::int32_t>(described.size()),
                                    violation.row->argument, described.data()};
  const std::unique_ptr<char, void (*)(char*)> text(trapline_native_report(&fault), trapline_free);
  return text ? text.get() : bare_sentence(*violation.row->row, violation.scan);
}

void install() {
  if (trapline_capi_version() != TRAPLINE_CAPI_VERSION) {
    std::fprintf(
        stderr,
        "trapline: libtorch: the guard was built for C interface %d, but libtrapline has %d: this process "
        "is not guarded: build it again\n",
        TRAPLINE_CAPI_VERSION, trapline_capi_version());
    return;
  }
  install_hooks();
  trapline_native_started(TORCH_VERSION);
  g_enabled.store(true);
  std::atexit([] { g_enabled.store(false); });
}

// This file comes last in the one translation unit, so that everything else is initialized.
[[maybe_unused]] const bool g_brought_in = [] {
  try {
    install();
  } catch (const std::exception& error) {
    stepped_aside("libtorch", error.what());
  }
  return true;
}();

}  // namespace

int keep_alive(const trapline_frame*, int count) { return count; }

void answer_violation(ThreadState& state, const Plan& plan, const Violation& violation,
                      const std::string& says, c10::IValue* arguments) {
  std::string headline;
  {
    const BusyScope busy(state);
    headline = headline_of(plan, violation, arguments);
    if (!says.empty()) headline += "\n(PyTorch: " + says + ")";
  }
  throw DeviceAssertError(headline);
}

// Without choose_device() no device is guarded.
void answer_fault(ThreadState&, const LateFault& fault) {
  throw DeviceAssertError(bare_sentence(*fault.record.row->row, fault.scan));
}

}  // namespace guard
}  // namespace trapline
