// The exit codes of Trapline's own commands. (`run` exits with the program's.)
#pragma once

#include "core/finding.hpp"

namespace trapline::cli {

inline constexpr int kUsageError = 2;  // and any other error of Trapline's own

inline int exit_code_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kClean:
      return 0;
    case Verdict::kFault:
      return 1;
    case Verdict::kUnknown:
      break;
  }
  return 3;
}

}  // namespace trapline::cli
