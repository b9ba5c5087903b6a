// Error codes: the thread's last one, names, texts.
#include <string>

#include "runtime.hpp"

using namespace fakecuda;
using namespace fakecuda::runtime;

namespace {

thread_local cudaError_t t_last = cudaSuccess;

struct Known {
  cudaError_t code;
  const char* name;
  const char* text;
};

#define FAKE_RT_ERROR(code, text) \
  { code, #code, text }
constexpr Known kKnown[] = {
    FAKE_RT_ERROR(cudaSuccess, "no error"),
    FAKE_RT_ERROR(cudaErrorInvalidValue, "invalid argument"),
    FAKE_RT_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    FAKE_RT_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    FAKE_RT_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    FAKE_RT_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    FAKE_RT_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    FAKE_RT_ERROR(cudaErrorNotReady, "device not ready"),
    FAKE_RT_ERROR(cudaErrorAssert, "device-side assert triggered"),
    FAKE_RT_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    FAKE_RT_ERROR(cudaErrorHostMemoryAlreadyRegistered,
                  "part or all of the requested memory range is already mapped"),
    FAKE_RT_ERROR(cudaErrorHostMemoryNotRegistered,
                  "pointer does not correspond to a registered memory region"),
    FAKE_RT_ERROR(cudaErrorNotSupported, "operation not supported"),
    FAKE_RT_ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    FAKE_RT_ERROR(cudaErrorStreamCaptureInvalidated,
                  "operation failed due to a previous error during capture"),
    FAKE_RT_ERROR(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
    FAKE_RT_ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    FAKE_RT_ERROR(cudaErrorCapturedEvent,
                  "operation not permitted on an event last recorded in a capturing stream"),
};

const Known* find(cudaError_t code) {
  for (const Known& known : kKnown) {
    if (known.code == code) return &known;
  }
  return nullptr;
}

}  // namespace

cudaError_t runtime::note(cudaError_t result) {
  // A lost context is the machine's, and not the thread's.
  if (result != cudaSuccess && result != cudaErrorAssert) t_last = result;
  return result;
}

cudaError_t cudaGetLastError() {
  if (machine().lost.load()) return cudaErrorAssert;  // sticky
  const cudaError_t last = t_last;
  t_last = cudaSuccess;
  return last;
}

cudaError_t cudaPeekAtLastError() { return machine().lost.load() ? cudaErrorAssert : t_last; }

const char* cudaGetErrorName(cudaError_t error) {
  const Known* known = find(error);
  return known != nullptr ? known->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const Known* known = find(error);
  return known != nullptr ? known->text : "unrecognized error code";
}
