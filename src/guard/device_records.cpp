#include "guard/device_records.hpp"

#include <ATen/SequenceNumber.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <torch/csrc/autograd/function.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <mutex>
#include <new>

#include "guard/fork_mutex.hpp"
#include "guard/intern.hpp"
#include "guard/recycled.hpp"

namespace trapline::guard {
namespace {

constexpr int kSegment = 256;
constexpr int kSegments = 256;
constexpr int kLateFrames = 64;

std::atomic<LaunchRecord*> g_segments[kSegments];
ForkMutex g_segments_mutex;
std::atomic<std::uint64_t> g_order{0};
std::atomic<std::int64_t> g_batch{0};

// Frames of forward calls, for the backward calls that autograd makes of them in threads without Python. The
// newest calls win; a backward call whose forward call was overwritten is reported without frames.
struct ForwardFrames {
  std::uint64_t thread = 0, number = 0;  // as autograd numbers its nodes: per thread
  std::vector<trapline_frame> frames;
};

struct Forward {
  ForkMutex mutex;
  std::array<ForwardFrames, 4096> calls;
};

Forward& forward_calls() {
  static auto* all = new Forward;  // never destroyed: threads may outlive static destruction
  return *all;
}

ForwardFrames& forward_slot(Forward& all, std::uint64_t thread, std::uint64_t number) {
  return all.calls[(number + thread * 1021) % all.calls.size()];
}

void keep_forward(const CallFacts& call) {
  Forward& all = forward_calls();
  const std::lock_guard<ForkMutex> lock(all.mutex);
  ForwardFrames& slot = forward_slot(all, call.node->thread, call.node->number);
  slot.thread = call.node->thread;
  slot.number = call.node->number;
  slot.frames = call.frames;
}

// Below autograd the node of the call is the one that was made last. An operation that decomposes above it is
// hooked there, and has no node of its own.
bool below_autograd() {
  return c10::impl::tls_local_dispatch_key_set().excluded_.has(c10::DispatchKey::AutogradFunctionality);
}

std::vector<trapline_frame> frames_of_forward(const torch::autograd::Node& node) {
  Forward& all = forward_calls();
  const std::lock_guard<ForkMutex> lock(all.mutex);
  const ForwardFrames& slot = forward_slot(all, node.thread_id(), node.sequence_nr());
  if (slot.thread == node.thread_id() && slot.number == node.sequence_nr()) return slot.frames;
  return {};
}

void refer_to(const c10::IValue& value, bool with_graph, ArgumentRef& out) {
  if (value.isTensor()) {
    out.holds_tensors = true;
    const at::Tensor& tensor = value.toTensor();
    out.tensors.emplace_back(tensor);
    if (tensor.defined()) out.shape = at::DimVector(tensor.sizes());
    if (with_graph) out.graph = note_graph(tensor);
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      if (!element.isTensor() && !element.isNone()) {
        out.tensors.clear();
        break;
      }
      const at::Tensor tensor = element.isTensor() ? element.toTensor() : at::Tensor();
      out.tensors.emplace_back(tensor);
    }
    out.is_list = out.holds_tensors = !out.tensors.empty();
    if (!out.is_list) out.value = value;
  } else if (!value.isGenerator() && !value.isCustomClass()) {
    out.value = value;
  }
}

const void* data_of(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.unsafeGetTensorImpl()->unsafe_storage();
  return storage ? storage.data() : nullptr;
}

std::int64_t version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? -1 : static_cast<std::int64_t>(tensor._version());
}

bool needs_gradient(const at::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); }

}  // namespace

TensorRef::TensorRef(const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  impl_.emplace(tensor.getIntrusivePtr());
  version_ = version_of(tensor);
  data_ = data_of(tensor);
}

at::Tensor TensorRef::lock() const {
  if (!impl_) return {};
  auto strong = impl_->lock();
  return strong ? at::Tensor(std::move(strong)) : at::Tensor();
}

