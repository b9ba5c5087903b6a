// The check kernels on a real device, without torch and without nvcc. One thing per process:
//   gpu_check_test check [cases]  random calls against the host's scans, healed copies included
//   gpu_check_test graph          a captured check reports at every replay
//   gpu_check_test lost           a report is readable after a real device-side assert
//   gpu_check_test cost           host time per check, for the record
// Ends with 0, 1 (and what is wrong), or 77: left out, with why.
#include <chrono>
#include <cstring>
#include <string>

#include "../cuda/random_case.hpp"
#include "driver_calls.hpp"

namespace trapline::gpu {
namespace {

using namespace trapline::cuda_test;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "failed: %s\n", what.c_str());
  std::exit(1);
}
#define HOLDS(what) \
  if (!(what)) fail(#what)

// Device memory that grows to what is asked for and is never given back: allocating may wait for the device.
struct DeviceMemory {
  DevicePointer get(std::size_t bytes) {
    if (bytes <= size) return address;
    size = bytes * 2;
    MUST(calls().mem_alloc(&address, size));
    return address;
  }
  DevicePointer address = 0;
  std::size_t size = 0;
};

struct Lane {
  Lane() {
    MUST(calls().stream_create(&stream, 1));
    MUST(calls().memset_bytes(scratch.get(64 * 1024), 0, 64 * 1024, stream));
  }
  void wait() const { MUST(calls().stream_synchronize(stream)); }

  Handle stream = nullptr;
  DeviceMemory scratch, data, healed, lengths;
};

void* pointer(DevicePointer address) { return reinterpret_cast<void*>(address); }

// Copies the memory that the view spans. Returns the address of its first element.
DevicePointer upload(Lane& lane, const TensorView& view) {
  const auto width = static_cast<std::int64_t>(size_of(view.dtype));
  std::int64_t lowest = 0, highest = 0;
  for (std::size_t d = 0; d < view.sizes.size(); ++d) {
    const std::int64_t reach = (view.sizes[d] - 1) * view.strides[d];
    (reach < 0 ? lowest : highest) += reach;
  }
  const auto bytes = static_cast<std::size_t>((highest - lowest + 1) * width);
  const DevicePointer base = lane.data.get(bytes);
  MUST(
      calls().copy_to_device(base, static_cast<const char*>(view.data) + lowest * width, bytes, lane.stream));
  return base + static_cast<DevicePointer>(-lowest * width);
}

std::int64_t launch(Lane& lane, const trapline_device_check& check, void* healed, int flags) {
  const std::int64_t slot = trapline_device_reserve(0, lane.stream, flags);
  if (slot < 0) fail(std::string("reserve: ") + trapline_device_why());
  void* scratch = trapline_device_scratch(&check, flags) > 0 ? pointer(lane.scratch.address) : nullptr;
  return trapline_device_launch(0, lane.stream, slot, &check, healed, scratch, flags) == 1 ? slot : -1;
}

// "" when the device found what the host found.
std::string run_case(const Case& one, Lane& lane, bool capturing, bool wants_copy) {
  trapline_scan expected{}, known{};
  const int verdict = one.check_on_host(one.argument, expected);
  trapline_device_check check{};
  int count = 0;
  const int planned = trapline_device_plan(one.contract(), &one.argument, &one.bound, &one.dim, &one.also,
                                           &check, 1, &count, &known);
  if (planned != TRAPLINE_PLAN_CHECK) return "";
  check.data = pointer(upload(lane, one.view.view()));
  if (check.lengths != nullptr) {
    const std::size_t bytes = one.lengths.size() * sizeof(std::int64_t);
    check.lengths = pointer(lane.lengths.get(bytes));
    MUST(calls().copy_to_device(lane.lengths.address, one.lengths.data(), bytes, lane.stream));
  }
  const bool with_copy = wants_copy && check.heal != TRAPLINE_HEAL_NONE;
  const std::size_t bytes = static_cast<std::size_t>(check.numel) * size_of(one.view.view().dtype);
  void* healed = with_copy ? pointer(lane.healed.get(bytes)) : nullptr;
  // The flag only: one block and no scratch, as in a graph.
  const std::int64_t slot = launch(lane, check, healed, capturing ? TRAPLINE_LAUNCH_CAPTURING : 0);
  if (slot < 0) return "not launched";
  if (trapline_device_wait_stream(0, lane.stream) != 1) return "the wait failed";
  if (capturing) lane.wait();
  trapline_device_report reports[2];
  const int found = trapline_device_poll(reports, 2);
  if (found != (verdict == TRAPLINE_VIOLATED ? 1 : 0)) return std::to_string(found) + " reports";
  if (found == 1 && reports[0].slot != slot) return "a report of another launch";
  if (found == 1) {
    if (std::string text = difference(reports[0].scan, expected); !text.empty()) return text;
  }
  if (!with_copy || verdict == TRAPLINE_NOT_APPLICABLE) return "";
  std::vector<char> copy(bytes);
  MUST(calls().copy_to_host(copy.data(), lane.healed.address, bytes, lane.stream));
  lane.wait();
  return healed_problem(one, check, expected, copy.data());
}

void run_checks(int cases) {
  Lane lane;
  int ran = 0, bad = 0;
  for (const Spec& spec : kSpecs) {
    Random random(static_cast<std::uint64_t>(&spec - kSpecs) + 101);
    for (int i = 0; i < cases;) {
      const auto most = static_cast<std::int64_t>(spec.dtypes.size()) - 1;
      RandomView view(random, spec.dtypes[static_cast<std::size_t>(between(random, 0, most))]);
      if (!spec.takes(view.view())) continue;
      ++i;
      const Case one(random, spec, std::move(view));
      const std::string problem = run_case(one, lane, between(random, 0, 9) == 0, between(random, 0, 3) != 0);
      if (!problem.empty()) {
        fail(std::string(spec.id) + ", case " + std::to_string(i) + ", " + one.view.describe() + ": " +
             problem);
      }
      trapline_scan scan{};
      bad += one.check_on_host(one.argument, scan) == TRAPLINE_VIOLATED ? 1 : 0;
      ++ran;
    }
  }
  std::printf("check: %d calls, %d of them with bad elements: the device found what the host found\n", ran,
              bad);
}

// One label in [0, 10), in device memory.
trapline_device_check one_label(Lane& lane, std::int64_t label) {
  static const std::int64_t kSizes[] = {10, 1}, kStrides[] = {1, 1}, kOne = 1;
  const trapline_arg argument = tensor_arg({&kOne, DType::kInt64, {&kOne, 1}, {&kOne, 1}});
  const trapline_arg bound = tensor_arg({nullptr, DType::kFloat32, kSizes, kStrides});
  trapline_device_check check{};
  trapline_scan scan{};
  int count = 0;
  HOLDS(trapline_device_plan(find_row("embedding.indices"), &argument, &bound, nullptr, nullptr, &check, 1,
                             &count, &scan) == TRAPLINE_PLAN_CHECK);
  check.data = pointer(lane.data.get(sizeof(label)));
  MUST(calls().copy_to_device(lane.data.address, &label, sizeof(label), lane.stream));
  lane.wait();
  return check;
}

void run_graph() {
  const Calls& driver = calls();
  if (driver.begin_capture == nullptr || driver.end_capture == nullptr ||
      driver.graph_instantiate == nullptr || driver.graph_launch == nullptr) {
    leave_out("the CUDA driver has no graphs");
  }
  Lane lane;
  const trapline_device_check check = one_label(lane, 3);
  Handle graph = nullptr, executable = nullptr;
  MUST(driver.begin_capture(lane.stream, 0));
  std::int64_t slot = -1;
  for (int i = 0; i < 1500; ++i)
    slot = launch(lane, check, nullptr, TRAPLINE_LAUNCH_CAPTURING);  // maps more slots
  MUST(driver.end_capture(lane.stream, &graph));
  HOLDS(slot >= 0);
  MUST(driver.graph_instantiate(&executable, graph, 0));
  std::vector<trapline_device_report> reports(2000);
  for (const std::int64_t label : {std::int64_t{3}, std::int64_t{12}, std::int64_t{4}, std::int64_t{13}}) {
    one_label(lane, label);
    MUST(driver.graph_launch(executable, lane.stream));
    lane.wait();
    const int found = trapline_device_poll(reports.data(), 2000);
    HOLDS(found == (label < 10 ? 0 : 1500));
    for (int i = 0; i < found; ++i) HOLDS(reports[static_cast<std::size_t>(i)].scan.ivalue == label);
  }
  std::printf("graph: every replay was reported, and slots were mapped during capture\n");
}

// assert(false) as a device compiler writes it.
constexpr const char* kAssertPtx = R"(.version 6.0
.target sm_50
.address_size 64
.extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 message[6] = {102, 97, 108, 115, 101, 0};
.visible .entry trapline_assert()
{
 .reg .b64 %rd<3>;
 .reg .b32 %r<2>;
 mov.u64 %rd1, message;
 cvta.global.u64 %rd1, %rd1;
 mov.u32 %r1, 1;
 mov.u64 %rd2, 1;
 {
 .param .b64 p0;
 .param .b64 p1;
 .param .b32 p2;
 .param .b64 p3;
 .param .b64 p4;
 st.param.b64 [p0], %rd1;
 st.param.b64 [p1], %rd1;
 st.param.b32 [p2], %r1;
 st.param.b64 [p3], %rd1;
 st.param.b64 [p4], %rd2;
 call.uni __assertfail, (p0, p1, p2, p3, p4);
 }
 ret;
}
)";

