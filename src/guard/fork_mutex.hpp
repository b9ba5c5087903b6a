// A mutex that no child of fork() inherits held. The thread that forks takes all of them before, so that what
// they guard is whole in the child, too; one that cannot be had in time (a thread holds it and waits for
// another of them) is made new in the child.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <new>

namespace trapline::guard {

// For objects that are never destroyed.
class ForkMutex {
 public:
  ForkMutex() {
    static const int watched = pthread_atfork(&before, &in_parent, &in_child);
    static_cast<void>(watched);
    next_ = first().load(std::memory_order_relaxed);
    while (!first().compare_exchange_weak(next_, this)) {
    }
  }
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  static constexpr std::chrono::milliseconds kPatience{500};

  static std::atomic<ForkMutex*>& first() {
    static std::atomic<ForkMutex*> head{nullptr};
    return head;
  }
  static std::mutex& forking() {
    static auto* one = new std::mutex;  // two threads may fork at once
    return *one;
  }
  static void before() {
    forking().lock();
    // By the wall clock: ThreadSanitizer does not know the other kind of waiting yet.
    const auto deadline = std::chrono::system_clock::now() + kPatience;
    for (ForkMutex* one = first(); one != nullptr; one = one->next_)
      one->taken_ = one->mutex_.try_lock_until(deadline);
  }
  static void in_parent() {
    release(/*renew=*/false);
    forking().unlock();
  }
  static void in_child() {
    release(/*renew=*/true);
    forking().unlock();
  }
  static void release(bool renew) {
    for (ForkMutex* one = first(); one != nullptr; one = one->next_) {
      if (one->taken_) {
        one->mutex_.unlock();
      } else if (renew) {
        new (&one->mutex_) std::timed_mutex;
      }
      one->taken_ = false;
    }
  }

  std::timed_mutex mutex_;
  bool taken_ = false;  // before the fork that is under way
  ForkMutex* next_ = nullptr;
};

}  // namespace trapline::guard
