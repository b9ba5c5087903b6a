// Collective operations on tensors of the device: those of the CPU's process group (gloo) on the same memory.
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include "cpu_cuda/plan.hpp"

namespace trapline::cpu_cuda {
namespace {

struct Silent final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

struct RegisterCollectives {
  RegisterCollectives() {
    static torch::Library library(torch::Library::IMPL, "c10d", c10::DispatchKey::CUDA, __FILE__, __LINE__);
    // PyTorch's own kernels for CUDA look for a backend of CUDA; that they are replaced is meant.
    Silent silent;
    const c10::WarningUtils::WarningHandlerGuard guard(&silent);
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
      if (name.name.rfind("c10d::", 0) != 0) continue;
      const auto op = dispatcher.findSchema(name);
      if (op && op->hasKernelForDispatchKey(c10::DispatchKey::CPU)) register_host(library, *op);
    }
  }
} g_register_collectives;

// What DistributedDataParallel asks for the times of its steps.
class HostTimer final : public c10d::Timer {
 public:
  explicit HostTimer(c10::Device) {}
  std::optional<std::int64_t> measureDifference(Event start, Event end) override {
    const std::int64_t from = getTimeRef(start), to = getTimeRef(end);
    if (from == c10d::kUnsetTime || to < from) return std::nullopt;
    return to - from;
  }
};

}  // namespace
}  // namespace trapline::cpu_cuda

namespace c10d {
namespace {
using trapline::cpu_cuda::HostTimer;
C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::DeviceType::CUDA, HostTimer);
}  // namespace
}  // namespace c10d
