// What an error of a runtime, a driver, a library or an allocator means to the person who reads it, whatever
// its own words are: the cause, what else it may be, and what to do. Hundreds of messages share a few dozen.
//
// To teach Trapline a new meaning, add one row to meanings.def.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "catalogue/kinds.hpp"
#include "core/cause.hpp"
#include "core/finding.hpp"

namespace trapline {

enum class Meaning : std::uint8_t {
  kOwn,  // the row says it all itself
#define TRAPLINE_MEANING(name, ...) name,
#include "catalogue/meanings.def"
#undef TRAPLINE_MEANING
};

struct MeaningRow {
  static constexpr std::size_t kMost = 3;

  Meaning meaning = Meaning::kOwn;
  WordingKind kind = WordingKind::kContext;
  Cause cause = Cause::kInsufficientEvidence;
  Certainty certainty = Certainty::kUnknown;
  Device device_assert = Device::kNo;
  std::array<Cause, kMost> also = {};             // what else it may be, the likelier first ...
  std::size_t also_count = 0;                     // ... and how many of them there are
  std::array<std::string_view, kMost> help = {};  // lines; empty: those of the cause

  std::span<const Cause> others() const { return {also.data(), also_count}; }
};

// nullptr for kOwn.
const MeaningRow* find_meaning(Meaning meaning);

}  // namespace trapline
