#include "cuda/slots.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <optional>

#include "core/tensor_view.hpp"

namespace trapline::cuda {
namespace {

constexpr std::size_t kChunkSlots = 1024;
constexpr std::size_t kMaxChunks = 4096;

enum class State : std::uint8_t { kFree, kReserved, kLaunched, kDone };

struct Record {
  State state = State::kFree;
  bool capturing = false;
  bool has_also = false;
  bool given = false;  // by the last poll: whoever polled may still read its own record of the slot
  std::int32_t list_position = -1;
  std::int32_t dtype = 0;
  std::uint32_t consumed = 0;  // Slot::sequence of the last report that was given
  std::uint64_t launch = 0;
  std::int64_t lo = 0, hi = 0, also = 0;
  const trapline_contract* row = nullptr;
};

// Slots of one device that were mapped together.
struct Chunk {
  Device* device = nullptr;
  Mapped memory;
  std::array<Record, kChunkSlots> records;

  Slot* slot(std::size_t at) const { return static_cast<Slot*>(memory.host) + at; }
};

struct Table {
  std::mutex mutex;  // of everything below; never held across a call of the driver
  std::vector<Chunk*> chunks;
  std::array<std::vector<std::int64_t>, kMaxDevices> free;
  std::vector<std::int64_t> given;  // slots of the last poll's reports
  std::uint64_t launches = 0;
  std::atomic<bool> more{false};  // reports that the last poll had no room for

  Record& record(std::int64_t slot) {
    const auto number = static_cast<std::size_t>(slot);
    return chunks[number / kChunkSlots]->records[number % kChunkSlots];
  }
  bool holds(std::int64_t slot) const {
    return slot >= 0 && static_cast<std::size_t>(slot) < chunks.size() * kChunkSlots;
  }
  void release(std::int64_t slot) {
    record(slot).state = State::kFree;
    const Chunk& chunk = *chunks[static_cast<std::size_t>(slot) / kChunkSlots];
    free[static_cast<std::size_t>(chunk.device->index)].push_back(slot);
  }
};

Table& table() {
  static auto* const kTable = new Table;  // leaked, as the devices
  return *kTable;
}

// The device writes these words at any time. In the order of the program, which the fences of the kernel
// match.
template <class T>
T read(const T& word) {
  return std::atomic_ref<T>(const_cast<T&>(word)).load(std::memory_order_seq_cst);
}

bool add_chunk(Device& device) {
  const Mapped memory = map_memory(device, kChunkSlots * sizeof(Slot));
  if (memory.host == nullptr) return false;
  auto* chunk = new Chunk;
  chunk->device = &device;
  chunk->memory = memory;
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  if (all.chunks.size() == kMaxChunks) {
    delete chunk;  // the mapping is kept: 64 KiB, and freeing may wait for the device
    return false;
  }
  const auto first = static_cast<std::int64_t>(all.chunks.size() * kChunkSlots);
  all.chunks.push_back(chunk);
  auto& free = all.free[static_cast<std::size_t>(device.index)];
  for (std::size_t i = kChunkSlots; i-- > 0;) free.push_back(first + static_cast<std::int64_t>(i));
  return true;
}

// A whole copy of the slot's report when there is one that was not given yet.
std::optional<Slot> unread(const Slot& slot, const Record& record) {
  const std::uint32_t before = read(slot.sequence);
  if (before == record.consumed || before % 2 != 0) return std::nullopt;
  Slot copy{};
  copy.launch = read(slot.launch);
  copy.bad = read(slot.bad);
  copy.total = read(slot.total);
  copy.first = read(slot.first);
  copy.value = read(slot.value);
  copy.min = read(slot.min);
  copy.max = read(slot.max);
  copy.reason = read(slot.reason);
  copy.sequence = before;
  // Otherwise a replay is writing the next one, and will raise the alarm again.
  if (read(slot.sequence) != before) return std::nullopt;
  return copy;
}

trapline_scan scan_of(const Slot& found, const Record& record) {
  trapline_scan scan{};
  scan.bad = found.bad;
  scan.total = found.total;
  scan.first = found.first;
  scan.list_position = record.list_position;
  if (is_floating(static_cast<DType>(record.dtype))) {
    scan.is_float = 1;
    scan.fvalue = std::bit_cast<double>(found.value);
    scan.fmin = std::bit_cast<double>(found.min);
    scan.fmax = std::bit_cast<double>(found.max);
  } else {
    scan.ivalue = static_cast<std::int64_t>(found.value);
    scan.imin = static_cast<std::int64_t>(found.min);
    scan.imax = static_cast<std::int64_t>(found.max);
  }
  scan.lo = record.lo;
  scan.hi = record.hi;
  scan.has_also = record.has_also ? 1 : 0;
  scan.also = record.has_also ? record.also : 0;
  scan.reason = static_cast<std::int32_t>(found.reason);
  return scan;
}

struct Found {
  std::int64_t slot;
  Slot report;
};

// Every unread report, oldest launch first.
std::vector<Found> look(Table& all) {
  std::vector<Found> found;
  for (std::size_t c = 0; c < all.chunks.size(); ++c) {
    Chunk& chunk = *all.chunks[c];
    for (std::size_t i = 0; i < kChunkSlots; ++i) {
      Record& record = chunk.records[i];
      if (record.state != State::kLaunched && record.state != State::kDone) continue;
      const std::optional<Slot> report = unread(*chunk.slot(i), record);
      if (!report) continue;
      if (report->launch == record.launch) {
        found.push_back({static_cast<std::int64_t>(c * kChunkSlots + i), *report});
      } else {
        record.consumed = report->sequence;  // of a launch that the slot no longer stands for
      }
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.report.launch < b.report.launch; });
  return found;
}

// What the poll before this one gave was dealt with. Nothing else happens to a slot that is done: its one
// report was given.
void take_back(Table& all) {
  for (const std::int64_t slot : all.given) {
    all.record(slot).given = false;
    if (all.record(slot).state == State::kDone) all.release(slot);
  }
  all.given.clear();
}

}  // namespace

std::int64_t take_slot(Device& device, bool grow) {
  Table& all = table();
  while (true) {
    {
      const std::lock_guard lock(all.mutex);
      auto& free = all.free[static_cast<std::size_t>(device.index)];
      if (!free.empty()) {
        const std::int64_t slot = free.back();
        free.pop_back();
        all.record(slot).state = State::kReserved;
        return slot;
      }
    }
    if (!grow || !add_chunk(device)) return -1;
  }
}

Ticket begin_launch(Device& device, std::int64_t slot, const trapline_device_check& check, bool capturing) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  if (!all.holds(slot)) return {};
  const auto number = static_cast<std::size_t>(slot);
  const Chunk& chunk = *all.chunks[number / kChunkSlots];
  Record& record = all.record(slot);
  if (chunk.device != &device || record.state != State::kReserved) return {};
  record.state = State::kLaunched;
  record.capturing = capturing;
  record.has_also = check.has_also != 0;
  record.list_position = check.list_position;
  record.dtype = check.dtype;
  record.launch = ++all.launches;
  record.lo = check.lo;
  record.hi = check.hi;
  record.also = check.also;
  record.row = check.row;
  return {chunk.memory.device + number % kChunkSlots * sizeof(Slot), record.launch};
}

