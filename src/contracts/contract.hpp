// The contracts table: one row per argument of an operation that can be wrong.
//
// To teach Trapline a new operation, add one row in contracts.cpp. The guard enforces the row, `check`
// applies it to files, the report takes its words, the documentation and the tests are generated from it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "checks/reason.hpp"
#include "core/cause.hpp"

namespace trapline {

// What must hold for every element of the argument. The numbers are part of the C interface: append only.
enum class Predicate : std::uint8_t {
  kIndex,            // integer in [0, bound), or the value of `also_arg`
  kWrappedIndex,     // integer in [-bound, bound): negative values count from the end
  kIndexList,        // a list as in x[i, None, j]: each integer tensor is a wrapped index of its dimension
  kUnitInterval,     // number in [0, 1]; NaN is bad
  kNonNegative,      // number >= 0; NaN is bad
  kProbabilityRows,  // rows of the last dimension: finite, >= 0, sum > 0
  kOffsets,          // integers: first is 0, ascending, none beyond bound
  kFiniteToInteger,  // floating point elements that are about to become integers: finite
  kPaddedIndex,      // integer in [0, bound) in the first `also_arg`[row] elements of each row; the rest is
                     // padding
  kEndedIndex,       // integer in [0, bound) up to the first -1 of its row; the rest is padding
  kPivots,           // integer in [1, bound]: LAPACK counts rows from 1
  kEnds,             // integers in [0, bound], ascending in each row: where groups end
  kCounts,           // integers >= 0; their sum is the bound where there is one
  kLengths,          // integers >= 0; the sum of each row is at most the bound
  kMaskCount,   // bool mask: as many elements as `bound` has are left when it is broadcast with `also_arg`
  kCompressed,  // integers: of each row the first is 0, each next one larger by 0 to `also_arg`, the last is
                // the bound: the compressed indices of a sparse tensor
};

// How the bound of an index is computed from the argument named by `bound_arg`. Append only, as above.
enum class Bound : std::uint8_t {
  kNone,
  kSizeOfDim,   // its size in the dimension that `dim_arg` names; without dim_arg: dimension 0
  kClasses,     // its size in dimension 1, or 0 when it has one dimension: the classes of a loss
  kLastDim,     // its size in the last dimension
  kNumel,       // its number of elements
  kInteger,     // bound_arg is an integer and is the bound itself; -1: unbounded (one_hot)
  kProduct,     // bound_arg is a list of integers: their product (the output size of a pooling)
  kMatrixRows,  // its size in the last dimension but one: the rows of a matrix
  kSpatial,     // the product of its last n sizes, n = integers in the list `also_arg`: a pooling's input
  kGrouped,     // the dimension of bound_arg and `also_arg` that a grouped matrix product cuts into groups
};

// The dtypes for which the operation reads the argument; for others its own dtype error has the word.
enum class Dtypes : std::uint8_t { kInt64, kInt32Or64, kInt64OrUInt8, kInteger, kFloating, kInt32, kBool };

// What PyTorch's own operation does on the CPU with a value that violates the row. Where it looks at every
// value that it reads, what it accepts is no fault, and what it says belongs to the finding. Append only, as
// above; tests/guard/test_on_cpu.py derives it again from runs.
enum class OnCpu : std::uint8_t {
  kRefuses,  // throws
  kPartly,   // throws for some values and takes others for what they are not; touches no memory but its own
  kAtEnds,   // throws for the first and for the last element; reads wherever those between them say
  kSilent,   // reads or writes wherever the value says, or computes garbage: never to be run with it
};

struct Contract {
  std::string_view id;         // "nll_loss_forward.target": op + "." + argument; stable, unique
  std::string_view op;         // ATen base name, without overload; "bernoulli.out": that alone
  std::string_view argument;   // ATen argument name
  std::string_view bound_arg;  // ATen argument name, "" when not needed
  std::string_view dim_arg;    // the int that names the dimension of bound_arg
  std::string_view also_arg;   // the int that is allowed besides the range; the lengths of kPaddedIndex;
                               // kPivots: the flag without which none is read
  std::string_view public_op;  // "cross_entropy", "x[index]"
  std::string_view public_argument;  // "target"
  Predicate predicate = Predicate::kIndex;
  Bound bound = Bound::kNone;
  Dtypes dtypes = Dtypes::kInt64;
  Cause cause = Cause::kIndexOutOfRange;
  OnCpu on_cpu = OnCpu::kRefuses;
  bool device_assert =
      true;                // on CUDA a violation is a device-side assert (otherwise: silent, or a host error)
  bool composite = false;  // decomposed before the backend keys
  bool remember = false;   // no error by itself; kept as the possible origin of a later fault
  bool waits = false;      // no value in a bad one's place is harmless: a check on a device is waited for
};

// The elements of `also_arg` decide, not only its kind, its sizes or its integer. Whoever has that argument
// elsewhere than the checked one has to bring it there only then.
constexpr bool reads_also(const Contract& row) { return row.predicate == Predicate::kPaddedIndex; }

// The rows that no operation of torch has: what `trapline check` and the library's check functions judge data
// by. find_contract finds them; contracts(), from which the guard hooks operations, leaves them out.
std::span<const Contract> data_contracts();

// The table, one contract per ATen base name and argument. Every string_view ends in a NUL.
std::span<const Contract> contracts();

const Contract* find_contract(std::string_view id);

}  // namespace trapline
