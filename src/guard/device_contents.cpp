#include "guard/device_contents.hpp"

#include <c10/core/InferenceMode.h>

#include <array>
#include <mutex>
#include <utility>

#include "guard/device_records.hpp"
#include "guard/fork_mutex.hpp"

namespace trapline::guard {
namespace {

constexpr std::size_t kMaxCalls = 64;
constexpr std::int64_t kMaxOfOne = 1 << 20, kMaxOfAll = 32 << 20;  // bytes

thread_local int t_in_pool = 0;

struct CallContents {
  std::shared_ptr<const CallFacts> call;
  std::shared_ptr<const KeptContents> contents;
  std::int64_t bytes = 0;
};

struct ContentStore {
  ForkMutex mutex;
  std::array<CallContents, kMaxCalls> calls;  // a ring
  std::size_t newest = 0, count = 0;
  std::int64_t bytes = 0;

  CallContents take_oldest() {
    CallContents oldest = std::exchange(calls[(newest + kMaxCalls + 1 - count) % kMaxCalls], {});
    --count;
    bytes -= oldest.bytes;
    return oldest;
  }
};

ContentStore& content_store() {
  static auto* all = new ContentStore;  // never destroyed: the device may be gone before static objects
  return *all;
}

bool is_plain(const at::Tensor& tensor) {
  constexpr c10::DispatchKeySet kNotPlain({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative,
                                           c10::DispatchKey::ZeroTensor, c10::DispatchKey::Python,
                                           c10::DispatchKey::PythonTLSSnapshot});
  return tensor.defined() && tensor.has_storage() && tensor.layout() == c10::kStrided &&
         !tensor.is_quantized() && !tensor.key_set().has_any(kNotPlain);
}

}  // namespace

KeptContent::KeptContent(const at::Tensor& tensor, bool checked) {
  if (!is_plain(tensor) || tensor.numel() == 0) return;
  if (tensor.requires_grad() && (!checked || tensor.is_leaf())) return;
  // The storage is what stays: a few labels may be a view of a large batch.
  if (static_cast<std::int64_t>(tensor.storage().nbytes()) > kMaxOfOne) return;
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  storage_ = tensor.storage();
  inference_ = impl->is_inference();
  if (!inference_) version_ = impl->version_counter();
  keys_ = impl->key_set();
  sizes_ = tensor.sizes();
  strides_ = tensor.strides();
  offset_ = tensor.storage_offset();
  dtype_ = tensor.dtype();
}

at::Tensor KeptContent::alias() const {
  if (!storage_) return {};
  const c10::InferenceMode mode(inference_);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage_), keys_, dtype_);
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(sizes_, strides_, offset_);
  if (!inference_) impl->set_version_counter(version_);
  return tensor;
}

void allocate_from_pool(bool begins) { t_in_pool += begins ? 1 : -1; }

// What is let go is released without the lock: an allocator may run user code.
void keep_contents(const std::shared_ptr<const CallFacts>& call,
                   std::shared_ptr<const KeptContents> contents) {
  if (t_in_pool > 0) return;
  std::int64_t bytes = 0;
  for (const KeptContent& content : *contents) bytes += content.bytes();
  if (bytes == 0) return;
  ContentStore& all = content_store();
  CallContents dropped;
  std::unique_lock<ForkMutex> lock(all.mutex);
  if (all.count == kMaxCalls) dropped = all.take_oldest();
  all.newest = (all.newest + 1) % kMaxCalls;
  all.calls[all.newest] = {call, std::move(contents), bytes};
  ++all.count;
  all.bytes += bytes;
  while (all.bytes > kMaxOfAll && all.count > 1) {
    CallContents oldest = all.take_oldest();
    lock.unlock();
    oldest = {};
    lock.lock();
  }
  lock.unlock();
}

std::shared_ptr<const KeptContents> contents_of(const CallFacts& call) {
  ContentStore& all = content_store();
  const std::lock_guard<ForkMutex> lock(all.mutex);
  for (const CallContents& item : all.calls) {
    if (item.call.get() == &call) return item.contents;
  }
  return nullptr;
}

void forget_contents() {
  ContentStore& all = content_store();
  std::unique_lock<ForkMutex> lock(all.mutex);
  while (all.count > 0) {
    CallContents oldest = all.take_oldest();
    lock.unlock();
    oldest = {};
    lock.lock();
  }
}

}  // namespace trapline::guard
