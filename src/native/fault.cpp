// From a fault in a C++ program to a finding, its report file and its headline.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "jsonio/scalar.hpp"
#include "native/stack.hpp"
#include "trapline/native.h"

namespace trapline::native {
namespace {

using nlohmann::json;

constexpr int kMostFindings = 20;                              // of one process
constexpr std::int64_t kMostElements = std::int64_t{1} << 24;  // looked at for the distinct bad values
constexpr std::size_t kMostValues = 16;
constexpr int kStopped = 65;  // EX_DATAERR, as --on-fault stop has it

json scan_facts(const trapline_scan& scan) {
  const bool real = scan.is_float != 0;
  json facts{{"bad", scan.bad},
             {"total", scan.total},
             {"first", scan.first},
             {"value", real ? jsonio::to_json(scan.fvalue) : jsonio::to_json(scan.ivalue)},
             {"min", real ? jsonio::to_json(scan.fmin) : jsonio::to_json(scan.imin)},
             {"max", real ? jsonio::to_json(scan.fmax) : jsonio::to_json(scan.imax)},
             {"lo", jsonio::to_json(scan.lo)},
             {"hi", jsonio::to_json(scan.hi)},
             {"reason", scan.reason},
             {"is_float", real}};
  if (scan.has_also != 0) facts["also"] = jsonio::to_json(scan.also);
  if (scan.list_position >= 0) facts["list_position"] = scan.list_position;
  return facts;
}

const char* dtype_name(std::int32_t dtype) {
  static constexpr const char* kNames[] = {"bool",  "uint8",   "int8",     "int16",   "int32",
                                           "int64", "float16", "bfloat16", "float32", "float64"};
  return dtype >= 0 && dtype < static_cast<std::int32_t>(std::size(kNames)) ? kNames[dtype] : "other";
}

json tensor_facts(const trapline_tensor& tensor, const char* device) {
  return {{"shape", std::vector<std::int64_t>(tensor.sizes, tensor.sizes + std::max(tensor.dim, 0))},
          {"dtype", dtype_name(tensor.dtype)},
          {"device", device}};
}

json argument_facts(const trapline_native_arg& argument) {
  switch (argument.value.kind) {
    case TRAPLINE_ARG_TENSOR:
      return tensor_facts(argument.value.tensor, argument.device);
    case TRAPLINE_ARG_INT:
      return jsonio::to_json(argument.value.integer);
    case TRAPLINE_ARG_LIST: {
      json list = json::array();
      for (int i = 0; i < argument.value.list_size; ++i) {
        const trapline_tensor& tensor = argument.value.list[i];
        list.push_back(tensor.dim < 0 ? json() : tensor_facts(tensor, argument.device));
      }
      return list;
    }
    case TRAPLINE_ARG_SIZES:
      return std::vector<std::int64_t>(argument.value.tensor.sizes,
                                       argument.value.tensor.sizes + argument.value.tensor.dim);
    default:
      return {};
  }
}

std::vector<std::int64_t> unravel(std::int64_t position, const trapline_tensor& tensor) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(tensor.dim));
  for (int d = tensor.dim - 1; d >= 0; --d) {
    index[static_cast<std::size_t>(d)] = position % std::max<std::int64_t>(tensor.sizes[d], 1);
    position /= std::max<std::int64_t>(tensor.sizes[d], 1);
  }
  return index;
}

template <class T>
std::int64_t load(const void* data, std::int64_t offset) {
  return static_cast<std::int64_t>(static_cast<const T*>(data)[offset]);
}

std::int64_t integer_at(const trapline_tensor& tensor, std::int64_t position) {
  std::int64_t offset = 0;
  const auto index = unravel(position, tensor);
  for (int d = 0; d < tensor.dim; ++d) offset += index[static_cast<std::size_t>(d)] * tensor.strides[d];
  switch (tensor.dtype) {
    case TRAPLINE_UINT8:
      return load<std::uint8_t>(tensor.data, offset);
    case TRAPLINE_INT8:
      return load<std::int8_t>(tensor.data, offset);
    case TRAPLINE_INT16:
      return load<std::int16_t>(tensor.data, offset);
    case TRAPLINE_INT32:
      return load<std::int32_t>(tensor.data, offset);
    default:
      return load<std::int64_t>(tensor.data, offset);
  }
}

// Distinct bad values with their counts, most frequent first; only integers with a range tell them.
json bad_values(const trapline_tensor& tensor, const trapline_scan& scan) {
  if (scan.bad == 1)
    return {{scan.is_float != 0 ? jsonio::to_json(scan.fvalue) : jsonio::to_json(scan.ivalue), 1}};
  if (scan.is_float != 0 || tensor.data == nullptr || scan.total > kMostElements) return json::array();
  std::map<std::int64_t, std::int64_t> counts;
  std::int64_t seen = 0;
  for (std::int64_t i = 0; i < scan.total; ++i) {
    const std::int64_t value = integer_at(tensor, i);
    if ((value >= scan.lo && value < scan.hi) || (scan.has_also != 0 && value == scan.also)) continue;
    ++counts[value];
    ++seen;
  }
  if (seen != scan.bad) return json::array();  // the scan counts something else than single elements
  std::vector<std::pair<std::int64_t, std::int64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::ranges::greater{}, [](const auto& pair) { return pair.second; });
  json values = json::array();
  for (std::size_t i = 0; i < std::min(sorted.size(), kMostValues); ++i)
    values.push_back({jsonio::to_json(sorted[i].first), sorted[i].second});
  return values;
}

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name[0] == '\0' ? "localhost" : name;
}

std::string file_part(std::string name) {
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0 && !std::strchr("-_.", c); }, '_');
  return name;
}

