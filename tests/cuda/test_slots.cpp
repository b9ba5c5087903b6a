// Slots and reports over many launches: each report once and from the right launch, slots come back, graphs
// keep theirs.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "device_case.hpp"

namespace trapline::cuda_test {
namespace {

class Slots : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { use_fake_driver(); }
};

std::vector<trapline_device_report> poll_all() {
  std::vector<trapline_device_report> all;
  trapline_device_report reports[16];
  while (trapline_device_pending() == 1) {
    const int count = trapline_device_poll(reports, 16);
    all.insert(all.end(), reports, reports + count);
  }
  return all;
}

TEST_F(Slots, AGoodLaunchReportsNothing) {
  Lane lane;
  const std::int64_t label = 9;
  ASSERT_GE(launch(lane, one_label(&label), nullptr), 0);
  ASSERT_EQ(trapline_device_wait(), 1);
  EXPECT_EQ(trapline_device_pending(), 0);
  trapline_device_report report;
  EXPECT_EQ(trapline_device_poll(&report, 1), 0);
}

TEST_F(Slots, ReportsComeOldestFirstAndOnce) {
  Lane lane;
  const std::int64_t labels[] = {10, 3, 11, 12};
  std::vector<std::int64_t> slots;
  for (const std::int64_t& label : labels) slots.push_back(launch(lane, one_label(&label), nullptr));
  ASSERT_EQ(trapline_device_wait_stream(0, lane.stream), 1);
  EXPECT_EQ(trapline_device_pending(), 1);
  trapline_device_report reports[2];
  ASSERT_EQ(trapline_device_poll(reports, 2), 2);
  EXPECT_EQ(reports[0].slot, slots[0]);
  EXPECT_EQ(reports[0].scan.ivalue, 10);
  EXPECT_EQ(reports[1].slot, slots[2]);
  EXPECT_EQ(trapline_device_pending(), 1) << "there was no room for the third";
  ASSERT_EQ(trapline_device_poll(reports, 2), 1);
  EXPECT_EQ(reports[0].slot, slots[3]);
  EXPECT_EQ(reports[0].scan.ivalue, 12);
  EXPECT_EQ(trapline_device_pending(), 0);
}

TEST_F(Slots, AFreedSlotKeepsItsUnpolledReport) {
  Lane lane;
  const std::int64_t bad = 77, good = 0;
  const std::int64_t slot = launch(lane, one_label(&bad), nullptr);
  for (int i = 0; i < 3000; ++i) {
    const std::int64_t other = launch(lane, one_label(&good), nullptr);
    ASSERT_NE(other, slot) << "its report was not polled yet";
    ASSERT_GE(other, 0);
  }
  ASSERT_EQ(trapline_device_wait(), 1);
  const auto reports = poll_all();
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].slot, slot);
  EXPECT_EQ(reports[0].scan.ivalue, 77);
}

// Who polled reads his own record of the slot; until he polls again no other thread may get that slot and
// write there.
TEST_F(Slots, AReportedSlotIsNotReservedBeforeTheNextPoll) {
  Lane lane;
  const std::int64_t bad = 78;
  const std::int64_t slot = launch(lane, one_label(&bad), nullptr);
  ASSERT_EQ(trapline_device_wait(), 1);
  trapline_device_report report;
  ASSERT_EQ(trapline_device_poll(&report, 1), 1);
  ASSERT_EQ(report.slot, slot);
  const std::int64_t good = 0;
  static std::atomic<bool> go{false};
  const auto is_given = [&] {
    go.store(false);
    fake_cuda_enqueue(  // nothing comes back, so that every free slot is given
        lane.stream,
        [](void*) {
          while (!go.load()) std::this_thread::yield();
        },
        nullptr);
    std::set<std::int64_t> slots;
    for (int i = 0; i < 6000; ++i) slots.insert(launch(lane, one_label(&good), nullptr));
    go.store(true);
    EXPECT_EQ(trapline_device_wait(), 1);
    return slots.contains(slot);
  };
  EXPECT_FALSE(is_given());
  // With the next report it comes back.
  ASSERT_GE(launch(lane, one_label(&bad), nullptr), 0);
  ASSERT_EQ(trapline_device_wait(), 1);
  ASSERT_EQ(trapline_device_poll(&report, 1), 1);
  EXPECT_TRUE(is_given());
}

