// A few threads that share loops. The caller works too, so a loop inside a loop cannot wait for itself.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace trapline::check {

class Workers {
 public:
  // 1: everything runs in the caller. 0: as many as the machine has.
  explicit Workers(unsigned threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Calls body(0) ... body(count - 1), each once, in any order, and returns when all have returned. `body`
  // must not throw.
  void run(std::int64_t count, const std::function<void(std::int64_t)>& body);
  unsigned threads() const { return static_cast<unsigned>(helpers_.size()) + 1; }

 private:
  struct Loop;
  void help();
  static void work(Loop& loop);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Loop>> loops_;
  bool ending_ = false;
  std::vector<std::thread> helpers_;
};

}  // namespace trapline::check
