#include "check/workers.hpp"

#include <algorithm>
#include <atomic>

namespace trapline::check {

struct Workers::Loop {
  std::int64_t count = 0;
  const std::function<void(std::int64_t)>* body = nullptr;
  std::atomic<std::int64_t> next{0};
  std::atomic<std::int64_t> left{0};
  std::mutex mutex;
  std::condition_variable done;
};

Workers::Workers(unsigned threads) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  for (unsigned i = 1; i < threads; ++i) helpers_.emplace_back([this] { help(); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

// `body` may be gone once `left` is 0, so it is only touched for an item that was taken.
void Workers::work(Loop& loop) {
  for (std::int64_t i = loop.next++; i < loop.count; i = loop.next++) {
    (*loop.body)(i);
    if (--loop.left == 0) {
      const std::lock_guard lock(loop.mutex);
      loop.done.notify_all();
    }
  }
}

void Workers::help() {
  while (true) {
    std::shared_ptr<Loop> loop;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return ending_ || !loops_.empty(); });
      if (ending_) return;
      loop = std::move(loops_.front());
      loops_.pop_front();
    }
    work(*loop);
  }
}

void Workers::run(std::int64_t count, const std::function<void(std::int64_t)>& body) {
  if (count <= 1 || helpers_.empty()) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  const auto loop = std::make_shared<Loop>();
  loop->count = count;
  loop->body = &body;
  loop->left = count;
  {
    const std::lock_guard lock(mutex_);
    const auto hands = std::min<std::int64_t>(static_cast<std::int64_t>(helpers_.size()), count - 1);
    for (std::int64_t i = 0; i < hands; ++i) loops_.push_front(loop);
  }
  wake_.notify_all();
  work(*loop);
  std::unique_lock lock(loop->mutex);
  loop->done.wait(lock, [&] { return loop->left == 0; });
}

}  // namespace trapline::check
