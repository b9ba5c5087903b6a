// The contracts table: one row per argument of an operation that can be wrong.
//
// To teach Trapline a new operation, add one row in contracts.cpp. The guard enforces the row, `check` applies it to
// files, the report takes its words, the documentation and the tests are generated from it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "checks/reason.hpp"
#include "core/cause.hpp"

namespace trapline {

// What must hold for every element of the argument.
enum class Predicate : std::uint8_t {
  kIndex,            // integer in [0, bound), or the value of `also_arg`
  kWrappedIndex,     // integer in [-bound, bound): negative values count from the end
  kIndexList,        // a list as in x[i, None, j]: each integer tensor is a wrapped index of its dimension
  kUnitInterval,     // number in [0, 1]; NaN is bad
  kNonNegative,      // number >= 0; NaN is bad
  kProbabilityRows,  // rows of the last dimension: finite, >= 0, sum > 0
  kOffsets,          // integers: first is 0, ascending, none beyond bound
  kFiniteToInteger,  // floating point elements that are about to become integers: finite
};

// How the bound of an index is computed from the tensor named by `bound_arg`.
enum class Bound : std::uint8_t {
  kNone,
  kSizeOfDim,     // its size in the dimension that `dim_arg` names; without dim_arg: dimension 0
  kClasses,       // its size in dimension 1, or 0 when it has one dimension: the classes of a loss
  kLastDim,       // its size in the last dimension
  kNumel,         // its number of elements
  kInteger,       // bound_arg is an integer and is the bound itself (num_classes, num_weights)
};

struct Contract {
  std::string_view id;               // "nll_loss_forward.target"; stable, unique
  std::string_view op;               // ATen base name, without overload
  std::string_view argument;         // ATen argument name
  Predicate predicate;
  Bound bound;
  std::string_view bound_arg;        // ATen argument name, "" when not needed
  std::string_view dim_arg;
  std::string_view also_arg;
  std::string_view public_op;        // "cross_entropy", "x[index]"
  std::string_view public_argument;  // "target"
  Cause cause;
  bool device_assert;                // on CUDA a violation is a device-side assert (otherwise: silent, or a host error)
  bool composite = false;            // decomposed before the backend keys
  bool remember = false;             // no error by itself; kept as the possible origin of a later fault
};

std::span<const Contract> contracts();
const Contract* find_contract(std::string_view id);

}  // namespace trapline
