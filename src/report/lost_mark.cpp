#include "report/lost_mark.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <string_view>

#include "report/folder.hpp"

namespace trapline {
namespace {

constexpr std::string_view kMember = R"("lost":0})";

struct Marker {
  std::string folder;
  char* digit = nullptr;  // in the mapped file
  Marker* before = nullptr;
};

// A child made by fork has its parent's. None is ever freed, nor one that was written anew: another thread
// may be about to use it.
std::atomic<Marker*> g_marker{nullptr};

// '0' becomes '1' by its lowest bit. Through the kernel: a store would end the process (SIGBUS) where
// somebody has shortened the file, or its file system takes no page any more. Every sandbox in which threads
// run allows this call, and it needs no descriptor.
bool put_one(char* digit) {
  static_assert(std::endian::native == std::endian::little);
  const auto address = reinterpret_cast<std::uintptr_t>(digit);
  const std::uintptr_t word = address & ~std::uintptr_t{3};
  const std::uint32_t shift = 8 * static_cast<std::uint32_t>(address - word);
  const std::uint32_t set_bit = FUTEX_OP_OR | FUTEX_OP_OPARG_SHIFT;
  // Wakes nobody: there is nobody who waits.
  return ::syscall(SYS_futex, word, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0, word,
                   set_bit << 28U | FUTEX_OP_CMP_EQ << 24U | shift << 12U) >= 0;
}

}  // namespace

Result<std::string> write_guard_marker(const std::string& folder, const std::string& object) {
  std::string text = object.substr(0, object.rfind('}'));
  if (text != "{") text += ',';
  text += kMember;
  char* bytes = nullptr;
  auto path = give_to_run(folder, folder_file_name("guard"), text, &bytes);
  if (path && bytes != nullptr) {
    auto* const marker = new Marker{folder, bytes + text.size() - 2, g_marker.load()};
    while (!g_marker.compare_exchange_weak(marker->before, marker)) {
    }
  }
  return path;
}

void mark_lost(std::string_view folder) {
  const Marker* const marker = g_marker.load();
  if (marker != nullptr && marker->folder == folder && put_one(marker->digit)) return;
  static_cast<void>(give_to_run(std::string(folder), folder_file_name("lost"), ""));
}

}  // namespace trapline
