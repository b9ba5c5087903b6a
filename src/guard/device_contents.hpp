// The content of the last calls' small arguments. A copy of the labels that only the loss was given
// (`labels.to(device)`) is gone when the fault is raised, and with it what tells the sample, the values and
// the variable. What is kept is the memory: the program's own tensor object dies as without the guard.
#pragma once

#include <ATen/core/DimVector.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <memory>

namespace trapline::guard {

struct CallFacts;

// The memory of a tensor, and how the tensor lies in it: an alias without autograd graph, that is made when
// it is wanted. (To make one at every call costs more than all else that is kept.)
class KeptContent {
 public:
  KeptContent() = default;
  // Keeps nothing of a tensor that is too large, or that a gradient flows through, unless it is `checked`.
  KeptContent(const at::Tensor& tensor, bool checked);
  std::int64_t bytes() const { return storage_ ? static_cast<std::int64_t>(storage_.nbytes()) : 0; }
  at::Tensor alias() const;  // undefined where nothing is kept

 private:
  c10::Storage storage_;
  c10::VariableVersion version_{c10::VariableVersion::DISABLED};
  c10::DispatchKeySet keys_;
  at::DimVector sizes_, strides_;
  std::int64_t offset_ = 0;
  caffe2::TypeMeta dtype_;
  bool inference_ = false;
};

using KeptContents =
    c10::SmallVector<KeptContent, 4>;  // of all tensors of a call's arguments, in their order

// For a call that is not captured and not replayed by autograd. The oldest are let go above 64 calls and
// 32 MiB; an argument above 1 MiB is not kept.
void keep_contents(const std::shared_ptr<const CallFacts>& call,
                   std::shared_ptr<const KeptContents> contents);

// What is still kept for a call, as given; nullptr when it is gone.
std::shared_ptr<const KeptContents> contents_of(const CallFacts& call);

// While the calling thread allocates from a pool that counts what is in it nothing is kept. Calls nest.
void allocate_from_pool(bool begins);

// A step is over, and all its checks have run.
void forget_contents();

}  // namespace trapline::guard
