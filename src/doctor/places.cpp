#include "doctor/places.hpp"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "core/version.hpp"
#include "doctor/cache.hpp"
#include "run/environment.hpp"
#include "run/report_folder.hpp"

namespace trapline::doctor {
namespace {

namespace fs = std::filesystem;
using enum Level;

constexpr std::uint64_t kLowSpace = std::uint64_t{64} << 20U;

bool is_there(const char* path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool file_has(const char* path, std::string_view word) {
  std::ifstream file(path);
  std::string text(4096, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text.find(word) != std::string::npos;
}

std::optional<std::uint64_t> free_bytes(const fs::path& folder) {
  struct statvfs state {};
  if (::statvfs(folder.c_str(), &state) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(state.f_bavail) * state.f_frsize;
}

// Asked by doing it: root may write to what refuses to be written.
bool can_be_written(const fs::path& folder) {
  std::string name = (folder / ".trapline-doctor-XXXXXX").string();
  const int descriptor = ::mkstemp(name.data());
  if (descriptor < 0) return false;
  ::close(descriptor);
  ::unlink(name.c_str());
  return true;
}

Line line_of_reports(std::span<const std::string> environment) {
  const auto named = find_variable(environment, "TRAPLINE_REPORT_DIR");
  const bool is_named = named && !named->empty();
  if (is_named && can_be_written(*named))
    return {kOk, "reports", fmt::format("{} can be written (TRAPLINE_REPORT_DIR)", *named)};
  if (is_named && is_there(named->c_str())) {
    return {kProblem, "reports", fmt::format("{} cannot be written (TRAPLINE_REPORT_DIR)", *named),
            "findings would be lost", "name another folder, or unset it"};
  }
  const auto folder = ReportFolder::make_private();
  if (!folder) {
    return {kProblem, "reports", folder.error().what + ": " + folder.error().why, "findings would be lost",
            "set TMPDIR to a folder that can be written, or use --report DIR"};
  }
  const fs::path parent = folder->path().parent_path();
  const auto space = free_bytes(parent);
  if (space && *space < kLowSpace) {
    return {kProblem, "reports", fmt::format("{} has {} left", parent.string(), size_text(*space)),
            "findings may be lost", "free some, or use --report DIR"};
  }
  return {kOk, "reports",
          fmt::format("below {}, removed at the end{}", parent.string(),
                      space ? fmt::format("; {} free", size_text(*space)) : ""),
          "", ""};
}

Line line_of_cache(const CacheFolder& folder) {
  const std::string path = folder.path.string();
  if (!folder.is_there) return {kOk, "cache", fmt::format("{} is not there yet", path)};
  if (!folder.refused.empty()) {
    return {kNote, "cache", fmt::format("{}: {}", path, folder.refused), "no compiled guard is kept there",
            "set XDG_CACHE_HOME to a folder of your own"};
  }
  std::string text = fmt::format("{}: {} in {} file{}", path, size_text(folder.bytes()),
                                 folder.entries.size(), folder.entries.size() == 1 ? "" : "s");
  if (folder.is_busy) text += "; a guard is being built in it";
  return {kOk, "cache", text, "", folder.entries.empty() ? "" : "`trapline cache` lists it"};
}

}  // namespace

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

Line line_of_installation(const Result<Installation>& installation) {
  const std::string version = version_text();
  if (!installation) {
    const Error& error = installation.error();
    return {kProblem, "trapline", fmt::format("{}: {}", version, error.what + ": " + error.why),
            "`trapline run` cannot work", error.fix};
  }
  return {
      kOk, "trapline",
      fmt::format("{}, {}, with {}", version, this_executable().string(), installation->library.string())};
}

Lines lines_of_folders(std::span<const std::string> environment) {
  Lines lines = {line_of_reports(environment)};
  const auto folders = cache_folders(environment);
  for (std::size_t i = 0; i < folders.size(); ++i) {
    if (i == 0 || folders[i].is_there) lines.push_back(line_of_cache(folders[i]));
  }
  return lines;
}

Lines lines_of_surroundings(std::span<const std::string> environment) {
  const auto has = [&](const char* name) { return find_variable(environment, name).has_value(); };
  Lines lines;
  const bool kubernetes = has("KUBERNETES_SERVICE_HOST");
  if (kubernetes || is_there("/.dockerenv") || is_there("/run/.containerenv")) {
    lines.push_back({kNote, "container", kubernetes ? "a pod of Kubernetes" : "a container",
                     "the cache and temporary reports end with it",
                     "mount a volume for --report DIR and, where guards are compiled, as XDG_CACHE_HOME"});
  }
  if (has("SLURM_JOB_ID")) {
    lines.push_back(
        {kNote, "slurm", fmt::format("job {}", *find_variable(environment, "SLURM_JOB_ID")),
         "each node has a temporary folder of its own",
         "start `trapline run` once per task (srun trapline run ...), with --report DIR on a file system "
         "that all nodes share"});
  }
  // systemd.exec(5): INVOCATION_ID is set for services; a shell below one inherits it, with a terminal.
  if (has("INVOCATION_ID") && ::isatty(STDIN_FILENO) != 1 && !has("SSH_CONNECTION")) {
    lines.push_back(
        {kNote, "systemd", "a service of systemd",
         "a user without a home has no cache, and PrivateTmp= hides temporary reports",
         "set CacheDirectory= and XDG_CACHE_HOME, and StateDirectory= for --report; docs/supervise.md"});
  }
  if (file_has("/proc/version", "icrosoft")) lines.push_back({kOk, "wsl", "Windows Subsystem for Linux"});
  return lines;
}

}  // namespace trapline::doctor
