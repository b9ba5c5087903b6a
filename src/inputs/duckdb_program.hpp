// DuckDB as a program that is on this machine: its own command, or a Python with its package. It runs the
// statements that it is given in a process of its own, and can write to one file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inputs/reader.hpp"

namespace trapline::inputs {

struct DuckDb {
  std::string path;
  bool python = false;  // that has to import it first
};

// Where DuckDB may be: what TRAPLINE_DUCKDB names ("off": nowhere), else the Python that this program is
// installed in, `python3` and `duckdb` of PATH.
std::vector<DuckDb> duckdb_programs();

// The name under which the program sees the file that it may write to: its standard output, which PyPI's
// package of the command hands on, too.
inline constexpr const char* kDuckDbOutput = "/dev/fd/1";

struct DuckDbRun {
  enum class End : std::uint8_t { kDone, kMissing, kFailed, kStopped };
  End end = End::kDone;
  std::string problem;  // of one that failed, in one line
};

// `statements`: one a line. `output`: an open file, which may grow to `most` bytes. A run that writes nothing
// for a minute is ended, and so is one whose sink was stopped.
DuckDbRun run_duckdb(const DuckDb& program, const std::string& statements, int output, std::uint64_t most,
                     const Sink& sink);

}  // namespace trapline::inputs