TEST_F(Slots, WaitingDoesNotIncludeWhatCameAfter) {
  Lane lane;
  static std::atomic<bool> go{false}, before{false};
  const std::int64_t bad = 10;
  ASSERT_GE(launch(lane, one_label(&bad), nullptr), 0);
  fake_cuda_enqueue(
      lane.stream,
      [](void*) {
        while (!go.load()) std::this_thread::yield();
      },
      nullptr);
  EXPECT_EQ(trapline_device_wait_stream(0, lane.stream),
            1);  // would not return if it waited for the operation
  EXPECT_EQ(trapline_device_wait(), 1);
  EXPECT_EQ(poll_all().size(), 1U);
  go.store(true);
  // And what came before is waited for.
  fake_cuda_enqueue(
      lane.stream,
      [](void*) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        before.store(true);
      },
      nullptr);
  ASSERT_GE(launch(lane, one_label(&bad), nullptr), 0);
  EXPECT_EQ(trapline_device_wait(), 1);
  EXPECT_TRUE(before.load());
  EXPECT_EQ(poll_all().size(), 1U);
}

TEST_F(Slots, GrowsInsteadOfWaiting) {
  Lane lane;
  static std::atomic<bool> go{false};
  go.store(false);
  fake_cuda_enqueue(
      lane.stream,
      [](void*) {
        while (!go.load()) std::this_thread::yield();
      },
      nullptr);
  const std::int64_t bad = 10;
  std::set<std::int64_t> slots;
  for (int i = 0; i < 2500; ++i) slots.insert(launch(lane, one_label(&bad), nullptr));
  EXPECT_EQ(slots.size(), 2500U);
  EXPECT_GE(*slots.begin(), 0);
  go.store(true);
  ASSERT_EQ(trapline_device_wait(), 1);
  std::set<std::int64_t> reported;
  for (const auto& report : poll_all()) EXPECT_TRUE(reported.insert(report.slot).second);
  EXPECT_EQ(reported, slots);
}

// Threads launch on their own stream and on one that they share, and whoever comes by polls.
TEST_F(Slots, EachViolationIsReportedOnceFromManyThreadsAndStreams) {
  constexpr int kThreadCount = 4, kLaunches = 3000 / kFewer;
  Lane shared;
  std::vector<std::int64_t> labels(kThreadCount * kLaunches);
  std::mutex mutex;
  std::map<std::int64_t, std::int64_t> value_of_slot;  // a caller keeps such records
  std::map<std::int64_t, int> reported;                // by value
  std::int64_t highest = 0;
  const auto poll = [&] {
    trapline_device_report reports[8];
    const std::lock_guard lock(mutex);
    const int count = trapline_device_poll(reports, 8);
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(value_of_slot[reports[i].slot], reports[i].scan.ivalue);
      ++reported[reports[i].scan.ivalue];
    }
  };
  const auto work = [&](int thread) {
    Lane own;
    Random random(static_cast<std::uint64_t>(thread) + 7);
    for (int i = 0; i < kLaunches; ++i) {
      auto& label = labels[static_cast<std::size_t>(thread * kLaunches + i)];
      const bool bad = between(random, 0, 19) == 0;
      label = bad ? 1000 + thread * kLaunches + i : 5;
      const Lane& lane = between(random, 0, 2) == 0 ? shared : own;
      const std::int64_t slot = trapline_device_reserve(0, lane.stream, 0);
      ASSERT_GE(slot, 0);
      {
        const std::lock_guard lock(mutex);
        value_of_slot[slot] = label;
        highest = std::max(highest, slot);
      }
      const trapline_device_check check = one_label(&label);
      ASSERT_EQ(trapline_device_launch(0, lane.stream, slot, &check, nullptr, nullptr, 0), 1);
      if (trapline_device_pending() == 1) poll();
      if (i % 500 == 0) {
        ASSERT_EQ(trapline_device_wait(), 1);
      }
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreadCount; ++t) threads.emplace_back(work, t);
  for (auto& thread : threads) thread.join();
  ASSERT_EQ(trapline_device_wait(), 1);
  while (trapline_device_pending() == 1) poll();
  std::size_t bad = 0;
  for (const std::int64_t label : labels) {
    if (label < 10) continue;
    ++bad;
    EXPECT_EQ(reported[label], 1) << label;
  }
  EXPECT_EQ(reported.size(), bad);
  EXPECT_GT(bad, 300U / kFewer);
  EXPECT_LT(highest, std::max(kThreadCount * kLaunches, 9000)) << "slots come back";
}

