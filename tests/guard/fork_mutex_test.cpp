// A child of fork() has the locks of the guard free and what they guard whole.
#include "guard/fork_mutex.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace trapline::guard {
namespace {

// 0: the child could lock `mutex` and found `whole` true; a child that hangs is ended by SIGALRM.
template <class Whole>
int fork_and_lock(ForkMutex& mutex, const Whole& whole) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    const std::lock_guard<ForkMutex> lock(mutex);
    ::_exit(whole() ? 0 : 1);
  }
  int status = -1;
  return ::waitpid(child, &status, 0) == child ? status : -1;
}

TEST(ForkMutex, AChildFindsWhatIsGuardedWhole) {
  static auto& mutex = *new ForkMutex;
  static long left = 0, right = 0;
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&over] {
      while (!over) {
        {
          const std::lock_guard<ForkMutex> lock(mutex);
          ++left;
          std::this_thread::yield();
          ++right;
        }
        // A mutex is not fair: who takes it again at once may keep the fork waiting beyond its patience.
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    });
  }
  int bad = 0;
  for (int i = 0; i < 200; ++i) bad += fork_and_lock(mutex, [] { return left == right; }) != 0 ? 1 : 0;
  over = true;
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(bad, 0);
  EXPECT_GT(left, 0);
}

TEST(ForkMutex, AThreadThatNeverLetsGoHoldsUpNoFork) {
  static auto& mutex = *new ForkMutex;
  static auto& other = *new ForkMutex;
  std::atomic<int> stage{0};
  std::thread holder([&stage] {
    const std::lock_guard<ForkMutex> lock(mutex);
    stage = 1;
    while (stage != 2) std::this_thread::yield();
  });
  while (stage != 1) std::this_thread::yield();
  EXPECT_EQ(fork_and_lock(mutex, [] { return true; }), 0);
  EXPECT_FALSE(mutex.try_lock());  // here it is still the other thread's
  EXPECT_TRUE(other.try_lock());
  other.unlock();
  stage = 2;
  holder.join();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TEST(ForkMutex, TwoThreadsForkAtOnce) {
  static auto& mutex = *new ForkMutex;
  std::atomic<int> bad{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&bad] {
      for (int k = 0; k < 50; ++k) bad += fork_and_lock(mutex, [] { return true; }) != 0 ? 1 : 0;
    });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(bad, 0);
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

}  // namespace
}  // namespace trapline::guard
