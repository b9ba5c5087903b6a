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

// The report folder and what is done on a fault, as they were when the guard came in: the program may empty
// its environment. Leaked: threads may have a fault while the process ends.
struct Settings {
  std::string folder = value_of("TRAPLINE_REPORT_DIR");
  std::string on_fault = value_of("TRAPLINE_ON_FAULT");

  static std::string value_of(const char* variable) {
    const char* value = std::getenv(variable);
    return value == nullptr ? "" : value;
  }
};

const Settings& settings() {
  static const Settings* const once = new Settings;
  return *once;
}

// Calls write(folder, &text), and says once why it failed. False: it failed.
template <class Write>
bool write_into_folder(const Write& write) {
  const std::string& folder = settings().folder;
  if (folder.empty()) return true;
  char* text = nullptr;
  const bool failed = write(folder.c_str(), &text) == TRAPLINE_FILE_FAILED;
  const Text line(text, trapline_free);
  static std::atomic<bool> said{false};
  if (failed && line && !said.exchange(true)) std::fprintf(stderr, "trapline: %s\n", line.get());
  return !failed;
}

// What is left to say when the diagnosis fails.
std::string bare_sentence(const trapline_native_fault& fault) {
  char text[1024];
  return {text,
          static_cast<std::size_t>(trapline_bare_sentence(fault.row->id, fault.scan, text, sizeof text))};
}

// The finding in one line: code, sentence, place.
std::string line_of(const json& finding) {
  const auto text = [](const json& of, const char* name) {
    return of.is_object() && of.contains(name) && of[name].is_string() ? of[name].get<std::string>() : "";
  };
  std::string line = "[" + text(finding, "code") + "] " + text(finding, "summary");
  const json origin = finding.value("origin", json());
  const std::string file = text(origin, "file");
  if (!file.empty())
    line += " (" + file.substr(file.rfind('/') + 1) + ":" + std::to_string(origin.value("line", 0)) + ")";
  std::ranges::replace_if(
      line, [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
  return line;
}

// A finding that is in no file is said; a program in a loop does not fill its log with them.
void say_lost(const std::string& line) {
  constexpr int kMaxLines = 20;
  static std::atomic<int> lines{0};
  if (lines.fetch_add(1) < kMaxLines) std::fprintf(stderr, "trapline: %s\n", line.c_str());
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
  const bool written = write_into_folder([&](const char* folder, char** said) {
    return trapline_write_finding(folder, text.c_str(), nullptr, 0, said);
  });
  if (!written) say_lost(line_of(finding));
  return finding.contains("summary") ? finding.value("summary", "") : bare_sentence(fault);
}

// No memory for a whole finding. Written as it is, or marked as lost: a program that catches it is not clean.
void keep_bare(const trapline_native_fault& fault) {
  const Text bare(trapline_bare_finding(fault.row->id, fault.scan, "out of memory"), trapline_free);
  write_into_folder([&](const char* folder, char** said) {
    return trapline_write_finding(folder, bare.get(), nullptr, 0, said);
  });
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
  if (settings().on_fault == "skip")
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
    if (trapline::native::settings().on_fault == "stop") trapline::native::end_here(headline);
    return ::strdup(headline.c_str());
  } catch (const std::exception&) {
    trapline::native::keep_bare(*fault);
    char text[1024];
    trapline_bare_sentence(fault->row->id, fault->scan, text, sizeof text);
    return ::strdup(text);
  }
}
