// Arguments of a call on the device, in the words of the C interface: part of them may be in host memory.
#pragma once

#include <vector>

#include "guard/describe.hpp"
#include "guard/plan.hpp"
#include "trapline/device.h"

namespace trapline::guard {

// trapline_device_plan for the row; tensors in host memory give bounds only.
int plan_row(const RowPlan& row, const Argument* arguments, trapline_device_check* checks, int capacity,
             int& count, trapline_scan& scan);

// An argument's tensors by where they are. In a list, what is elsewhere becomes None, which takes up the same
// dimensions of the indexed tensor; masks, which nothing checks, stay in both.
class SplitList {
 public:
  explicit SplitList(const Argument& argument);
  bool any_on_host() const { return on_host_; }
  bool any_on_device() const { return on_device_; }
  Argument on_host() const { return view(host_); }
  Argument on_device() const { return view(device_); }

 private:
  Argument view(const std::vector<c10::IValue>& list) const;

  Argument argument_;
  std::vector<c10::IValue> host_, device_;
  bool on_host_ = false, on_device_ = false;
};

// The lengths of a padded argument (Contract::also_arg where the row reads its elements), wherever the
// program has them. Alive until the checks of the call are enqueued.
class Lengths {
 public:
  // Before the plan: what is in host memory becomes a list, so that the plan looks at it; what is on the
  // device becomes contiguous int64 there, as the kernel wants it.
  void prepare(Argument& lengths, const c10::Device& device);
  // After it: a list that the check needs on the device is brought there. False: it cannot be had now. The
  // copy waits for the device, which a capture forbids; so does PyTorch's own for the same list.
  bool give(trapline_device_check& check, const Argument& lengths, const c10::Device& device, bool capturing);
  bool give(trapline_device_check& check, c10::ArrayRef<std::int64_t> lengths, const c10::Device& device,
            bool capturing);

 private:
  static bool are_wanted(const trapline_device_check& check) {
    return check.lengths_count > 0 && check.lengths == nullptr;
  }
  at::Tensor tensor_;
  std::vector<c10::IValue> list_;
};

// Waits for the device.
at::Tensor copy_to_host(const at::Tensor& tensor);

// What a row reads, copied to host memory. Waits for the device.
class HostArguments {
 public:
  HostArguments(const Plan& plan, const RowPlan& row, const Argument* arguments);
  const Argument* arguments() const { return arguments_; }

 private:
  void copy(std::int8_t position);

  Argument arguments_[kMaxArguments];
  std::vector<at::Tensor> tensors_;
  std::vector<std::vector<c10::IValue>> lists_;
};

}  // namespace trapline::guard
