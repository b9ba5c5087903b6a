#include "run/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "report/report_socket.hpp"

namespace trapline {
namespace {

bool is_named(std::string_view entry, std::string_view name) {
  return entry.size() > name.size() && entry.substr(0, name.size()) == name && entry[name.size()] == '=';
}

void set(std::vector<std::string>& environment, std::string_view name, const std::string& value) {
  std::string entry = std::string(name) + "=" + value;
  for (std::string& old : environment) {
    if (is_named(old, name)) {
      old = std::move(entry);
      return;
    }
  }
  environment.push_back(std::move(entry));
}

// Only the start-up hook: the package's own folder may be a site-packages, whose other packages are none of
// the program's business. An empty entry of PYTHONPATH means the current folder, so none may come into being
// where there was none.
std::string python_path(const std::filesystem::path& python, const std::string& inherited) {
  const std::string ours = (python / "trapline" / "startup").string();
  if (inherited.empty() || inherited == ours) return ours;
  if (inherited.starts_with(ours + ":")) return inherited;
  return ours + ":" + inherited;
}

}  // namespace

std::optional<std::string> find_variable(std::span<const std::string> environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (is_named(entry, name)) return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

std::vector<std::string> guarded_environment(std::span<const std::string> environment,
                                             const GuardPaths& paths, const RunOptions& options) {
  std::vector<std::string> out(environment.begin(), environment.end());
  // What a flag sets comes from the flags alone; only a run inside another one keeps what that was asked.
  const bool is_nested = find_variable(environment, "TRAPLINE_GUARD") == "1" &&
                         !find_variable(environment, "TRAPLINE_REPORT_DIR").value_or("").empty();
  if (!is_nested) {
    std::erase_if(out, [](const std::string& entry) {
      return std::ranges::any_of(run_options(),
                                 [&](const RunOption& option) { return is_named(entry, option.variable); });
    });
  }
  set(out, "PYTHONPATH",
      python_path(paths.python, find_variable(environment, "PYTHONPATH").value_or(std::string())));
  set(out, "TRAPLINE_GUARD", "1");
  set(out, "TRAPLINE_LIB", paths.library.string());
  if (!paths.report_socket.empty()) set(out, ReportSocket::kVariable, paths.report_socket);
  for (const auto& [name, value] : variables_of(options)) set(out, name, value);
  if (paths.preload) {
    const auto inherited = find_variable(environment, "LD_PRELOAD").value_or("");
    const std::string ours = paths.preload->string();
    if (inherited != ours && !inherited.starts_with(ours + ":"))
      set(out, "LD_PRELOAD", inherited.empty() ? ours : ours + ":" + inherited);
    set(out, "TRAPLINE_LIBTORCH_DIRS", paths.libtorch_folders);
    set(out, "TRAPLINE_LIBTORCH_BUILDER", (paths.python / "trapline" / "_build_libtorch.py").string());
  }
  return out;
}

std::vector<std::string> current_environment() {
  std::vector<std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) out.emplace_back(*entry);
  return out;
}

std::vector<char*> exec_list(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

}  // namespace trapline