TEST_F(Slots, AGraphReportsAtEveryReplay) {
  Lane lane, other;
  std::int64_t label = 3;
  fake_cuda_capture_begin(lane.stream);
  const std::int64_t slot = launch(lane, one_label(&label), nullptr, TRAPLINE_LAUNCH_CAPTURING);
  void* graph = fake_cuda_capture_end(lane.stream);
  ASSERT_NE(graph, nullptr);
  ASSERT_GE(slot, 0);
  for (const std::int64_t now : {3, 12, 4, 13, 14}) {
    label = now;
    fake_cuda_replay(graph, other.stream);
    ASSERT_EQ(cuStreamSynchronize(other.stream), 0);
    const auto reports = poll_all();
    ASSERT_EQ(reports.size(), now < 10 ? 0U : 1U);
    if (now < 10) continue;
    EXPECT_EQ(reports[0].slot, slot);
    EXPECT_EQ(reports[0].scan.ivalue, now);
  }
  const std::int64_t good = 0;
  for (int i = 0; i < 3000; ++i) ASSERT_NE(launch(lane, one_label(&good), nullptr), slot);
  ASSERT_EQ(trapline_device_wait(), 1);
}

TEST_F(Slots, MoreSlotsCanBeHadWhileAStreamCaptures) {
  Lane lane, other;
  const std::int64_t bad = 10, good = 0;
  fake_cuda_capture_begin(lane.stream);
  for (int i = 0; i < 2500; ++i) {
    ASSERT_GE(launch(lane, one_label(&bad), nullptr, TRAPLINE_LAUNCH_CAPTURING), 0);
    ASSERT_GE(launch(other, one_label(&good), nullptr), 0);  // its events are queried meanwhile
  }
  EXPECT_EQ(trapline_device_wait(), 1);
  void* graph = fake_cuda_capture_end(lane.stream);
  ASSERT_NE(graph, nullptr) << "a call spoiled the capture";
  EXPECT_EQ(trapline_device_pending(), 0);
  fake_cuda_replay(graph, other.stream);
  ASSERT_EQ(cuStreamSynchronize(other.stream), 0);
  EXPECT_EQ(poll_all().size(), 2500U);
}

TEST_F(Slots, WhatCannotBeLaunchedGivesItsSlotBack) {
  Lane lane;
  const std::int64_t label = 1;
  trapline_device_check check = one_label(&label);
  const std::int64_t slot = trapline_device_reserve(0, lane.stream, 0);
  check.predicate = 200;
  EXPECT_EQ(trapline_device_launch(0, lane.stream, slot, &check, nullptr, nullptr, 0), 0);
  EXPECT_EQ(trapline_device_reserve(0, lane.stream, 0), slot);
  check = one_label(nullptr);
  EXPECT_EQ(trapline_device_launch(0, lane.stream, slot, &check, nullptr, nullptr, 0), 0);
  check = one_label(&label);
  EXPECT_EQ(trapline_device_launch(0, lane.stream, slot, &check, nullptr, nullptr, 0), 0) << "not reserved";
  EXPECT_EQ(trapline_device_launch(0, lane.stream, -1, &check, nullptr, nullptr, 0), 0);
  EXPECT_EQ(trapline_device_launch(0, lane.stream, 1 << 30, &check, nullptr, nullptr, 0), 0);
  EXPECT_EQ(trapline_device_reserve(5, lane.stream, 0), -1);
}

TEST_F(Slots, EachTensorOfAnIndexListReportsItsPlace) {
  Lane lane;
  const std::int64_t size = 2, stride = 1, first[] = {2, -3}, second[] = {0, -5};
  const std::int64_t sizes[] = {3, 4}, strides[] = {4, 1};
  const trapline_tensor list[] = {tensor_arg({first, DType::kInt64, {&size, 1}, {&stride, 1}}).tensor,
                                  tensor_arg({second, DType::kInt64, {&size, 1}, {&stride, 1}}).tensor};
  trapline_arg argument{};
  argument.kind = TRAPLINE_ARG_LIST;
  argument.list_size = 2;
  argument.list = list;
  const trapline_arg bound = tensor_arg({nullptr, DType::kFloat32, sizes, strides});
  trapline_device_check checks[4];
  trapline_scan scan{}, expected{};
  int count = 0;
  ASSERT_EQ(trapline_device_plan(row("index.indices"), &argument, &bound, nullptr, nullptr, checks, 4, &count,
                                 &scan),
            TRAPLINE_PLAN_CHECK);
  ASSERT_EQ(count, 2);
  for (int i = 0; i < count; ++i) ASSERT_GE(launch(lane, checks[i], nullptr), 0);
  ASSERT_EQ(trapline_device_wait(), 1);
  ASSERT_EQ(trapline_check(row("index.indices"), &argument, &bound, nullptr, nullptr, &expected),
            TRAPLINE_VIOLATED);
  const auto reports = poll_all();
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].list_position, 1);
  EXPECT_EQ(reports[0].scan.list_position, expected.list_position);
  EXPECT_EQ(reports[0].scan.ivalue, -5);
  EXPECT_EQ(reports[0].scan.lo, expected.lo);
  EXPECT_EQ(reports[0].scan.first, expected.first);
}

}  // namespace
}  // namespace trapline::cuda_test
