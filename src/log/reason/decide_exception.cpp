#include "log/reason/decide_exception.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "catalogue/patterns.hpp"

namespace trapline {
namespace {

using enum Cause;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// What a library raises in the words of a runtime below it.
bool is_of_runtime(std::string_view exception) {
  const std::string_view last = exception.substr(exception.rfind('.') + 1);
  return last == "RuntimeError" || last == "OSError" || last == "SystemError" || last == "Exception" ||
         last == "InternalError" || last == "UnknownError";
}

// An exception that only software of a GPU raises, whatever it says.
bool is_of_gpu(std::string_view exception) {
  const std::string_view last = exception.substr(exception.rfind('.') + 1);
  return last == "XlaRuntimeError" || last == "JaxRuntimeError" || last == "CUDARuntimeError" ||
         last == "CUDADriverError" || last == "CudaAPIError" || last == "NVRTCError" ||
         last == "AcceleratorError";
}

// What Python code raised by itself, of its arguments or its installation: the innermost frame shows it, or
// the exception is one that no runtime gives. A text that holds a status has it from below.
bool is_check_of_python(const Event& event, const EventContext& scene) {
  static const RE2* const status = new RE2(
      R"re((?i)\b(?:cuda|hip|nccl|driver|runtime|cudnn|cublas)\w* ?(?:error|failure)|_ERROR\b|_STATUS_|\berror(?: code)?[ :=]+\d|asynchronous|device-side|unhandled)re",
      RE2::Latin1);
  static const RE2* const raises = new RE2(R"re(^\s*(?:raise [A-Z]\w*\s*\(|assert\b))re", RE2::Latin1);
  static const RE2* const of_host = new RE2(
      R"re((?:^|\.)(?:ValueError|TypeError|ImportError|NotImplementedError|AssertionError|MisconfigurationException)$)re",
      RE2::Latin1);
  if (event.message.empty() || RE2::PartialMatch(event.message, *status)) return false;
  const LogFrame* const frame = scene.traceback == nullptr ? nullptr : scene.traceback->deepest();
  return RE2::PartialMatch(event.exception, *of_host) ||
         (frame != nullptr && RE2::PartialMatch(frame->frame.code, *raises));
}

}  // namespace

bool is_of_program(std::string_view exception) {
  constexpr std::string_view kOfProgram[] = {
      "KeyError",           "NameError",           "UnboundLocalError",
      "AttributeError",     "SyntaxError",         "IndentationError",
      "TabError",           "FileNotFoundError",   "FileExistsError",
      "IsADirectoryError",  "ModuleNotFoundError", "NotADirectoryError",
      "ZeroDivisionError",  "JSONDecodeError",     "UnicodeDecodeError",
      "UnicodeEncodeError", "RecursionError",      "KeyboardInterrupt",
      "StopIteration",      "PermissionError"};
  const std::string_view last = exception.substr(exception.rfind('.') + 1);
  return std::ranges::find(kOfProgram, last) != std::end(kOfProgram);
}

bool advises_option(const Event& event) {
  static const RE2* const option = new RE2(
      R"re((?i)\b(?:pass|use|set|give|specify|disable|enable|add|remove|drop)\b.{0,40}?\s--[a-z][\w-]+)re",
      RE2::Latin1);
  return !event.exception.empty() && !is_of_gpu(event.exception) && RE2::PartialMatch(event.message, *option);
}

Decision decide_exception(const Event& event, const EventContext& scene) {
  Decision d;
  d.synchronous = true;
  d.device_assert = false;
  d.cause = kNotCuda;
  d.certainty = Certainty::kLikely;  // also of an assertion: what it looks at may be what a GPU gave
  if (is_of_program(event.exception)) return d;
  // Without a word nothing is told; a time-out tells only that something else did not answer.
  const std::string_view plain = std::string_view(event.exception).substr(event.exception.rfind('.') + 1);
  const bool is_bare =
      event.message.empty() && (plain == "RuntimeError" || plain == "Exception" || plain == "TimeoutError");
  // "numba.cuda.cudadrv.driver.CudaAPIError", also when its end was cut off.
  const std::string_view name = std::string_view(event.text).substr(0, event.text.find(':'));
  const bool is_named = contains(event.message, "CUDA") || contains(event.message, "cuda runtime") ||
                        contains(event.message, "HIP error") || is_of_runtime(event.exception);
  if (advises_option(event) || (!is_of_gpu(event.exception) && is_check_of_python(event, scene))) return d;
  if (is_bare || is_of_gpu(event.exception) || contains(name, "cuda.") || contains(name, "hip.") ||
      (is_named && speaks_of_gpu(event.message))) {
    d.cause = kInsufficientEvidence;  // an error of a GPU's software that the catalogue does not know
    d.certainty = Certainty::kUnknown;
    d.also = {kNotCuda};
  }
  return d;
}

}  // namespace trapline
