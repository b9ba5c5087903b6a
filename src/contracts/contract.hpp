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
#include "trapline/types.h"

namespace trapline {

// What must hold for every element of the argument: include/trapline/types.h says each of them.
enum class Predicate : std::uint8_t {
  kIndex = TRAPLINE_PREDICATE_INDEX,
  kWrappedIndex = TRAPLINE_PREDICATE_WRAPPED_INDEX,
  kIndexList = TRAPLINE_PREDICATE_INDEX_LIST,
  kUnitInterval = TRAPLINE_PREDICATE_UNIT_INTERVAL,
  kNonNegative = TRAPLINE_PREDICATE_NON_NEGATIVE,
  kProbabilityRows = TRAPLINE_PREDICATE_PROBABILITY_ROWS,
  kOffsets = TRAPLINE_PREDICATE_OFFSETS,
  kFiniteToInteger = TRAPLINE_PREDICATE_FINITE_TO_INTEGER,
  kPaddedIndex = TRAPLINE_PREDICATE_PADDED_INDEX,
  kEndedIndex = TRAPLINE_PREDICATE_ENDED_INDEX,
  kPivots = TRAPLINE_PREDICATE_PIVOTS,
  kEnds = TRAPLINE_PREDICATE_ENDS,
  kCounts = TRAPLINE_PREDICATE_COUNTS,
  kLengths = TRAPLINE_PREDICATE_LENGTHS,
  kMaskCount = TRAPLINE_PREDICATE_MASK_COUNT,
  kCompressed = TRAPLINE_PREDICATE_COMPRESSED,
};

// How the bound of an index is computed from the argument named by `bound_arg`.
enum class Bound : std::uint8_t {
  kNone = TRAPLINE_BOUND_NONE,
  kSizeOfDim = TRAPLINE_BOUND_SIZE_OF_DIM,
  kClasses = TRAPLINE_BOUND_CLASSES,
  kLastDim = TRAPLINE_BOUND_LAST_DIM,
  kNumel = TRAPLINE_BOUND_NUMEL,
  kInteger = TRAPLINE_BOUND_INTEGER,
  kProduct = TRAPLINE_BOUND_PRODUCT,
  kMatrixRows = TRAPLINE_BOUND_MATRIX_ROWS,
  kSpatial = TRAPLINE_BOUND_SPATIAL,
  kGrouped = TRAPLINE_BOUND_GROUPED,
};

// The dtypes for which the operation reads the argument; for others its own dtype error has the word.
enum class Dtypes : std::uint8_t { kInt64, kInt32Or64, kInt64OrUInt8, kInteger, kFloating, kInt32, kBool };

// What PyTorch's own operation does on the CPU with a value that violates the row. Where it looks at every
// value that it reads, what it accepts is no fault, and what it says belongs to the finding.
// tests/guard/test_on_cpu.py derives it again from runs.
enum class OnCpu : std::uint8_t {
  kRefuses = TRAPLINE_ON_CPU_REFUSES,
  kPartly = TRAPLINE_ON_CPU_PARTLY,
  kAtEnds = TRAPLINE_ON_CPU_AT_ENDS,
  kSilent = TRAPLINE_ON_CPU_SILENT,
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
