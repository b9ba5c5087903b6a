#include "guard/compiled_site.hpp"

#include <algorithm>

namespace trapline::guard {
namespace {

constexpr std::int64_t kNoStrides[64] = {};  // of a tensor whose sizes alone are known

bool describe_shape_only(const SiteEntry& entry, const SiteArguments& all, trapline_tensor& out) {
  if (entry.length > static_cast<std::int64_t>(std::size(kNoStrides))) return false;
  out = {nullptr, all.numbers.data() + entry.start, kNoStrides, static_cast<std::int32_t>(entry.length),
         entry.dtype};
  return true;
}

// An index list in which this check reads one tensor only; the others tell which dimension it is.
bool describe_index_list(const SiteEntry& entry, const SiteCall& call, Place place, SiteArguments& all,
                         trapline_arg& out) {
  if (entry.items.size() > kMaxList) return false;
  out.kind = TRAPLINE_ARG_LIST;
  out.list = all.scratch.tensors;
  out.list_size = static_cast<std::int32_t>(entry.items.size());
  for (std::size_t i = 0; i < entry.items.size(); ++i) {
    const SiteEntry& item = entry.items[i];
    trapline_tensor& tensor = all.scratch.tensors[i];
    tensor.dim = -1;  // as None: takes one dimension, and has a check of its own if it is an index
    if (item.kind == TRAPLINE_SITE_CHECKED) {
      if (!describe(call.argument, tensor, place)) return false;
    } else if (item.kind == TRAPLINE_SITE_SHAPE) {
      const bool is_mask = item.dtype == TRAPLINE_BOOL || item.dtype == TRAPLINE_UINT8;
      const std::int64_t* sizes = all.numbers.data() + item.start;
      if (is_mask && !describe_shape_only(item, all, tensor)) return false;
      // An empty index: the others are broadcast away, and nothing is read.
      if (!is_mask && std::find(sizes, sizes + item.length, 0) != sizes + item.length) return false;
    }
  }
  return true;
}

bool describe_entry(const SiteEntry& entry, const SiteCall& call, Place place, SiteArguments& all,
                    trapline_arg& out) {
  const std::int64_t* numbers = all.numbers.data() + entry.start;
  switch (entry.kind) {
    case TRAPLINE_SITE_CHECKED:
      out.kind = TRAPLINE_ARG_TENSOR;
      return describe(call.argument, out.tensor, place);
    case TRAPLINE_SITE_TENSOR:
      out.kind = TRAPLINE_ARG_TENSOR;
      return static_cast<std::size_t>(entry.other) < call.others.size() &&
             describe(*call.others[entry.other], out.tensor, place);
    case TRAPLINE_SITE_SHAPE:
      out.kind = TRAPLINE_ARG_TENSOR;
      return describe_shape_only(entry, all, out.tensor);
    case TRAPLINE_SITE_INT:
      out.kind = TRAPLINE_ARG_INT;
      out.integer = *numbers;
      return true;
    case TRAPLINE_SITE_FLAG:
      out.kind = TRAPLINE_ARG_INT;
      out.integer = entry.start;
      return true;
    case TRAPLINE_SITE_INTS:
      out.kind = TRAPLINE_ARG_SIZES;
      out.tensor = {nullptr, numbers, nullptr, static_cast<std::int32_t>(entry.length), TRAPLINE_INT64};
      return true;
    case TRAPLINE_SITE_LIST:
      return describe_index_list(entry, call, place, all, out);
    default:
      out.kind = TRAPLINE_ARG_NONE;
      return true;
  }
}

}  // namespace

SiteCall::SiteCall(c10::ArrayRef<c10::IValue> values, const at::Tensor& checked) : argument(checked) {
  for (const c10::IValue& other : values[1].toListRef()) others.push_back(&other.toTensor());
  for (const c10::IValue& number : values[2].toListRef())
    numbers.push_back(number.isInt() ? number.toInt() : number.toSymInt().expect_int());
}

bool describe_site(const CompiledSite& site, const SiteCall& call, Place place, SiteArguments& out) {
  if (call.numbers.size() != site.holes.size()) return false;
  out.numbers.assign(site.numbers.begin(), site.numbers.end());
  for (std::size_t i = 0; i < site.holes.size(); ++i) out.numbers[site.holes[i]] = call.numbers[i];
  for (int at = 0; at < kSiteParts; ++at) {
    if (site.has[at] && !describe_entry(site.part[at], call, place, out, out.arg[at])) return false;
  }
  return true;
}

int judge_site(const CompiledSite& site, const SiteCall& call, trapline_scan& scan) {
  SiteArguments arguments;
  if (!describe_site(site, call, Place::kHost, arguments)) return TRAPLINE_NOT_APPLICABLE;
  return trapline_check(site.plan.rows[0].row, &arguments.arg[0], arguments.part(site, 1),
                        arguments.part(site, 2), arguments.part(site, 3), &scan);
}

}  // namespace trapline::guard