bool TensorRef::is(const at::Tensor& tensor) const {
  return version_ >= 0 && tensor.defined() && impl_->_unsafe_get_target() == tensor.unsafeGetTensorImpl() &&
         version_ == version_of(tensor) && data_ == data_of(tensor);
}

at::Tensor TensorRef::lock_unchanged() const {
  at::Tensor tensor = lock();
  return is(tensor) ? tensor : at::Tensor();
}

// A weak reference keeps the address from being given to another tensor.
bool TensorRef::same_as(const TensorRef& other) const {
  return version_ >= 0 && version_ == other.version_ && data_ == other.data_ &&
         impl_->_unsafe_get_target() == other.impl_->_unsafe_get_target();
}

bool TensorRef::same_object(const TensorRef& other) const {
  return impl_ && other.impl_ && impl_->_unsafe_get_target() == other.impl_->_unsafe_get_target();
}

bool TensorRef::had(const at::Tensor& alias) const {
  return impl_ && alias.defined() && data_ == data_of(alias) && version_ == version_of(alias);
}

LaunchRecord* launch_record(std::int64_t slot) {
  if (slot < 0 || slot >= std::int64_t{kSegment} * kSegments) return nullptr;
  std::atomic<LaunchRecord*>& segment = g_segments[slot / kSegment];
  LaunchRecord* records = segment.load(std::memory_order_acquire);
  if (records == nullptr) {
    const std::lock_guard<ForkMutex> lock(g_segments_mutex);
    records = segment.load(std::memory_order_acquire);
    if (records == nullptr) {
      records = new (std::nothrow) LaunchRecord[kSegment];
      if (records == nullptr) return nullptr;
      segment.store(records, std::memory_order_release);
    }
  }
  return &records[slot % kSegment];
}

std::shared_ptr<const CallFacts> call_facts(const Plan& plan, c10::ArrayRef<c10::IValue> values,
                                            bool tracked) {
  auto facts = std::allocate_shared<CallFacts>(Recycled<CallFacts>());
  facts->plan = &plan;
  facts->arguments.resize(values.size());
  const auto node = torch::autograd::get_current_node();
  for (std::size_t i = 0; i < values.size(); ++i) refer_to(values[i], node == nullptr, facts->arguments[i]);
  trapline_frame frames[kLateFrames];
  facts->frames.assign(frames, frames + capture(frames, kLateFrames));
  facts->thread = this_thread();
  facts->batch = g_batch.load(std::memory_order_relaxed);
  facts->autograd_thread = at::RecordFunction::currentThreadId();
  facts->replayed = node != nullptr;
  if (node != nullptr && facts->frames.empty()) {
    facts->backward = true;
    facts->frames = frames_of_forward(*node);
  } else {
    facts->node = node_of_call(tracked);
    if (node == nullptr && facts->node) keep_forward(*facts);
  }
  return facts;
}

std::optional<NodeName> node_of_call(bool tracked) {
  if (!tracked || !at::GradMode::is_enabled() || !below_autograd()) return {};
  const std::uint64_t next = at::sequence_number::peek();
  if (next == 0) return {};
  return NodeName{at::RecordFunction::currentThreadId(), next - 1};
}

bool autograd_tracks(c10::ArrayRef<c10::IValue> values) {
  if (torch::autograd::get_current_node() != nullptr) return true;
  if (!at::GradMode::is_enabled()) return false;
  for (const c10::IValue& value : values) {
    if (value.isTensor() && needs_gradient(value.toTensor())) return true;
  }
  return false;
}

void note_batch(std::int64_t serial) { g_batch.store(serial, std::memory_order_relaxed); }

const ThreadName& this_thread() {
  thread_local const ThreadName name = [] {
    ThreadName out;
    out.id = syscall(SYS_gettid);
    pthread_getname_np(pthread_self(), out.name, sizeof out.name);
    return out;
  }();
  return name;
}

std::uint64_t next_order() { return g_order.fetch_add(1, std::memory_order_relaxed) + 1; }
std::uint64_t current_order() { return g_order.load(std::memory_order_relaxed); }

}  // namespace trapline::guard
