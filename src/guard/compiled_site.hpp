// One check of a compiled graph: what `trapline::check(argument, others, numbers, site)` stands for.
//
// The text of a site is read by Python once (python/trapline/_compile/values.py), which says here how the
// arguments of the contract's operation are made of what the check is given.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <string>
#include <vector>

#include "guard/describe.hpp"
#include "guard/plan.hpp"

namespace trapline::guard {

// One argument of the operation, or one element of an index list.
struct SiteEntry {
  std::int32_t kind = TRAPLINE_SITE_NONE;     // trapline_site_kind
  std::int32_t dtype = TRAPLINE_OTHER_DTYPE;  // TRAPLINE_SITE_SHAPE
  std::int32_t other = -1;                    // TRAPLINE_SITE_TENSOR: which of the others
  std::int64_t start = 0, length = 0;         // its numbers; TRAPLINE_SITE_FLAG: the value is `start`
  std::vector<SiteEntry> items;               // TRAPLINE_SITE_LIST
};

constexpr int kSiteParts = 4;  // argument, bound, dim, also: the arguments of trapline_check

struct CompiledSite {
  Plan plan;  // of the check: its rows and positions are those of trapline::check, its name the operation's
  int list_position = -1;
  bool has[kSiteParts] = {};
  SiteEntry part[kSiteParts];
  std::vector<std::int64_t> numbers;  // those that are constants; the others are 0
  std::vector<std::int32_t> holes;    // where the check's own numbers go
};

// What one call of a check was given. Borrowed.
struct SiteCall {
  explicit SiteCall(const at::Tensor& checked) : argument(checked) {}
  // Of the dispatcher: the arguments of trapline::check in order.
  explicit SiteCall(c10::ArrayRef<c10::IValue> values) : SiteCall(values, values[0].toTensor()) {}
  SiteCall(c10::ArrayRef<c10::IValue> values, const at::Tensor& checked);

  const at::Tensor& argument;
  c10::SmallVector<const at::Tensor*, 8> others;
  c10::SmallVector<std::int64_t, 16> numbers;
};

// The arguments of trapline_check. `numbers` has to live as long.
struct SiteArguments {
  trapline_arg arg[kSiteParts];
  Scratch scratch;
  c10::SmallVector<std::int64_t, 32> numbers;

  const trapline_arg* part(const CompiledSite& site, int at) const {
    return site.has[at] ? &arg[at] : nullptr;
  }
};

// False: the contract cannot be judged. Tensors that are not at `place` give bounds only.
bool describe_site(const CompiledSite& site, const SiteCall& call, Place place, SiteArguments& out);

// The verdict of trapline_check for tensors in host memory.
int judge_site(const CompiledSite& site, const SiteCall& call, trapline_scan& scan);

}  // namespace trapline::guard
