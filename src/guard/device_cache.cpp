#include "guard/device_cache.hpp"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <mutex>

#include "guard/device_records.hpp"
#include "guard/fork_mutex.hpp"

namespace trapline::guard {
namespace {

constexpr std::size_t kMaxHealed = 64;
constexpr std::size_t kMaxUsers = 256;  // of one copy

struct Healed {
  TensorRef original;
  trapline_device_check check;
  void* stream;
  at::Tensor copy;
  std::shared_ptr<CopyUsers> users;
};

struct HealedStore {
  ForkMutex mutex;
  std::deque<Healed> items;  // newest first
  std::int64_t bytes = 0;
};

HealedStore& healed_store() {
  static auto* all = new HealedStore;  // never destroyed: the device may be gone before static objects
  return *all;
}

// Whatever passes `have` passes `want`.
bool at_least_as_strict(const trapline_device_check& have, const trapline_device_check& want) {
  const bool also = have.has_also == 0 || (want.has_also != 0 && have.also == want.also) ||
                    (have.also >= want.lo && have.also < want.hi);
  return have.predicate == want.predicate && have.heal == want.heal && have.dtype == want.dtype &&
         have.lo >= want.lo && have.hi <= want.hi && have.lengths == nullptr && want.lengths == nullptr &&
         also;
}

std::int64_t bytes_of(const at::Tensor& tensor) {
  return tensor.numel() * static_cast<std::int64_t>(tensor.itemsize());
}

void drop_oldest(HealedStore& all, std::deque<Healed>& dropped) {
  all.bytes -= bytes_of(all.items.back().copy);
  dropped.push_back(std::move(all.items.back()));
  all.items.pop_back();
}

}  // namespace

at::Tensor find_healed(const at::Tensor& tensor, const trapline_device_check& check, void* stream,
                       const std::optional<NodeName>& node) {
  HealedStore& all = healed_store();
  const std::lock_guard<ForkMutex> lock(all.mutex);
  for (const Healed& item : all.items) {
    if (item.stream != stream || !item.original.is(tensor) || item.copy.sizes() != tensor.sizes() ||
        !at_least_as_strict(item.check, check))
      continue;
    if (node) {
      const std::lock_guard<std::mutex> users(item.users->mutex);
      if (item.users->nodes.size() < kMaxUsers) item.users->nodes.push_back(*node);
    }
    return item.copy;
  }
  return {};
}

void keep_healed(const at::Tensor& tensor, const trapline_device_check& check, void* stream,
                 at::Tensor healed, std::shared_ptr<CopyUsers> users) {
  std::deque<Healed> dropped;  // released without the lock: an allocator may run user code
  HealedStore& all = healed_store();
  const std::lock_guard<ForkMutex> lock(all.mutex);
  const auto gone = std::stable_partition(all.items.begin(), all.items.end(),
                                          [](const Healed& item) { return item.original.alive(); });
  for (auto at = gone; at != all.items.end(); ++at) {
    all.bytes -= bytes_of(at->copy);
    dropped.push_back(std::move(*at));
  }
  all.items.erase(gone, all.items.end());
  all.bytes += bytes_of(healed);
  all.items.push_front({TensorRef(tensor), check, stream, std::move(healed), std::move(users)});
  while (all.items.size() > kMaxHealed || (all.bytes > heal_cap() && all.items.size() > 1))
    drop_oldest(all, dropped);
}

void forget_healed() {
  std::deque<Healed> dropped;
  HealedStore& all = healed_store();
  const std::lock_guard<ForkMutex> lock(all.mutex);
  dropped.swap(all.items);
  all.bytes = 0;
}

void forget_healed(const TensorRef& tensor) {
  std::deque<Healed> dropped;
  HealedStore& all = healed_store();
  const std::lock_guard<ForkMutex> lock(all.mutex);
  const auto gone = std::stable_partition(all.items.begin(), all.items.end(), [&](const Healed& item) {
    return !item.original.same_object(tensor);
  });
  for (auto at = gone; at != all.items.end(); ++at) {
    all.bytes -= bytes_of(at->copy);
    dropped.push_back(std::move(*at));
  }
  all.items.erase(gone, all.items.end());
}

std::int64_t heal_cap() {
  static const std::int64_t cap = [] {
    const char* value = std::getenv("TRAPLINE_HEAL_CAP_MB");
    char* end = nullptr;
    const double megabytes = value == nullptr ? -1 : std::strtod(value, &end);
    const bool usable = value != nullptr && end != value && megabytes >= 0 && megabytes < 1e9;
    return static_cast<std::int64_t>((usable ? megabytes : 256) * (1 << 20));
  }();
  return cap;
}

}  // namespace trapline::guard
