// The slots of all launches: one mapped report each, and what the host has to remember about the launch.
//
// A slot is free, reserved, launched, or done (its launch has run, its report was not polled yet, or by the
// last poll only), and then free again. One that was launched into a graph stays launched for ever, since any
// replay may report.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda/process.hpp"
#include "trapline/types.h"

namespace trapline::cuda {

// A free slot of the device, or -1. With `grow` more are mapped when none is free.
std::int64_t take_slot(Device& device, bool grow);

// What the kernel has to know about a reserved slot; slot is null when the number is none of the device's.
struct Ticket {
  DevicePointer slot = 0;
  std::uint64_t launch = 0;
};
Ticket begin_launch(Device& device, std::int64_t slot, const trapline_device_check& check, bool capturing);

// The launch did not come about: the slot is free again.
void cancel_reserved(std::int64_t slot);
void cancel_launched(std::int64_t slot);

// The launches of these slots have run.
void complete(const std::vector<std::int64_t>& slots);

bool is_pending();
int poll(trapline_device_report* reports, int capacity);

}  // namespace trapline::cuda
