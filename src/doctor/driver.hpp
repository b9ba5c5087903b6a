// The CUDA driver of this machine and its GPUs, asked in a child: a broken driver may hang or crash.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trapline::doctor {

struct Gpu {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  std::uint64_t bytes = 0;
};

struct DriverFacts {
  bool is_there = false;  // the library can be loaded
  std::string library;    // "libcuda.so.1"
  std::string error{};    // why there is none, or why it does not work, in its own words
  int version = 0;        // of the newest CUDA that it serves: 12040; 0: unknown
  std::vector<Gpu> gpus{};
};

// nullopt: no answer in time, or a crash.
std::optional<DriverFacts> ask_driver(double seconds);

}  // namespace trapline::doctor