void run_lost() {
  Lane lane;
  const trapline_device_check check = one_label(lane, 77);
  Handle module = nullptr, function = nullptr;
  if (calls().module_load_data(&module, kAssertPtx) != 0 ||
      calls().module_get_function(&function, module, "trapline_assert") != 0) {
    leave_out("the driver does not load a kernel that asserts");
  }
  const std::int64_t slot = launch(lane, check, nullptr, 0);
  HOLDS(slot >= 0);
  MUST(calls().launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, lane.stream, nullptr, nullptr));
  const int result = calls().stream_synchronize(lane.stream);
  std::printf("lost: the stream says %d after the assert (710 is CUDA_ERROR_ASSERT)\n", result);
  HOLDS(result != 0);
  HOLDS(trapline_device_pending() == 1);
  trapline_device_report report;
  HOLDS(trapline_device_poll(&report, 1) == 1);
  HOLDS(report.slot == slot);
  HOLDS(report.scan.ivalue == 77);
  HOLDS(report.scan.bad == 1);
  HOLDS(trapline_device_wait() == 0);
  HOLDS(trapline_device_reserve(0, lane.stream, 0) == -1);
  std::printf("lost: the report of the check before it was readable and right\n");
}

void run_cost() {
  Lane lane;
  const trapline_device_check check = one_label(lane, 3);
  constexpr int kRounds = 7, kLaunches = 500;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) HOLDS(launch(lane, check, nullptr, 0) >= 0);
    const std::chrono::duration<double, std::micro> host = std::chrono::steady_clock::now() - start;
    lane.wait();
    const std::chrono::duration<double, std::micro> all = std::chrono::steady_clock::now() - start;
    std::printf("cost: %.2f us of host time per check, %.2f us until all had run\n", host.count() / kLaunches,
                all.count() / kLaunches);
  }
}

}  // namespace
}  // namespace trapline::gpu

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "check";
  trapline::gpu::calls();
  if (trapline_device_ready(0) != 1) {
    std::fprintf(stderr, "failed: %s\n", trapline_device_why());
    return 1;
  }
  if (mode == "check") {
    trapline::gpu::run_checks(argc > 2 ? std::atoi(argv[2]) : 300);
  } else if (mode == "graph") {
    trapline::gpu::run_graph();
  } else if (mode == "lost") {
    trapline::gpu::run_lost();
  } else if (mode == "cost") {
    trapline::gpu::run_cost();
  } else {
    std::fprintf(stderr, "usage: gpu_check_test [check [cases] | graph | lost | cost]\n");
    return 2;
  }
}
