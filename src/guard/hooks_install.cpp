#include "guard/hooks_install.hpp"

#include <ATen/core/dispatch/RegistrationHandleRAII.h>

#include <mutex>

#include "guard/check.hpp"
#include "guard/fork_mutex.hpp"
#include "guard/hooks.hpp"
#include "guard/hooks_device.hpp"

namespace trapline::guard {
namespace {

ForkMutex g_news_mutex;
std::vector<c10::OperatorName>& news() {  // never destroyed: libraries register while the process ends, too
  static auto* names = new std::vector<c10::OperatorName>;
  return *names;
}

// Told of every operation that there is, and then of each new one, under the dispatcher's lock.
class Listener final : public c10::OpRegistrationListener {
 public:
  void onOperatorRegistered(const c10::OperatorHandle& op) override {
    if (!has_rows(op.operator_name())) return;
    const std::scoped_lock lock(g_news_mutex);
    news().push_back(op.operator_name());
    g_news.store(true, std::memory_order_relaxed);
  }
  void onOperatorDeregistered(const c10::OperatorHandle&) override {}
};

ForkMutex g_hooks_mutex;
// Leaked unless uninstalled: at exit the dispatcher may be gone before static objects.
HookSet* g_hooks = nullptr;

}  // namespace

HookSet::HookSet()
    : listener_(std::make_unique<c10::RegistrationHandleRAII>(
          c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<Listener>()))) {
  hook_new();
  if (has_device()) hook_reads(library("aten", c10::DispatchKey::BackendSelect));
}

HookSet::~HookSet() {
  listener_.reset();
  const std::scoped_lock lock(g_news_mutex);
  news().clear();
  g_news.store(false, std::memory_order_relaxed);
}

torch::Library& HookSet::library(const std::string& space, c10::DispatchKey key) {
  std::unique_ptr<torch::Library>& found = libraries_[{space, key}];
  if (!found) {
    found = std::make_unique<torch::Library>(torch::Library::IMPL, space, key, __FILE__, __LINE__);
  }
  return *found;
}

void HookSet::hook_new() {
  std::vector<c10::OperatorName> names;
  {
    const std::scoped_lock lock(g_news_mutex);
    names.swap(news());
    g_news.store(false, std::memory_order_relaxed);
  }
  for (const c10::OperatorName& name : names) {
    const auto handle = c10::Dispatcher::singleton().findSchema(name);  // nullopt: gone again
    // Another extension's kernel sits there: overriding it would print a warning and break it.
    if (!handle || handle->hasKernelForDispatchKey(c10::DispatchKey::BackendSelect)) continue;
    if (const Plan* plan = make_plan(*handle)) hook(*plan);
  }
}

void HookSet::hook(const Plan& plan) {
  const std::string space = plan.op.substr(0, plan.op.find("::"));
  torch::Library& select = library(space, c10::DispatchKey::BackendSelect);
  if (!hook_hot(select, plan)) hook_boxed(select, plan);
  if (plan.composite) {
    hook_composite(library(space, c10::DispatchKey::AutogradCPU), plan, c10::DispatchKey::AutogradCPU,
                   c10::DispatchKey::CPU);
    const bool host_device = g_host_key != c10::DispatchKey::Undefined;
    if (has_device() || host_device) {
      hook_composite(library(space, g_device_autograd_key), plan, g_device_autograd_key,
                     host_device ? g_host_key : g_device_key);
    }
  }
  plans_.push_back(&plan);
}

std::vector<std::string> HookSet::hooked() const {
  std::vector<std::string> names;
  for (const Plan* plan : plans_) names.push_back(full_name(*plan));
  return names;
}

void install_hooks() {
  const std::scoped_lock lock(g_hooks_mutex);
  if (g_hooks == nullptr) g_hooks = new HookSet;
}

void uninstall_hooks() {
  const std::scoped_lock lock(g_hooks_mutex);
  delete g_hooks;
  g_hooks = nullptr;
}

std::vector<std::string> hooked_overloads() {
  const std::scoped_lock lock(g_hooks_mutex);
  return g_hooks == nullptr ? std::vector<std::string>{} : g_hooks->hooked();
}

void hook_news() noexcept {
  try {
    const std::scoped_lock lock(g_hooks_mutex);
    if (g_hooks != nullptr) g_hooks->hook_new();
  } catch (const std::exception& error) {
    stepped_aside("a library's operations", error.what());
  } catch (...) {
    stepped_aside("a library's operations", "unknown exception");
  }
}

}  // namespace trapline::guard
