#include "guard/remember.hpp"

#include <deque>
#include <mutex>

#include "guard/fork_mutex.hpp"
#include "guard/intern.hpp"

namespace trapline::guard {
namespace {

struct Store {
  ForkMutex mutex;
  std::deque<Remembered> items;
};

Store& store() {
  static auto* all = new Store;  // never destroyed: threads may outlive static destruction
  return *all;
}

void put_first(Remembered item) {
  Store& all = store();
  const std::lock_guard<ForkMutex> lock(all.mutex);
  all.items.push_front(std::move(item));
  if (all.items.size() > kRemembered) all.items.pop_back();
}

}  // namespace

Result result_of(const RowPlan& row, const Argument* arguments) {
  Result out;
  const Argument& result = arguments[row.bound >= 0 ? row.bound : row.argument];
  if (result.kind != TRAPLINE_ARG_TENSOR || !result.tensor->defined()) return out;
  const at::Tensor& tensor = *result.tensor;
  if (tensor.has_storage()) out.storage = reinterpret_cast<std::uintptr_t>(tensor.storage().data());
  out.shape = tensor.sizes().vec();
  return out;
}

void remember(const RowPlan& row, const trapline_scan& scan, const Argument* arguments) {
  Result result = result_of(row, arguments);
  Remembered item{row.row, scan, {}, result.storage, std::move(result.shape)};
  item.frames.resize(kRememberedFrames);
  item.frames.resize(capture(item.frames.data(), kRememberedFrames));
  put_first(std::move(item));
}

void remember_late(const LaunchRecord& record, const trapline_scan& scan) {
  const CallFacts& call = *record.call;
  put_first({record.row->row, scan, call.frames, record.result_storage, record.result_shape,
             call.plan->site == nullptr ? "" : call.arguments.back().value.toStringRef()});
}

std::vector<Remembered> read_remembered() {
  Store& all = store();
  const std::lock_guard<ForkMutex> lock(all.mutex);
  return {all.items.begin(), all.items.end()};
}

}  // namespace trapline::guard
