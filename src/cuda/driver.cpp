#include "cuda/driver.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace trapline::cuda {

std::string Driver::name_of(Result result) const {
  const char* name = nullptr;
  const bool known =
      get_error_name != nullptr && get_error_name(result, &name) == kSuccess && name != nullptr;
  return std::string(known ? name : "error") + " (" + std::to_string(result) + ")";
}

bool load_driver(Driver& driver, std::string& why) {
  const char* named = std::getenv("TRAPLINE_CUDA_DRIVER");
  const std::string file = named != nullptr && *named != '\0' ? named : "libcuda.so.1";
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    why = "device checks: " + file + " cannot be loaded: install the NVIDIA driver";
    return false;
  }
#define TRAPLINE_CUDA_LOAD(member, name, parameters)                                               \
  driver.member = reinterpret_cast<Result(*) parameters>(dlsym(library, name));                    \
  if (driver.member == nullptr) {                                                                  \
    why = "device checks: " + file + " has no " + name + ": install a driver of CUDA 11 or newer"; \
    return false;                                                                                  \
  }
  TRAPLINE_CUDA_CALLS(TRAPLINE_CUDA_LOAD)
#undef TRAPLINE_CUDA_LOAD
  return true;
}

bool is_sticky(Result result) {
  switch (result) {
    case 4:    // DEINITIALIZED
    case 214:  // ECC_UNCORRECTABLE
    case 700:  // ILLEGAL_ADDRESS
    case 702:  // LAUNCH_TIMEOUT
    case 709:  // CONTEXT_IS_DESTROYED
    case 710:  // ASSERT
    case 714:  // HARDWARE_STACK_ERROR
    case 715:  // ILLEGAL_INSTRUCTION
    case 716:  // MISALIGNED_ADDRESS
    case 717:  // INVALID_ADDRESS_SPACE
    case 718:  // INVALID_PC
    case 719:  // LAUNCH_FAILED
    case 999:  // UNKNOWN
      return true;
    default:
      return false;
  }
}

}  // namespace trapline::cuda
