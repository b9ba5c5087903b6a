#include "guard/device_contents.hpp"

#include <deque>
#include <mutex>
#include <utility>

#include "guard/device_records.hpp"

namespace trapline::guard {
namespace {

constexpr std::size_t kMostCalls = 64;
constexpr std::int64_t kMostOfOne = 1 << 20, kMostOfAll = 32 << 20;  // bytes

thread_local int t_in_pool = 0;

struct CallContents {
  std::shared_ptr<const CallFacts> call;
  std::vector<at::Tensor> tensors;
  std::int64_t bytes = 0;
};

struct ContentStore {
  std::mutex mutex;
  std::deque<CallContents> calls;  // newest first
  std::int64_t bytes = 0;
};

ContentStore& content_store() {
  static auto* all = new ContentStore;  // never destroyed: the device may be gone before static objects
  return *all;
}

std::int64_t storage_bytes(const at::Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.storage().nbytes());
}

}  // namespace

at::Tensor alias_to_keep(const at::Tensor& tensor, bool checked) {
  if (!tensor.defined() || !tensor.has_storage() || tensor.numel() == 0) return {};
  if (tensor.requires_grad() && (!checked || tensor.is_leaf())) return {};
  // The storage is what stays: a few labels may be a view of a large batch.
  if (storage_bytes(tensor) > kMostOfOne) return {};
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  return at::Tensor(impl->shallow_copy_and_detach(
      tensor.is_inference() ? c10::VariableVersion() : impl->version_counter(), false));
}

void allocate_from_pool(bool begins) { t_in_pool += begins ? 1 : -1; }

void keep_contents(const std::shared_ptr<const CallFacts>& call, std::vector<at::Tensor> contents) {
  if (t_in_pool > 0) return;
  CallContents added{call, std::move(contents)};
  for (const at::Tensor& tensor : added.tensors) added.bytes += tensor.defined() ? storage_bytes(tensor) : 0;
  if (added.bytes == 0) return;
  std::deque<CallContents> dropped;  // released without the lock: an allocator may run user code
  ContentStore& all = content_store();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.bytes += added.bytes;
  all.calls.push_front(std::move(added));
  while (all.calls.size() > kMostCalls || (all.bytes > kMostOfAll && all.calls.size() > 1)) {
    all.bytes -= all.calls.back().bytes;
    dropped.push_back(std::move(all.calls.back()));
    all.calls.pop_back();
  }
}

std::vector<at::Tensor> contents_of(const CallFacts& call) {
  ContentStore& all = content_store();
  const std::lock_guard<std::mutex> lock(all.mutex);
  for (const CallContents& item : all.calls) {
    if (item.call.get() == &call) return item.tensors;
  }
  return {};
}

void forget_contents() {
  std::deque<CallContents> dropped;
  ContentStore& all = content_store();
  const std::lock_guard<std::mutex> lock(all.mutex);
  dropped.swap(all.calls);
  all.bytes = 0;
}

}  // namespace trapline::guard
