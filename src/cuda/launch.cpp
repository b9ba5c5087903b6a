#include "cuda/launch.hpp"

#include <optional>

#include "cuda/arguments.hpp"
#include "cuda/slots.hpp"
#include "cuda/streams.hpp"

namespace trapline::cuda {
namespace {

// Null: not ready, context lost, or a forked child.
Device* usable(int index) {
  if (is_forked()) return nullptr;
  Device* device = device_at(index);
  return device == nullptr || device->lost.load(std::memory_order_relaxed) ? nullptr : device;
}

}  // namespace

std::int64_t reserve(int index) {
  Device* device = usable(index);
  if (device == nullptr) return -1;
  if (const std::int64_t slot = take_slot(*device, false); slot >= 0) return slot;
  for (Stream* stream : all_streams()) {
    if (&stream->device() == device) stream->recycle();
  }
  return take_slot(*device, true);  // rather more memory than a wait
}

std::int64_t scratch_bytes(const trapline_device_check& check, int flags) {
  const bool one_block = (flags & TRAPLINE_LAUNCH_CAPTURING) != 0 || blocks_of(check) <= 1;
  return one_block ? 0 : static_cast<std::int64_t>(sizeof(Scratch));
}

bool launch(int index, void* handle, std::int64_t slot, const trapline_device_check& check, void* healed,
            void* scratch, int flags) {
  Device* device = usable(index);
  const std::optional<Kernel> kernel = kernel_of(check, healed, scratch);
  if (device == nullptr || !kernel) {
    if (!is_forked()) cancel_reserved(slot);
    return false;
  }
  const bool capturing = (flags & TRAPLINE_LAUNCH_CAPTURING) != 0;
  CheckArgs args = arguments_of(check, healed);
  unsigned blocks = 1;
  if (!capturing && scratch != nullptr) {
    blocks = blocks_of(check);
    args.scratch = static_cast<Scratch*>(scratch);
  }
  args.alarm = pointer_to<std::uint32_t>(device->alarm_address);

  Stream& stream = stream_of(*device, handle);
  const std::lock_guard lock(stream.mutex());
  const Ticket ticket = begin_launch(*device, slot, check, capturing);
  if (ticket.slot == 0) return false;
  args.slot = pointer_to<Slot>(ticket.slot);
  args.launch = ticket.launch;
  void* parameters[] = {&args};
  const Result result = device->driver->launch_kernel(device->kernels[*kernel], blocks, 1, 1, kThreads, 1, 1,
                                                      0, handle, parameters, nullptr);
  if (!device->succeeded(result)) {
    cancel_launched(slot);
    return false;
  }
  if (!capturing) stream.count_launch(slot);
  return true;
}

bool pending() { return !is_forked() && is_pending(); }

int take_reports(trapline_device_report* reports, int capacity) {
  return is_forked() || reports == nullptr ? 0 : poll(reports, capacity);
}

bool wait_all() {
  if (is_forked()) return false;
  bool done = true;
  for (Stream* stream : all_streams()) done = stream->wait() && done;
  return done;
}

bool wait_stream(int index, void* handle) {
  const Device* device = usable(index);
  if (device == nullptr) return false;
  // The per-thread stream is found by its thread.
  Stream* stream =
      handle == kPerThreadStream ? &stream_of(*device_at(index), handle) : find_stream(*device, handle);
  return stream == nullptr || stream->wait();
}

}  // namespace trapline::cuda
