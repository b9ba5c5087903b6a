// Everything that the guard registers with the dispatcher, and what of it is still to come.
#pragma once

#include <torch/library.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "guard/plan.hpp"

namespace trapline::guard {

class HookSet {
 public:
  // Hooks every overload of the running torch that a row speaks of, and what reads values of a device.
  HookSet();
  ~HookSet();
  HookSet(const HookSet&) = delete;
  HookSet& operator=(const HookSet&) = delete;

  // Hooks what libraries have registered since.
  void hook_new();
  std::vector<std::string> hooked() const;

 private:
  torch::Library& library(const std::string& space, c10::DispatchKey key);
  void hook(const Plan& plan);

  std::map<std::pair<std::string, c10::DispatchKey>, std::unique_ptr<torch::Library>> libraries_;
  std::vector<const Plan*> plans_;
  std::unique_ptr<c10::RegistrationHandleRAII> listener_;
};

// One at a time in a process. Installing again changes nothing.
void install_hooks();
void uninstall_hooks();
std::vector<std::string> hooked_overloads();  // "aten::embedding", "aten::index_select.out"

// A library that is imported later registers its operations while the dispatcher is locked, so that they are
// only noted there; the next call that is guarded hooks them.
inline std::atomic<bool> g_news{false};
void hook_news() noexcept;
inline void take_news() noexcept {
  if (g_news.load(std::memory_order_relaxed)) [[unlikely]]
    hook_news();
}

}  // namespace trapline::guard
