// The functions of trapline/device.h behind the C face. In a forked child all of them are without effect.
#pragma once

#include <cstdint>

#include "trapline/types.h"

namespace trapline::cuda {

std::int64_t reserve(int device);
std::int64_t scratch_bytes(const trapline_device_check& check, int flags);
bool launch(int device, void* stream, std::int64_t slot, const trapline_device_check& check, void* healed,
            void* scratch, int flags);
bool pending();
int take_reports(trapline_device_report* reports, int capacity);
bool wait_all();
bool wait_stream(int device, void* stream);

}  // namespace trapline::cuda
