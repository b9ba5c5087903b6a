// The parts of an assertion's line, in every form that CUDA, HIP, SYCL, Triton and libraries print.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "log/events/event.hpp"

namespace trapline {

enum class AssertForm : std::uint8_t {
  kDevice,  // names block and thread, or says that it is device-side
  kKernel,  // names a CUDA source file, without block and thread (DeepEP, Paddle)
  kHost,    // assert() of the C library, THNN on the CPU
};

struct AssertLine {
  AssertForm form = AssertForm::kDevice;
  std::string_view file;  // base name
  std::int64_t line = 0;
  std::string_view kernel, condition;
  bool has_place = false;
  Coordinate block, thread;
};

// Whether the text behind the word "assertion" comes to its end: "failed", or a quotation that is closed.
bool ends_assert(std::string_view text);

// nullopt: no assertion. The views point into `text`.
std::optional<AssertLine> parse_assert(std::string_view text);

// Reads "[12,0,0]" that follows `label` at or after `from`; moves `from` behind it.
bool read_coordinate(std::string_view text, std::string_view label, std::size_t& from, Coordinate& out);

}  // namespace trapline
