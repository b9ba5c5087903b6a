#include "report/json.hpp"

#include <nlohmann/json.hpp>

#include "core/version.hpp"
#include "doctor/doctor.hpp"
#include "doctor/python.hpp"
#include "jsonio/access.hpp"
#include "jsonio/dump.hpp"
#include "report/utf8.hpp"

namespace trapline::doctor {
namespace {

using nlohmann::json;

std::string_view name_of(Level level) {
  return level == Level::kOk ? "ok" : level == Level::kNote ? "note" : "problem";
}

void read_python(const json& part, PythonAnswer& answer) {
  answer.python = PythonFacts{jsonio::text(part, "version"),    jsonio::text(part, "executable"),
                              jsonio::texts(part, "flags"),     jsonio::boolean(part, "hook").value_or(false),
                              jsonio::texts(part, "customize"), jsonio::text(part, "hidden")};
}

void read_torch(const json& part, PythonAnswer& answer) {
  answer.torch =
      TorchFacts{jsonio::text(part, "version"), jsonio::text(part, "path"), jsonio::text(part, "error"),
                 jsonio::text(part, "cuda"), jsonio::text(part, "hip")};
}

void read_guard(const json& part, PythonAnswer& answer) {
  answer.guard = GuardFacts{jsonio::text(part, "kind"), jsonio::text(part, "what"), jsonio::text(part, "why"),
                            jsonio::text(part, "todo"), jsonio::boolean(part, "is_coming").value_or(false)};
}

void read_cuda(const json& part, PythonAnswer& answer) {
  answer.cuda = TorchCudaFacts{jsonio::boolean(part, "is_available").value_or(false),
                               jsonio::integer(part, "count").value_or(0), jsonio::text(part, "error"),
                               jsonio::texts(part, "architectures")};
}

}  // namespace

void read_facts(const std::string& text, PythonAnswer& answer) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const json line = json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                  text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (const json* part = jsonio::object_member(line, "python")) read_python(*part, answer);
    if (const json* part = jsonio::object_member(line, "torch")) read_torch(*part, answer);
    if (const json* part = jsonio::object_member(line, "guard")) read_guard(*part, answer);
    if (const json* part = jsonio::object_member(line, "cuda")) read_cuda(*part, answer);
    begin = end + 1;
  }
}

std::string to_json_text(const Diagnosis& diagnosis) {
  constexpr int kIndent = 2;
  json lines = json::array();
  for (const Line& line : diagnosis.lines) {
    json one = {
        {"level", name_of(line.level)}, {"topic", valid_utf8(line.topic)}, {"fact", valid_utf8(line.fact)}};
    if (!line.means.empty()) one["means"] = valid_utf8(line.means);
    if (!line.todo.empty()) one["todo"] = valid_utf8(line.todo);
    lines.push_back(std::move(one));
  }
  json out = {{"trapline", {{"version", kVersion}, {"commit", commit()}}},
              {"verdict", has_problem(diagnosis) ? "problem" : "ok"},
              {"lines", std::move(lines)}};
  if (diagnosis.found) out["self_test"] = trapline::to_json(*diagnosis.found);
  return jsonio::dump(out, kIndent) + "\n";
}

}  // namespace trapline::doctor
