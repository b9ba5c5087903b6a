// Streams and events of the fake driver as PyTorch's device guard, and a C face for the tests' Python.
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

#include "backend.hpp"

extern "C" {
int cuInit(unsigned);
int cuStreamCreate(void**, unsigned);
int cuStreamSynchronize(void*);
int cuStreamQuery(void*);
int cuStreamWaitEvent(void*, void*, unsigned);
int cuStreamIsCapturing(void*, int*);
int cuCtxSynchronize();
int cuEventCreate(void**, unsigned);
int cuEventRecord(void*, void*);
int cuEventQuery(void*);
int cuEventSynchronize(void*);
int cuEventDestroy_v2(void*);
}

namespace fakedev {
namespace {

struct Streams {
  std::mutex mutex;
  std::deque<void*> handles{nullptr};  // by StreamId; 0 is the default stream
};

Streams& streams() {
  static auto* all = new Streams;
  return *all;
}

thread_local c10::StreamId t_stream = 0;

c10::StreamId new_stream() {
  void* handle = nullptr;
  cuStreamCreate(&handle, 0);
  const std::lock_guard<std::mutex> lock(streams().mutex);
  streams().handles.push_back(handle);
  return static_cast<c10::StreamId>(streams().handles.size()) - 1;
}

void* handle_of(c10::StreamId id) {
  const std::lock_guard<std::mutex> lock(streams().mutex);
  return streams().handles.at(static_cast<std::size_t>(id));
}

c10::Stream make(c10::StreamId id) { return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDevice, 0), id); }

void ok(int result) {
  TORCH_CHECK(result == 0, "CUDA error: ",
              result == 710 ? "device-side assert triggered" : "driver error " + std::to_string(result));
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kDevice; }
  c10::Device exchangeDevice(c10::Device) const override { return {kDevice, 0}; }
  c10::Device getDevice() const override { return {kDevice, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Stream getStream(c10::Device) const override { return make(t_stream); }
  c10::Stream getDefaultStream(c10::Device) const override { return make(0); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return make(new_stream()); }
  c10::Stream getNewStream(c10::Device, int) const override { return make(new_stream()); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return make(std::exchange(t_stream, stream.id()));
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override { return handle_of(stream.id()); }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    if (*event == nullptr) ok(cuEventCreate(event, 0));
    ok(cuEventRecord(*event, handle_of(stream.id())));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) ok(cuStreamWaitEvent(handle_of(stream.id()), event, 0));
  }
  bool queryEvent(void* event) const override { return event == nullptr || cuEventQuery(event) == 0; }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (event != nullptr) cuEventDestroy_v2(event);
  }
  bool queryStream(const c10::Stream& stream) const override {
    return cuStreamQuery(handle_of(stream.id())) == 0;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    fakedev::synchronize(handle_of(stream.id()));
  }
  void synchronizeEvent(void* event) const override { ok(cuEventSynchronize(event)); }
  void synchronizeDevice(const c10::DeviceIndex) const override { ok(cuCtxSynchronize()); }
  bool isStreamCapturing(const c10::Stream& stream) const override {
    int status = 0;
    return cuStreamIsCapturing(handle_of(stream.id()), &status) == 0 && status != 0;
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    use_on(data.get(), handle_of(stream.id()));
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
};

struct Register {
  Register() {
    cuInit(0);
    at::RegisterPrivateUse1HooksInterface(new Hooks);
  }
} g_register;

}  // namespace

void check_context() {
  TORCH_CHECK(fake_cuda_poisoned() == 0,
              "CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported "
              "at some other API call, so the stacktrace below might be incorrect.");
}

void* current_handle() { return handle_of(t_stream); }

void enqueue(std::function<void()> work) {
  check_context();
  // Never freed once the context is lost or a graph may run it again: programs of tests are short.
  auto* item = new std::function<void()>(std::move(work));
  int capturing = 0;
  cuStreamIsCapturing(current_handle(), &capturing);
  const auto once = [](void* data) {
    const std::unique_ptr<std::function<void()>> item(static_cast<std::function<void()>*>(data));
    (*item)();
  };
  const auto again = [](void* data) { (*static_cast<std::function<void()>*>(data))(); };
  if (capturing != 0) return fake_cuda_enqueue(current_handle(), again, item);
  fake_cuda_enqueue(current_handle(), once, item);
}

void synchronize(void* stream) {
  check_context();
  ok(cuStreamSynchronize(stream));
}

}  // namespace fakedev

#define API extern "C" __attribute__((visibility("default")))

// Each returns 0, or 1 for a lost context.
API int fakedev_new_stream() { return static_cast<int>(fakedev::new_stream()); }
API int fakedev_use_stream(int id) { return static_cast<int>(std::exchange(fakedev::t_stream, id)); }
API int fakedev_synchronize() { return cuCtxSynchronize() != 0; }
API int fakedev_stream_synchronize(int id) { return cuStreamSynchronize(fakedev::handle_of(id)) != 0; }
API int fakedev_stream_wait(int id, void* event) {
  return cuStreamWaitEvent(fakedev::handle_of(id), event, 0) != 0;
}
API void* fakedev_event() {
  void* event = nullptr;
  cuEventCreate(&event, 0);
  return event;
}
API int fakedev_event_record(void* event, int id) {
  return cuEventRecord(event, fakedev::handle_of(id)) != 0;
}
API int fakedev_event_synchronize(void* event) { return cuEventSynchronize(event) != 0; }
API int fakedev_event_query(void* event) { return cuEventQuery(event) == 0; }

namespace {
struct Gate {
  std::mutex mutex;
  std::condition_variable opened;
  bool open = false;
};
}  // namespace

// What is enqueued on the stream from here on waits until the gate is opened.
API void* fakedev_hold(int id) {
  auto* gate = new Gate;  // the stream may still look at it when it has been opened
  fake_cuda_enqueue(
      fakedev::handle_of(id),
      [](void* data) {
        auto* held = static_cast<Gate*>(data);
        std::unique_lock<std::mutex> lock(held->mutex);
        held->opened.wait(lock, [&] { return held->open; });
      },
      gate);
  return gate;
}
API void fakedev_open(void* data) {
  auto* gate = static_cast<Gate*>(data);
  const std::lock_guard<std::mutex> lock(gate->mutex);
  gate->open = true;
  gate->opened.notify_all();
}
API void fakedev_capture_begin(int id) { fake_cuda_capture_begin(fakedev::handle_of(id)); }
API void* fakedev_capture_end(int id) { return fake_cuda_capture_end(fakedev::handle_of(id)); }
API void fakedev_replay(void* graph, int id) { fake_cuda_replay(graph, fakedev::handle_of(id)); }
