// The context of the devices, and how it is lost.
#pragma once

#include <string>

namespace trapline::cpu_cuda {

// Throws what PyTorch throws for every call after a device-side assert.
void check_context();

// A kernel's assertion failed: prints `line` as CUDA does; from now on every call fails.
void lose_context(const std::string& line);
bool context_lost() noexcept;
void restore_context() noexcept;  // what no process can do with CUDA: for tests

// Called when the context is lost, and when it is restored.
void follow_context(void (*lost)(), void (*restored)());

bool launches_block();  // CUDA_LAUNCH_BLOCKING=1

[[noreturn]] void throw_cuda_error(int code, const char* name, const char* text);

}  // namespace trapline::cpu_cuda
