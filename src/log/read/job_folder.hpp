// A job's folder: besides logs it can hold what guarded processes and torchrun left there. These are no logs,
// and each has a reader of its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "log/line.hpp"

namespace trapline {

enum class JobFile : std::uint8_t {
  kLog,        // anything else: the log reader's business
  kReport,     // finding-*.json, guard-*.json: left by guarded processes
  kErrorFile,  // error.json: torchrun's record of one process's exception
  kSource,     // program text, which quotes messages without any failure
};

// By name alone.
JobFile kind_of_file(std::string_view path);

// torchrun numbers the folders of its processes: .../attempt_0/3/error.json; -1: not such a path.
int rank_of_error_file(std::string_view path);

// Delivers the recorded traceback (else the message) to the sink, as the process would have printed it. False
// when the file is JSON but no error file; an error when it cannot be read.
Result<bool> read_error_file(const std::string& path, LineSink& sink);

}  // namespace trapline
