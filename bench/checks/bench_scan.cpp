// What a scan costs: 64 MiB against a plain sum of the same bytes and against the scalar reference, and 16
// elements, the size at which the guard's budget per call is tight.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "checks/reference.hpp"
#include "checks/scan.hpp"

namespace trapline {
namespace {

constexpr std::int64_t kClasses = 1000;

template <class T>
struct Tensor {
  std::vector<T> data;
  std::array<std::int64_t, 1> sizes;
  std::array<std::int64_t, 1> strides{1};

  explicit Tensor(std::int64_t n) : data(static_cast<std::size_t>(n)), sizes{n} {
    for (std::size_t i = 0; i < data.size(); ++i) {
      const auto step = static_cast<std::int64_t>(i * 7919 % kClasses);
      data[i] = static_cast<T>(step) / static_cast<T>(std::is_floating_point_v<T> ? kClasses : 1);
    }
  }
  TensorView view() const {
    constexpr DType kType = std::is_floating_point_v<T> ? DType::kFloat32 : DType::kInt64;
    return {data.data(), kType, sizes, strides};
  }
};

template <class T, class Work>
void run(benchmark::State& state, Work&& work) {
  const Tensor<T> tensor(state.range(0));
  const TensorView view = tensor.view();
  for (auto _ : state) {
    const TensorView* borrowed = &view;
    benchmark::DoNotOptimize(borrowed);  // the compiler may not see that the view stays the same
    benchmark::DoNotOptimize(work(*borrowed, tensor.data));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * static_cast<std::int64_t>(sizeof(T)));
}

// Eight sums, so that the loop waits for memory and not for its own additions.
template <class T>
T sum(const std::vector<T>& data) {
  std::array<T, 8> sums{};
  for (std::size_t i = 0; i + 8 <= data.size(); i += 8) {
    for (std::size_t k = 0; k < 8; ++k) sums[k] += data[i + k];
  }
  T total{};
  for (const T part : sums) total += part;
  return total;
}

void ReadSumInt64(benchmark::State& state) {
  run<std::int64_t>(state, [](const TensorView&, const auto& data) { return sum(data); });
}
void IndexSimd(benchmark::State& state) {
  run<std::int64_t>(state,
                    [](const TensorView& v, const auto&) { return scan_index(v, 0, kClasses, {}).bad; });
}
void IndexAlsoSimd(benchmark::State& state) {
  run<std::int64_t>(state,
                    [](const TensorView& v, const auto&) { return scan_index(v, 0, kClasses, -100).bad; });
}
void IndexReference(benchmark::State& state) {
  run<std::int64_t>(
      state, [](const TensorView& v, const auto&) { return reference::scan_index(v, 0, kClasses, {}).bad; });
}
void ReadSumFloat32(benchmark::State& state) {
  run<float>(state, [](const TensorView&, const auto& data) { return sum(data); });
}
void IntervalSimd(benchmark::State& state) {
  run<float>(state, [](const TensorView& v, const auto&) { return scan_interval(v, 0, 1).bad; });
}
void IntervalReference(benchmark::State& state) {
  run<float>(state, [](const TensorView& v, const auto&) { return reference::scan_interval(v, 0, 1).bad; });
}

constexpr std::int64_t kBig = 64 << 20;  // bytes
BENCHMARK(ReadSumInt64)->Arg(kBig / 8);
BENCHMARK(IndexSimd)->Arg(kBig / 8)->Arg(16)->Arg(64)->Arg(256)->Arg(4096);
BENCHMARK(IndexAlsoSimd)->Arg(kBig / 8)->Arg(16)->Arg(64)->Arg(256)->Arg(4096);
BENCHMARK(IndexReference)->Arg(kBig / 8)->Arg(16);
BENCHMARK(ReadSumFloat32)->Arg(kBig / 4);
BENCHMARK(IntervalSimd)->Arg(kBig / 4)->Arg(16)->Arg(64)->Arg(256)->Arg(4096);
BENCHMARK(IntervalReference)->Arg(kBig / 4)->Arg(16);

}  // namespace
}  // namespace trapline
