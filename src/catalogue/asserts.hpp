// Device-side assertions: one row per place in the source whose line a log can show.
//
// To teach Trapline another one, add its row to asserts_torch.def (PyTorch) or asserts_other.def.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/cause.hpp"
#include "core/finding.hpp"

namespace trapline {

enum class Reach : std::uint8_t {
  kUser,      // a user's values can make it fail
  kRare,      // only in unusual calls
  kInternal,  // an invariant of the library
};

// How block and thread of the line name the element of the argument.
enum class Mapping : std::uint8_t {
  kNone,           // they do not
  kOnly,           // there is one element
  kBlock,          // element = block
  kThread,         // element = thread
  kBlockOf1024,    // element = block * 1024 + thread
  kModulo32,       // element mod 32 = thread
  kModuloThreads,  // element mod (threads of the block) = thread
  kFourPerThread,  // element is one of 512 * block + thread + {0, 128, 256, 384}
};

struct AssertRow {
  std::string_view file;      // base name; empty: any
  std::string_view lines;     // "92" or "56|57|59"; empty: not known
  std::string_view versions;  // that print it, and how that is known
  std::string_view kernel;    // without template arguments and parameters; empty: any
  std::string_view
      condition;        // between the quotes of the line, or its beginning; empty: the program's own words
  std::string_view op;  // public name
  std::string_view argument;
  std::string_view valid;  // range in words
  Cause cause;
  Certainty certainty;  // of the cause, when the line is complete
  Reach reach;
  Mapping mapping;
  std::string_view mapping_text;
  std::string_view sample;  // a whole line; tests run it
};

std::span<const AssertRow> assert_rows();

// What could be read of an assertion line. Empty and 0: not legible.
struct AssertSite {
  std::string_view file;  // base name
  std::int64_t line = 0;
  std::string_view kernel;
  std::string_view condition;
};

struct AssertMatch {
  const AssertRow* row = nullptr;
  bool by_condition = false;  // else by its place or kernel alone: every row there agrees on the cause
};

// The row that fits best; none when the text is of no known assertion, or when the rows that it could be do
// not agree on the cause.
AssertMatch find_assert(const AssertSite& site);

// Whether a file is one of PyTorch's or of another project in the table.
bool is_known_assert_file(std::string_view base_name);

// "IndexKernel.cu" of a path with either kind of slash; HIP and SYCL names become the CUDA ones.
std::string_view base_name(std::string_view path);

}  // namespace trapline
