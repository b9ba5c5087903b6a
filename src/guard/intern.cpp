#include "guard/intern.hpp"

#include <Python.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace trapline::guard {
namespace {

// Open addressing, at most half full. Grown tables replace the old ones, which are left to readers that may
// still look at them: all of them together are smaller than the last.
struct Table {
  std::size_t mask;
  std::atomic<void*>* slots;
};

constexpr std::size_t kFirstSize = 4096;
constexpr std::size_t kMostCodes = std::size_t{1} << 17;  // programs that generate code without end stop here

std::atomic<Table*> g_table{nullptr};
std::size_t g_count = 0;  // guarded by the GIL

std::size_t slot_of(const Table& table, const void* code) {
  return ((reinterpret_cast<std::uintptr_t>(code) >> 4) * 0x9E3779B97F4A7C15ULL >> 20) & table.mask;
}

bool contains(const Table* table, const void* code) {
  if (table == nullptr) return false;
  for (std::size_t at = slot_of(*table, code);; at = (at + 1) & table->mask) {
    const void* held = table->slots[at].load(std::memory_order_acquire);
    if (held == code) return true;
    if (held == nullptr) return false;
  }
}

void put(Table& table, void* code) {
  std::size_t at = slot_of(table, code);
  while (table.slots[at].load(std::memory_order_relaxed) != nullptr) at = (at + 1) & table.mask;
  table.slots[at].store(code, std::memory_order_release);
}

Table* grown(const Table* old) {
  const std::size_t size = old == nullptr ? kFirstSize : 2 * (old->mask + 1);
  auto* slots = new (std::nothrow) std::atomic<void*>[size]();
  auto* table = slots == nullptr ? nullptr : new (std::nothrow) Table{size - 1, slots};
  if (table == nullptr || old == nullptr) return table;
  for (std::size_t i = 0; i <= old->mask; ++i) {
    if (void* code = old->slots[i].load(std::memory_order_relaxed)) put(*table, code);
  }
  return table;
}

// The caller holds the GIL, which makes this the only writer.
bool insert(void* code) {
  Table* table = g_table.load(std::memory_order_relaxed);
  if (contains(table, code)) return true;
  if (g_count >= kMostCodes) return false;
  if (table == nullptr || 2 * g_count > table->mask) {
    Table* larger = grown(table);
    if (larger == nullptr) return false;
    g_table.store(larger, std::memory_order_release);
    table = larger;
  }
  Py_INCREF(static_cast<PyObject*>(code));
  put(*table, code);
  ++g_count;
  return true;
}

}  // namespace

int keep_alive(const trapline_frame* frames, int count) {
  const Table* table = g_table.load(std::memory_order_acquire);
  int known = 0;
  while (known < count && contains(table, frames[known].code)) ++known;
  if (known == count || !Py_IsInitialized()) return known;
  const PyGILState_STATE gil = PyGILState_Ensure();
  while (known < count && insert(frames[known].code)) ++known;
  PyGILState_Release(gil);
  return known;
}

}  // namespace trapline::guard
