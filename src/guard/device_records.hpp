// What the guard keeps of a call whose checks run later, on the device: enough to report it as if it had
// been checked at once.
#pragma once

#include <ATen/core/DimVector.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "guard/describe.hpp"
#include "guard/device_graph.hpp"
#include "guard/frames.h"
#include "guard/plan.hpp"

namespace trapline::guard {

// A tensor that may be gone, or changed, by the time it is wanted again.
class TensorRef {
 public:
  TensorRef() = default;
  explicit TensorRef(const at::Tensor& tensor);
  at::Tensor lock() const;  // undefined when it is gone
  // The same tensor with the same content: alive, not written to through torch, not given other memory.
  bool is(const at::Tensor& tensor) const;
  at::Tensor lock_unchanged() const;
  bool alive() const { return impl_ && impl_->use_count() > 0; }
  bool same_as(const TensorRef& other) const;
  bool same_object(const TensorRef& other) const;  // whatever was written to it
  // An alias of its memory has what it had: nothing was written through torch since.
  bool had(const at::Tensor& alias) const;
  bool counts_writes() const { return version_ >= 0; }

 private:
  using Weak = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  std::optional<Weak> impl_;
  std::int64_t version_ = -1;  // -1: an inference tensor has no counter
  const void* data_ = nullptr;
};

struct ArgumentRef {
  bool is_list = false;
  c10::IValue value;  // of an argument that holds no tensor
  c10::SmallVector<TensorRef, 1> tensors;
  at::DimVector shape;  // of a single tensor
  bool holds_tensors = false;
  std::shared_ptr<const NotedGraph> graph;  // behind a single tensor
};

struct ThreadName {
  std::int64_t id = 0;  // as gettid()
  char name[16] = "";
};

// A node of autograd's graph, as autograd numbers them: per thread.
struct NodeName {
  std::uint64_t thread = 0, number = 0;
};

// One guarded call. Shared by the records of its checks; but for `refused` never changed once it is made.
struct CallFacts {
  const Plan* plan = nullptr;
  c10::SmallVector<ArgumentRef, 6> arguments;  // by position in the schema
  std::vector<trapline_frame> frames;          // innermost first; code objects are kept alive
  ThreadName thread;
  std::int64_t batch = 0;  // that a DataLoader gave out last, as note_batch() was told; 0: none
  std::uint64_t autograd_thread = 0;
  std::optional<NodeName> node;  // that autograd made for this call
  bool replayed = false;         // a backward call: autograd has kept the tensors since the forward call
  bool backward = false;         // a thread of autograd: the frames are those of the forward call, if known
  // PyTorch's own check on the host ended the call: no kernel read what the checks look at.
  mutable std::atomic<bool> refused{false};
};

struct CopyUsers;

// One check in flight, kept under its slot.
struct LaunchRecord {
  std::uint64_t order = 0;  // among all launches of the process; 0: never used
  std::shared_ptr<const CallFacts> call;
  const RowPlan* row = nullptr;
  c10::Device device{c10::DeviceType::CPU};
  TensorRef tensor;                  // that is checked
  std::shared_ptr<CopyUsers> users;  // of its healed copy
  std::vector<std::int64_t> shape;
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  bool contained = false;             // the operation got a healed copy, or does no harm
  bool captured = false;              // runs again at every replay
  bool waited = false;                // the host waits for it before the operation runs
  std::uintptr_t result_storage = 0;  // rows that only remember: where the values went, and as what
  std::vector<std::int64_t> result_shape;
};

// The record of a slot, to be written between reserve and launch, and read after its report. nullptr: the
// slot is beyond what is kept, do not check.
LaunchRecord* launch_record(std::int64_t slot);

// The node that autograd has made for the call that runs in this thread, below autograd; none where it makes
// none, and where the call is one that decomposes above.
// `tracked`: what autograd_tracks() says of its arguments.
std::optional<NodeName> node_of_call(bool tracked);

// Facts of the calling thread's call. `values` are its arguments in schema order.
std::shared_ptr<const CallFacts> call_facts(const Plan& plan, c10::ArrayRef<c10::IValue> values,
                                            bool tracked);

// Whether autograd records this call or replays it: then it keeps the checked tensor for the backward call.
bool autograd_tracks(c10::ArrayRef<c10::IValue> values);

void note_batch(std::int64_t serial);
const ThreadName& this_thread();
std::uint64_t next_order();     // a number above all before
std::uint64_t current_order();  // the last one given

}  // namespace trapline::guard
