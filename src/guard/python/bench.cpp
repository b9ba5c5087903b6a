// Loops in C++, so that bench/guard measures operations and not Python's calls of them. Only in the benchmark
// build.
#ifdef TRAPLINE_BENCH
#include "guard/python/bench.hpp"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <time.h>

#include <functional>
#include <map>
#include <string>

namespace trapline::guard {
namespace {

using at::Tensor;

std::map<std::string, std::function<void()>> operations() {
  const Tensor table = at::randn({1000, 8}), rows = at::randint(0, 1000, {16}, at::kLong);
  const Tensor scores = at::randn({16, 10}).log_softmax(1), labels = at::randint(0, 10, {16}, at::kLong);
  const Tensor line = at::randn({16}), index = at::randint(0, 16, {16}, at::kLong), unit = at::rand({16});
  const Tensor weight = at::full({}, 16.0), one = at::ones({});
  const Tensor numbers = at::randint(0, 9, {16}, at::kLong), target = at::zeros({16});
  const c10::List<c10::optional<Tensor>> list({c10::optional<Tensor>(index)});
  return {
      {"embedding", [=] { at::embedding(table, rows); }},
      {"nll_loss_forward", [=] { at::nll_loss_forward(scores, labels, {}, 1, -100); }},
      {"nll_loss_backward", [=] { at::nll_loss_backward(one, scores, labels, {}, 1, -100, weight); }},
      {"index_select", [=] { at::index_select(line, 0, index); }},
      {"gather", [=] { at::gather(line, 0, index); }},
      {"index", [=] { at::index(line, list); }},
      {"scatter_add", [=] { at::scatter_add(line, 0, index, unit); }},
      {"index_put_", [=] { at::index_put_(const_cast<Tensor&>(target), list, unit); }},
      {"take", [=] { at::take(line, index); }},
      {"bce", [=] { at::binary_cross_entropy(unit, unit); }},
      {"one_hot", [=] { at::one_hot(labels, 10); }},
      {"copy_", [=] { const_cast<Tensor&>(target).copy_(unit); }},
      {"float->long", [=] { unit.to(at::kLong); }},
      {"add", [=] { at::add(line, unit); }},
      {"view",
       [=] {
         line.view({4, 4});
       }},
  };
}

// CPU time of this thread in ns: what other processes take of the machine is not in it.
double thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace

double bench_operation(const std::string& name, std::int64_t count) {
  static const auto all = operations();
  const std::function<void()>& run = all.at(name);
  for (std::int64_t i = 0; i < count / 10; ++i) run();
  const double start = thread_time();
  for (std::int64_t i = 0; i < count; ++i) run();
  return (thread_time() - start) / static_cast<double>(count);
}

std::vector<std::string> bench_names() {
  std::vector<std::string> names;
  for (const auto& [name, run] : operations()) names.push_back(name);
  return names;
}

void record_function_noop(bool on) {
  static at::CallbackHandle handle = 0;
  if (on && handle == 0) {
    handle = at::addGlobalCallback(at::RecordFunctionCallback([](const at::RecordFunction&) {
                                     return std::unique_ptr<at::ObserverContext>();
                                   }).scopes({at::RecordScope::FUNCTION}));
  } else if (!on && handle != 0) {
    at::removeCallback(handle);
    handle = 0;
  }
}

}  // namespace trapline::guard
#endif
