// Errors that have a name and a number: the enumerations of runtimes, drivers, libraries and signals, taken
// from their public headers.
//
// To teach Trapline another one, add its row to a statuses_*.def file. The name is known in a log by itself;
// the number where a form of numbers.def gives it; the text by itself, when it is kAlone, else in a line that
// speaks of the library.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalogue/meanings.hpp"

namespace trapline {

struct WordingRow;

enum class Library : std::uint8_t {
  kCuda,  // cudaError_t and CUresult: where both have a number, it means the same since CUDA 10.1
  kHip,
  kCublas,
  kCudnn,
  kCusparse,
  kCusolver,
  kCufft,
  kCurand,
  kNvrtc,
  kNvjitlink,
  kNccl,
  kNvml,
  kHsa,
  kUr,  // SYCL's unified runtime, and the plug-in interface before it
  kVulkan,
  kMetal,
  kTensorrt,
  kOrt,
  kAscend,
  kRmm,
  kOther,
};

enum class TextStands : std::uint8_t {
  kAlone,   // the text is telling enough by itself
  kInLine,  // it counts in a line that speaks of its library
};

struct StatusRow {  // NOLINT(clang-analyzer-optin.performance.Padding): in the order of a row
  Library library;
  std::int64_t number;    // kNoNumber: it has none
  std::string_view name;  // empty: only a text
  Meaning meaning;
  std::string_view text = {};
  TextStands stands = TextStands::kInLine;
};
inline constexpr std::int64_t kNoNumber = -1;

std::span<const StatusRow> status_rows();

// The row of the library's number; nullptr: it says nothing, or none is known.
const StatusRow* find_status(Library library, std::int64_t number);

// As messages, for the one table of them: a row for each name, and one for each text that stands alone.
std::vector<WordingRow> status_wordings();

}  // namespace trapline
