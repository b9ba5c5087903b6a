// The content of the last calls' small arguments. A copy of the labels that only the loss was given
// (`labels.to(device)`) is gone when the fault is raised, and with it what tells the sample, the values and
// the variable. What is kept is an alias: the program's own tensor object dies as without the guard.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace trapline::guard {

struct CallFacts;
class TensorRef;

// For a call that is not captured and not replayed by autograd. The oldest are let go above 64 calls and
// 32 MiB; an argument above 1 MiB is not kept.
// `contents`: of all tensors of the call's arguments, in their order; undefined where nothing is kept.
void keep_contents(const std::shared_ptr<const CallFacts>& call, std::vector<at::Tensor> contents);

// What is still kept for a call, as given; empty when it is gone.
std::vector<at::Tensor> contents_of(const CallFacts& call);

// While the calling thread allocates from a pool that counts what is in it nothing is kept. Calls nest.
void allocate_from_pool(bool begins);

// A step is over, and all its checks have run.
void forget_contents();

// An alias of the tensor, to be kept, without its autograd graph; undefined for one that is too large, and
// for what a gradient flows through, which only `checked` tensors are kept of.
at::Tensor alias_to_keep(const at::Tensor& tensor, bool checked);

}  // namespace trapline::guard
