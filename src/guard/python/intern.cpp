#include "guard/intern.hpp"

#include <Python.h>

#include <array>
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
constexpr std::size_t kMaxCodes = std::size_t{1} << 17;  // programs that generate code without end stop here

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
  if (g_count >= kMaxCodes) return false;
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

// Stacks that were seen before, so that a call costs one comparison and not a look-up for each frame. A cell
// holds nothing but code objects of the set: a mix of two stacks, written by two threads, says no more than
// that all of them are known.
constexpr int kStackFrames = 8;
using CodeStack = std::array<std::atomic<void*>, kStackFrames>;
std::array<CodeStack, 256> g_stacks;

CodeStack& stack_of(const trapline_frame* frames, int count) {
  // A few tell: what all stacks of a program share, torch's frames and the outermost, tells nothing anyway.
  const auto number = [&](int i) { return reinterpret_cast<std::uintptr_t>(frames[i].code) >> 4; };
  const std::uintptr_t sum = count == 0 ? 0 : number(0) + 5 * number(count / 2) + 25 * number(count - 1);
  return g_stacks[static_cast<std::uint64_t>(sum) * 0x9E3779B97F4A7C15ULL >> 56];
}

bool seen(const CodeStack& stack, const trapline_frame* frames, int count) {
  std::uintptr_t differs = 0;
  for (int i = 0; i < count; ++i) {
    differs |= reinterpret_cast<std::uintptr_t>(stack[i].load(std::memory_order_relaxed)) ^
               reinterpret_cast<std::uintptr_t>(frames[i].code);
  }
  return differs == 0;
}

void remember_stack(CodeStack& stack, const trapline_frame* frames, int count) {
  for (int i = 0; i < count; ++i) stack[i].store(frames[i].code, std::memory_order_relaxed);
}

// How many frames may be kept.
int intern(const trapline_frame* frames, int count) {
  const Table* table = g_table.load(std::memory_order_acquire);
  int known = 0;
  while (known < count && contains(table, frames[known].code)) ++known;
  if (known == count || !Py_IsInitialized()) return known;
  const PyGILState_STATE gil = PyGILState_Ensure();
  while (known < count && insert(frames[known].code)) ++known;
  PyGILState_Release(gil);
  return known;
}

}  // namespace

int keep_alive(const trapline_frame* frames, int count) {
  if (count > kStackFrames) return intern(frames, count);
  CodeStack& stack = stack_of(frames, count);
  if (seen(stack, frames, count)) return count;
  const int known = intern(frames, count);
  if (known == count) remember_stack(stack, frames, count);
  return known;
}

}  // namespace trapline::guard
