// A device of the tests: PrivateUse1 on the fake driver's streams. Operations are enqueued and run late, by
// the CPU's kernels on the same memory; what CUDA answers with a device-side assert poisons the context.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/DispatchKeySet.h>

#include <functional>

#include "fake_cuda.h"

namespace fakedev {

constexpr c10::DeviceType kDevice = c10::DeviceType::PrivateUse1;

// Throws what PyTorch throws for every call after a device-side assert.
void check_context();

void* current_handle();                    // the calling thread's current stream
void enqueue(std::function<void()> work);  // on it
void synchronize(void* stream);            // waits, then check_context()

c10::Allocator* memory();
void use_on(const void* address, void* stream);  // record_stream

}  // namespace fakedev