void cancel_reserved(std::int64_t slot) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  if (all.holds(slot) && all.record(slot).state == State::kReserved) all.release(slot);
}

void cancel_launched(std::int64_t slot) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  all.release(slot);
}

void complete(const std::vector<std::int64_t>& slots) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  for (const std::int64_t slot : slots) {
    const auto number = static_cast<std::size_t>(slot);
    Record& record = all.record(slot);
    const Slot& mapped = *all.chunks[number / kChunkSlots]->slot(number % kChunkSlots);
    if (read(mapped.sequence) == record.consumed && !record.given) {
      all.release(slot);
    } else {
      record.state = State::kDone;
    }
  }
}

bool is_pending() {
  if (table().more.load(std::memory_order_relaxed)) return true;
  const int count = device_count();
  for (int i = 0; i < count; ++i) {
    if (read(*ready_device(i)->alarm) != 0) return true;
  }
  return false;
}

int poll(trapline_device_report* reports, int capacity) {
  if (capacity <= 0 || !is_pending()) return 0;
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  // First the alarms, then the slots: a report whose alarm is cleared here is seen below, and one that comes
  // later raises it again.
  all.more.store(true, std::memory_order_relaxed);  // until it is known, also when memory is exhausted
  const int count = device_count();
  for (int i = 0; i < count; ++i) {
    std::atomic_ref<std::uint32_t>(*ready_device(i)->alarm).exchange(0, std::memory_order_seq_cst);
  }
  const std::vector<Found> found = look(all);
  take_back(all);
  const std::size_t given = std::min(found.size(), static_cast<std::size_t>(capacity));
  all.given.reserve(given);
  for (std::size_t i = 0; i < given; ++i) {
    const auto& [slot, report] = found[i];
    Record& record = all.record(slot);
    const auto number = static_cast<std::size_t>(slot);
    reports[i] = {slot, all.chunks[number / kChunkSlots]->device->index, record.list_position, record.row,
                  scan_of(report, record)};
    record.consumed = report.sequence;
    record.given = true;
    all.given.push_back(slot);
  }
  all.more.store(given < found.size(), std::memory_order_relaxed);
  return static_cast<int>(given);
}

}  // namespace trapline::cuda
