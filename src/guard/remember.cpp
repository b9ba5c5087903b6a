#include "guard/remember.hpp"

#include <pthread.h>

#include <deque>
#include <mutex>

#include "guard/intern.hpp"

namespace trapline::guard {
namespace {

struct Store {
  std::mutex mutex;
  std::deque<Remembered> items;
};

Store& store() {
  static Store* all = [] {
    pthread_atfork([] { store().mutex.lock(); }, [] { store().mutex.unlock(); },
                   [] { store().mutex.unlock(); });
    return new Store;  // never destroyed: threads may outlive static destruction
  }();
  return *all;
}

}  // namespace

void remember(const RowPlan& row, const trapline_scan& scan, const Argument* arguments) {
  Remembered item{row.row, scan, {}, 0, {}};
  item.frames.resize(kRememberedFrames);
  item.frames.resize(capture(item.frames.data(), kRememberedFrames));
  const Argument& result = arguments[row.bound >= 0 ? row.bound : row.argument];
  if (result.kind == TRAPLINE_ARG_TENSOR && result.tensor->defined()) {
    const at::Tensor& tensor = *result.tensor;
    if (tensor.has_storage()) item.storage = reinterpret_cast<std::uintptr_t>(tensor.storage().data());
    item.shape = tensor.sizes().vec();
  }
  Store& all = store();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.items.push_front(std::move(item));
  if (all.items.size() > kRemembered) all.items.pop_back();
}

std::vector<Remembered> read_remembered() {
  Store& all = store();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return {all.items.begin(), all.items.end()};
}

}  // namespace trapline::guard
