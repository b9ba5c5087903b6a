// From a fault in a C++ program to a finding, its report file and its headline.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "guard/preload/stack.hpp"
#include "jsonio/scalar.hpp"
#include "trapline/native.h"

namespace trapline::native {
namespace {

using nlohmann::json;

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

json tensor_facts(const trapline_tensor& tensor, const char* device) {
  return {{"shape", std::vector<std::int64_t>(tensor.sizes, tensor.sizes + std::max(tensor.dim, 0))},
          {"dtype", trapline_dtype_name(tensor.dtype)},
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

// Distinct bad values with their counts, most frequent first.
json bad_values(const trapline_native_fault& fault, const trapline_tensor& tensor) {
  trapline_value values[TRAPLINE_MAX_VALUES];
  const int count =
      trapline_bad_values(fault.row->predicate, fault.scan, &tensor, values, TRAPLINE_MAX_VALUES);
  json list = json::array();
  for (int i = 0; i < count; ++i) {
    const trapline_value& one = values[i];
    list.push_back(
        {fault.scan->is_float != 0 ? jsonio::to_json(one.fvalue) : jsonio::to_json(one.ivalue), one.count});
  }
  return list;
}

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name[0] == '\0' ? "localhost" : name;
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
             {"values", bad_values(fault, tensor)},
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

using Text = std::unique_ptr<char, void (*)(char*)>;

std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

// Calls write(folder, &text), and says once why it failed.
template <class Write>
void write_into_folder(const Write& write) {
  const char* folder = std::getenv("TRAPLINE_REPORT_DIR");
  if (folder == nullptr || *folder == '\0') return;
  char* text = nullptr;
  const bool failed = write(folder, &text) == TRAPLINE_FILE_FAILED;
  const Text line(text, trapline_free);
  static std::atomic<bool> said{false};
  if (failed && line && !said.exchange(true)) std::fprintf(stderr, "trapline: %s\n", line.get());
}

// What is left to say when the diagnosis fails.
std::string bare_sentence(const trapline_native_fault& fault) {
  char text[1024];
  return {text,
          static_cast<std::size_t>(trapline_bare_sentence(fault.row->id, fault.scan, text, sizeof text))};
}

json diagnose(const json& facts, const trapline_native_fault& fault) {
  const Text answer(trapline_diagnose(dump(facts).c_str()), trapline_free);
  const json parsed = answer ? json::parse(answer.get(), nullptr, false) : json();
  if (parsed.is_object() && parsed.contains("finding") && parsed["finding"].is_object())
    return parsed["finding"];
  const std::string why = parsed.is_object() ? parsed.value("error", "no finding") : "out of memory";
  const Text bare(trapline_bare_finding(fault.row->id, fault.scan, why.c_str()), trapline_free);
  return bare ? json::parse(bare.get(), nullptr, false) : json::object();
}

std::string report(const trapline_native_fault& fault) {
  const json finding = diagnose(collect(fault), fault);
  const std::string text = dump(finding);
  write_into_folder([&](const char* folder, char** said) {
    return trapline_write_finding(folder, text.c_str(), nullptr, 0, said);
  });
  return finding.contains("summary") ? finding.value("summary", "") : bare_sentence(fault);
}

bool is_mode(const char* mode) {
  const char* value = std::getenv("TRAPLINE_ON_FAULT");
  return value != nullptr && std::strcmp(value, mode) == 0;
}

void end_here(const std::string& headline) {
  std::fflush(stdout);
  std::fprintf(stderr, "trapline: stopped: %s\n", headline.c_str());
  std::fflush(stderr);
  ::_exit(TRAPLINE_EXIT_STOPPED);
}

}  // namespace
}  // namespace trapline::native

void trapline_native_started(const char* torch_version) try {
  using namespace trapline::native;  // NOLINT(google-build-using-namespace): this file's own
  nlohmann::json notes = nlohmann::json::array();
  if (is_mode("skip"))
    notes.push_back("--on-fault skip is for Python programs: this C++ program's faults are raised");
  const std::string marker = dump({{"torch", torch_version}, {"adapter", "libtorch"}, {"notes", notes}});
  write_into_folder([&](const char* folder, char** said) {
    return trapline_write_file(folder, "guard", marker.c_str(), said);
  });
} catch (...) {  // no memory for a marker: the guard works without
}

char* trapline_native_report(const trapline_native_fault* fault) {
  try {
    const std::string headline = trapline::native::report(*fault);
    if (trapline::native::is_mode("stop")) trapline::native::end_here(headline);
    return ::strdup(headline.c_str());
  } catch (const std::exception&) {
    char text[1024];
    trapline_bare_sentence(fault->row->id, fault->scan, text, sizeof text);
    return ::strdup(text);
  }
}
