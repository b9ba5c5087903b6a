#include "inputs/mappings.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

namespace trapline::inputs {
namespace {

std::atomic<Mapping*> g_first{nullptr};
std::mutex g_mutex;  // of those who add and remove; the handler takes no lock
struct sigaction g_before {};

// Puts zeros where the file has ended. Of system calls only mmap and sigaction, and errno is kept.
void on_bus_error(int number, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Mapping* mapping = g_first.load(); mapping != nullptr; mapping = mapping->next) {
    const std::uintptr_t begin = mapping->begin.load(), end = mapping->end.load();
    if (begin == 0 || address < begin || address >= end) continue;
    const int kept = errno;
    const std::uintptr_t from = address & ~(page_size() - 1);
    void* zeros = ::mmap(reinterpret_cast<void*>(from), end - from, PROT_READ,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    errno = kept;
    if (zeros == MAP_FAILED) break;
    mapping->cut.store(true);
    return;
  }
  if ((g_before.sa_flags & SA_SIGINFO) != 0 && g_before.sa_sigaction != nullptr) {
    g_before.sa_sigaction(number, info, context);
  } else if (g_before.sa_handler != SIG_DFL && g_before.sa_handler != SIG_IGN) {
    g_before.sa_handler(number);
  } else {
    ::signal(number, SIG_DFL);  // the same fault comes again, and ends the process as it would have
  }
}

void watch_bus_errors() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &g_before);
}

}  // namespace

std::uintptr_t page_size() {
  static const auto size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

Mapping* add_mapping(std::span<const std::byte> bytes) {
  const std::lock_guard lock(g_mutex);
  page_size();  // its first call is not for a handler
  static const bool watched = (watch_bus_errors(), true);
  static_cast<void>(watched);
  Mapping* mapping = g_first.load();
  while (mapping != nullptr && mapping->begin.load() != 0) mapping = mapping->next;
  const bool fresh = mapping == nullptr;
  if (fresh) {
    mapping = new Mapping;
    mapping->next = g_first.load();
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  mapping->cut.store(false);
  mapping->end.store(begin + bytes.size());
  mapping->begin.store(begin);
  if (fresh) g_first.store(mapping);
  return mapping;
}

void remove_mapping(Mapping& mapping) {
  const std::lock_guard lock(g_mutex);
  mapping.begin.store(0);
  mapping.end.store(0);
}

void for_each_mapping(std::uintptr_t begin, std::uintptr_t end,
                      void (*visit)(std::uintptr_t begin, std::uintptr_t end)) {
  const std::lock_guard lock(g_mutex);
  for (Mapping* mapping = g_first.load(); mapping != nullptr; mapping = mapping->next) {
    const std::uintptr_t from = std::max(begin, mapping->begin.load());
    const std::uintptr_t to = std::min(end, mapping->end.load());
    if (mapping->begin.load() != 0 && from < to) visit(from, to);
  }
}

}  // namespace trapline::inputs
