// What bench/guard measures with; compiled in with -DTRAPLINE_BENCH only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trapline::guard {

double bench_operation(const std::string& name, std::int64_t count);  // ns per call
std::vector<std::string> bench_names();
void record_function_noop(bool on);  // the peer: an empty global RecordFunction callback

}  // namespace trapline::guard
