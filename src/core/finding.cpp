#include "core/finding.hpp"

#include <algorithm>

namespace trapline {

std::string to_text(const Variable& variable) {
  std::string text = variable.name;
  for (std::size_t i = 0; i < variable.index.size(); ++i) {
    text += (i == 0 ? "[" : ", ") + std::to_string(variable.index[i]);
  }
  return variable.index.empty() ? text : text + "]";
}

std::string layer_name(const std::string& name, char quote) {
  if (name.empty()) return name;
  return name.front() >= '0' && name.front() <= '9' ? "layer " + name : quote + name + quote;
}

void leave_open(Report& report, const std::string& what) {
  if (report.verdict == Verdict::kClean) report.verdict = Verdict::kUnknown;
  if (!what.empty() && std::ranges::find(report.notes, what) == report.notes.end())
    report.notes.push_back(what);
}

}  // namespace trapline
