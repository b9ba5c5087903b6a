// The contracts table: one row per argument of an operation that can be wrong.
//
// To teach Trapline a new operation, add one row in contracts.cpp. The guard enforces the row, `check`
// applies it to files, the report takes its words, the documentation and the tests are generated from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "checks/reason.hpp"
#include "core/cause.hpp"
#include "trapline/types.h"

namespace trapline {

// What must hold for every element of the argument: include/trapline/types.h says each of them.
enum class Predicate : std::uint8_t {
#define TRAPLINE_PREDICATE_ROW(name, NUMBER, judged, heal) k##name = TRAPLINE_PREDICATE_##NUMBER,
#include "contracts/predicates.def"
#undef TRAPLINE_PREDICATE_ROW
};

inline constexpr std::size_t kPredicates = 0
#define TRAPLINE_PREDICATE_ROW(name, NUMBER, judged, heal) +1
#include "contracts/predicates.def"
#undef TRAPLINE_PREDICATE_ROW
    ;

// How an element is judged: predicates.def says each of them.
enum class Judged : std::uint8_t { kNumber, kRange, kOrder, kSum, kWhole };

// What becomes of a bad element in the copy that the operation gets instead.
enum class Heal : std::uint8_t {
  kNone = TRAPLINE_HEAL_NONE,
  kElement = TRAPLINE_HEAL_ELEMENT,
  kRow = TRAPLINE_HEAL_ROW,
  kAll = TRAPLINE_HEAL_ALL,
  kReport = TRAPLINE_HEAL_REPORT,
};

struct PredicateInfo {
  Predicate predicate;
  Judged judged;
  Heal heal;
};

// The row of predicates.def.
const PredicateInfo& info(Predicate predicate);

// What one more argument of the call is for.
enum class Also : std::uint8_t {
  kNone = TRAPLINE_ALSO_NONE,
  kAllowed = TRAPLINE_ALSO_ALLOWED,
  kLengths = TRAPLINE_ALSO_LENGTHS,
  kFlag = TRAPLINE_ALSO_FLAG,
  kBroadcast = TRAPLINE_ALSO_BROADCAST,
  kStep = TRAPLINE_ALSO_STEP,
};

// How the bound of an index is computed from the arguments named by `bound_arg` and `dim_arg`.
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
  std::string_view id;        // "nll_loss_forward.target": operation + "." + argument; stable, unique
  std::string_view op;        // "aten::nll_loss_forward", every overload; "aten::bernoulli.out": that alone
  std::string_view argument;  // as in the operation's schema, and so are the three below; "": none
  std::string_view bound_arg;
  std::string_view dim_arg;  // what says which dimensions of bound_arg bound
  std::string_view also_arg;
  std::string_view public_op;        // "cross_entropy", "x[index]"
  std::string_view public_argument;  // "target"
  Predicate predicate = Predicate::kIndex;
  Bound bound = Bound::kNone;
  Also also = Also::kNone;
  Heal heal = Heal::kElement;
  Dtypes dtypes = Dtypes::kInt64;
  Cause cause = Cause::kIndexOutOfRange;
  OnCpu on_cpu = OnCpu::kRefuses;
  bool device_assert =
      true;                // on CUDA a violation is a device-side assert (otherwise: silent, or a host error)
  bool composite = false;  // decomposed before the backend keys
  bool remember = false;   // no error by itself; kept as the possible origin of a later fault
};

// The rows that no operation of torch has: what `trapline check` and the library's check functions judge data
// by. find_contract finds them; contracts(), from which the guard hooks operations, leaves them out.
std::span<const Contract> data_contracts();

// The table, one contract per operation and argument. Every string_view ends in a NUL.
std::span<const Contract> contracts();

const Contract* find_contract(std::string_view id);

}  // namespace trapline
