// What Python needs of the device beside PyTorch's own interfaces.
#include <ATen/native/Resize.h>
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/device_lazy_init.h>
#include <torch/extension.h>

#include "cpu_cuda/context.hpp"
#include "cpu_cuda/device.hpp"
#include "cpu_cuda/memory.hpp"
#include "cpu_cuda/streams.hpp"

namespace {

using namespace trapline::cpu_cuda;

pybind11::dict memory(c10::DeviceIndex device) {
  const MemoryUse use = memory_use(device);
  pybind11::dict out;
  out["allocated"] = use.allocated;
  out["peak"] = use.peak;
  out["allocations"] = use.allocations;
  out["freed"] = use.freed;
  out["peak_count"] = use.peak_count;
  return out;
}

// What may wait for a stream lets go of the interpreter: queued work may need it to drop its last tensor.
using NoGil = pybind11::call_guard<pybind11::gil_scoped_release>;

}  // namespace

PYBIND11_MODULE(trapline_cpu_cuda, module) {
  module.def("device_count", &device_count);
  module.def("set_device_count", &set_device_count);
  module.def("current_device", &current_device);
  module.def("exchange_device", &exchange_device);
  module.def("check_context", &check_context);
  module.def("context_lost", &context_lost);
  module.def("restore_context", &restore_context, NoGil());
  module.def(
      "resize_storage",
      [](const at::Tensor& bytes, std::size_t size) {
        if (is_late()) wait_for_stream();  // memory that grows is moved at once
        const c10::DeviceGuard guard(bytes.device());
        at::native::resize_bytes_cpu(bytes.storage().unsafeGetStorageImpl(), size);
      },
      NoGil());
  module.def("watch_forks", [] { torch::utils::register_fork_handler_for_device_init(kDevice); });
  module.def("elapsed_time", [](std::intptr_t first, std::intptr_t second) {
    return milliseconds_between(reinterpret_cast<Event*>(first), reinterpret_cast<Event*>(second));
  });
  module.def("run_late", &run_late, NoGil());
  module.def("synchronize", &wait_for_device, NoGil());
  module.def("is_capturing", &is_capturing);
  module.def("native_handle",
             [](c10::StreamId stream) { return reinterpret_cast<std::intptr_t>(native_handle(stream)); });
  module.def("current_stream", &current_stream);
  module.def("set_stream", &set_stream);
  module.def("memory", &memory);
  module.def("reset_peak", &reset_peak);
  pybind11::class_<Graph>(module, "Graph", "What a stream was given, to be done again.")
      .def(pybind11::init<>())
      .def("begin", &Graph::begin, NoGil())
      .def("end", &Graph::end, NoGil())
      .def("replay", &Graph::replay, NoGil())
      .def("reset", &Graph::reset, NoGil());
  module.def("default_generator", [](c10::DeviceIndex device) {
    return pybind11::reinterpret_steal<pybind11::object>(THPGenerator_Wrap(default_generator(device)));
  });
}
