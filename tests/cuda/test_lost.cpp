// What a process may meet: no driver, a driver that is no good, a lost context, a fork. Each in a process of
// its own, since none of it can be undone.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "device_case.hpp"

extern "C" {
int cuCtxSetCurrent(void* context);
int cuCtxGetCurrent(void** context);
int cuMemAlloc_v2(unsigned long long* pointer, std::size_t bytes);
int cuMemFree_v2(unsigned long long pointer);
}

namespace trapline::cuda_test {
namespace {

class Lost : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

[[noreturn]] void end(bool good) {
  std::fflush(nullptr);
  _exit(good ? 0 : 1);
}

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  end(false);
}
#define HOLDS(what) expect(what, #what)

bool why_is(const std::string& wanted) {
  std::fprintf(stderr, "%s\n", trapline_device_why());
  return trapline_device_why() == wanted;
}

void nothing_works() {
  const std::int64_t label = 10;
  const trapline_device_check check = one_label(&label);
  trapline_device_report report;
  HOLDS(trapline_device_reserve(0, nullptr, 0) == -1);
  HOLDS(trapline_device_launch(0, nullptr, 0, &check, nullptr, nullptr, 0) == 0);
  HOLDS(trapline_device_pending() == 0);
  HOLDS(trapline_device_poll(&report, 1) == 0);
  HOLDS(trapline_device_wait_stream(0, nullptr) == 0);
}

TEST_F(Lost, WithoutADriverOneLineSaysSo) {
  EXPECT_EXIT(
      {
        setenv("TRAPLINE_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
        HOLDS(trapline_device_ready(0) == 0);
        HOLDS(why_is("device checks: /nowhere/libcuda.so.1 cannot be loaded: install the NVIDIA driver"));
        nothing_works();
        end(true);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(Lost, ALibraryThatIsNoDriverIsRefused) {
  EXPECT_EXIT(
      {
        setenv("TRAPLINE_CUDA_DRIVER", "libc.so.6", 1);
        HOLDS(trapline_device_ready(0) == 0);
        HOLDS(
            why_is("device checks: libc.so.6 has no cuCtxGetCurrent: install a driver of CUDA 11 or newer"));
        nothing_works();
        end(true);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(Lost, WithoutAContextItMayBeTriedAgain) {
  EXPECT_EXIT(
      {
        setenv("TRAPLINE_CUDA_DRIVER", TRAPLINE_FAKE_CUDA, 1);
        cuCtxSetCurrent(nullptr);
        HOLDS(trapline_device_ready(0) == 0);
        HOLDS(why_is("device checks: device 0: no CUDA context is current: use the device once first"));
        HOLDS(trapline_device_ready(-1) == 0);
        void* context = nullptr;
        std::thread([&] { cuCtxGetCurrent(&context); }).join();
        cuCtxSetCurrent(context);
        HOLDS(trapline_device_ready(0) == 1);
        end(true);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(Lost, WhatWasReportedBeforeTheContextWasLostCanBeRead) {
  EXPECT_EXIT(
      {
        use_fake_driver();
        Lane lane;
        const std::int64_t bad = 10;
        const std::int64_t slot = launch(lane, one_label(&bad), nullptr);
        HOLDS(slot >= 0);
        fake_cuda_enqueue(
            lane.stream, [](void*) { fake_cuda_poison(); }, nullptr);
        while (fake_cuda_poisoned() == 0) usleep(100);
        const std::int64_t later = trapline_device_reserve(0, lane.stream, 0);
        const trapline_device_check check = one_label(&bad);
        HOLDS(trapline_device_launch(0, lane.stream, later, &check, nullptr, nullptr, 0) == 0);
        HOLDS(trapline_device_wait() == 0);
        HOLDS(trapline_device_reserve(0, lane.stream, 0) == -1);
        HOLDS(trapline_device_pending() == 1);
        trapline_device_report report;
        HOLDS(trapline_device_poll(&report, 1) == 1);
        HOLDS(report.slot == slot);
        HOLDS(report.scan.ivalue == 10);
        HOLDS(trapline_device_poll(&report, 1) == 0);
        HOLDS(trapline_device_ready(0) == 0);
        HOLDS(why_is("device checks: device 0: its context is lost after an error: start the program again"));
        end(true);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(Lost, AForkedChildIsWithoutEffect) {
  EXPECT_EXIT(
      {
        use_fake_driver();
        Lane lane;
        const std::int64_t bad = 10;
        HOLDS(launch(lane, one_label(&bad), nullptr) >= 0);
        HOLDS(trapline_device_wait() == 1);
        const std::int64_t kept = trapline_device_reserve(0, lane.stream, 0);
        const pid_t child = fork();
        if (child == 0) {
          nothing_works();  // the fake driver ends a child that calls it
          const trapline_device_check check = one_label(&bad);
          HOLDS(trapline_device_launch(0, lane.stream, kept, &check, nullptr, nullptr, 0) == 0);
          HOLDS(trapline_device_ready(0) == 0);
          HOLDS(trapline_device_ready(1) == 0);
          HOLDS(trapline_device_wait() == 0);
          HOLDS(why_is("device checks: this is a forked process: use CUDA in the parent, or spawn"));
          end(true);
        }
        int status = 0;
        waitpid(child, &status, 0);
        HOLDS(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        HOLDS(trapline_device_pending() == 1);  // the parent's report is still the parent's
        end(true);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(Lost, TheFakeDriverSeesItsCallersMistakes) {
  EXPECT_DEATH(
      {
        use_fake_driver();
        Lane lane;
        const std::int64_t label = 1;
        lane.stream = &lane;
        launch(lane, one_label(&label), nullptr);
      },
      "fake_cuda: stream .* does not exist");
  EXPECT_DEATH(
      {
        use_fake_driver();
        Lane lane;
        unsigned long long memory = 0;
        cuMemAlloc_v2(&memory, 8);
        cuMemFree_v2(memory);
        launch(lane, one_label(reinterpret_cast<const std::int64_t*>(memory)), nullptr);
        trapline_device_wait();
      },
      "fake_cuda: launch: data at .* was freed");
}

}  // namespace
}  // namespace trapline::cuda_test