json process_facts(const char* device) {
  json facts{{"host", host_name()}, {"pid", ::getpid()}, {"device", device}};
  for (const char* variable :
       {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK"}) {
    const char* value = std::getenv(variable);
    char* end = nullptr;
    const long rank = value == nullptr ? -1 : std::strtol(value, &end, 10);
    if (rank < 0 || end == value || *end != '\0') continue;
    facts["rank"] = rank;
    break;
  }
  return facts;
}

json collect(const trapline_native_fault& fault) {
  const trapline_native_arg& offender = fault.argument[fault.offender];
  const bool in_list = offender.value.kind == TRAPLINE_ARG_LIST;
  const int position = fault.scan->list_position;
  const trapline_tensor& tensor =
      in_list && position >= 0 ? offender.value.list[position] : offender.value.tensor;
  json facts{{"kind", "violation"},
             {"contract", fault.row->id},
             {"device", offender.device},
             {"scan", scan_facts(*fault.scan)},
             {"tensor", tensor_facts(tensor, offender.device)},
             {"values", bad_values(tensor, *fault.scan)},
             {"process", process_facts(offender.device)}};
  if (fault.scan->first >= 0) facts["index"] = unravel(fault.scan->first, tensor);
  json& arguments = facts["args"] = json::object();
  for (int i = 0; i < fault.arguments; ++i) {
    json value = argument_facts(fault.argument[i]);
    if (!value.is_null()) arguments[fault.argument[i].name] = std::move(value);
  }
  const Stack stack = capture_stack(fault.row->public_op);
  facts["stack"] = stack.frames;
  if (!stack.origin.is_null()) facts["origin"] = stack.origin;
  return facts;
}

// Written beside and renamed: `trapline run` never sees half a report.
void write_file(const std::string& name, const json& content) {
  const char* folder = std::getenv("TRAPLINE_REPORT_DIR");
  if (folder == nullptr || *folder == '\0') return;
  const std::string path = std::string(folder) + "/" + name;
  const std::string temporary = path + ".tmp";
  std::ofstream file(temporary);
  file << content.dump(-1, ' ', false, json::error_handler_t::replace);
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    static std::atomic<bool> said{false};
    if (!said.exchange(true))
      std::fprintf(
          stderr,
          "trapline: cannot write the report into %s: %s: give a folder that this process can write to "
          "with --report DIR\n",
          folder, std::strerror(errno));
    ::unlink(temporary.c_str());
  }
}

std::string name_of(const char* kind, int number) {
  std::string name = std::string(kind) + "-" + file_part(host_name()) + "-" + std::to_string(::getpid());
  if (number >= 0) name += "-" + std::to_string(number);
  return name + ".json";
}

// What is left to say when the diagnosis fails.
json bare(const trapline_native_fault& fault, const std::string& why) {
  const trapline_scan& scan = *fault.scan;
  return {{"code", "TL901"},
          {"cause", "insufficient_evidence"},
          {"certainty", "proven"},
          {"role", "root"},
          {"contained", true},
          {"op", fault.row->public_op},
          {"argument", fault.row->public_argument},
          {"summary", std::string(fault.row->public_op) + ": " + std::to_string(scan.bad) + " of " +
                          std::to_string(scan.total) + " elements of " + fault.row->public_argument +
                          " are not valid"},
          {"fix", {"trapline could not name the cause: " + why}}};
}

json diagnose(const json& facts, const trapline_native_fault& fault) {
  const std::string text = facts.dump(-1, ' ', false, json::error_handler_t::replace);
  const std::unique_ptr<char, void (*)(char*)> answer(trapline_diagnose(text.c_str()), trapline_free);
  const json parsed = answer ? json::parse(answer.get(), nullptr, false) : json();
  if (parsed.is_object() && parsed.contains("finding") && parsed["finding"].is_object())
    return parsed["finding"];
  return bare(fault, parsed.is_object() ? parsed.value("error", "no finding") : "out of memory");
}

std::string report(const trapline_native_fault& fault) {
  static std::atomic<int> written{0};
  const json finding = diagnose(collect(fault), fault);
  const int number = written.fetch_add(1);
  if (number < kMostFindings) {
    write_file(name_of("finding", number), {{"trapline", {{"version", trapline_version()}, {"schema", 1}}},
                                            {"command", "run"},
                                            {"verdict", "fault"},
                                            {"findings", {finding}},
                                            {"notes", json::array()}});
  }
  return finding.value("summary", "a bad value was found");
}

bool is_mode(const char* mode) {
  const char* value = std::getenv("TRAPLINE_ON_FAULT");
  return value != nullptr && std::strcmp(value, mode) == 0;
}

void end_here(const std::string& headline) {
  std::fflush(stdout);
  std::fprintf(stderr, "trapline: stopped: %s\n", headline.c_str());
  std::fflush(stderr);
  ::_exit(kStopped);
}

}  // namespace
}  // namespace trapline::native

void trapline_native_started(const char* torch_version) try {
  using namespace trapline::native;  // NOLINT(google-build-using-namespace): this file's own
  nlohmann::json notes = nlohmann::json::array();
  if (is_mode("skip"))
    notes.push_back("--on-fault skip is for Python programs: this C++ program's faults are raised");
  write_file(name_of("guard", -1), {{"torch", torch_version}, {"adapter", "libtorch"}, {"notes", notes}});
} catch (...) {  // no memory for a marker: the guard works without
}

char* trapline_native_report(const trapline_native_fault* fault) {
  std::string headline;
  try {
    headline = trapline::native::report(*fault);
    if (trapline::native::is_mode("stop")) trapline::native::end_here(headline);
  } catch (const std::exception& error) {
    headline = std::string(fault->row->public_op) + ": " + fault->row->public_argument + " is not valid (" +
               error.what() + ")";
  }
  return ::strdup(headline.c_str());
}
