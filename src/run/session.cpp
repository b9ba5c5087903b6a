#include "run/session.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>
#include <cstring>

#include "report/merge.hpp"
#include "run/collect.hpp"
#include "run/environment.hpp"
#include "run/locate.hpp"
#include "run/report_folder.hpp"

namespace trapline {
namespace {

Result<ReportFolder> make_folder(const std::optional<std::filesystem::path>& chosen) {
  if (chosen) return ReportFolder::open(*chosen);
  const char* temporary = std::getenv("TMPDIR");
  if (temporary != nullptr && *temporary != '\0') {
    auto folder = ReportFolder::make_private(temporary);
    if (folder) return folder;
  }
  return ReportFolder::make_private("/tmp");
}

// Signals by which people and schedulers end programs; that is no crash.
bool is_request_to_end(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGPIPE || signal == SIGQUIT;
}

}  // namespace

std::vector<std::string> notes_about(const Ended& ended, bool has_findings, std::size_t guarded_processes) {
  std::vector<std::string> notes;
  if (ended.signal != 0 && !is_request_to_end(ended.signal)) {
    std::string note =
        fmt::format("the program was killed by signal {} ({})", ended.signal, strsignal(ended.signal));
    if (ended.core_dumped) note += ", core dumped";
    if (ended.signal == SIGKILL) note += "; the kernel does that when memory runs out (see dmesg)";
    notes.push_back(note);
  }
  const bool failed = ended.exit_code != 0 && !is_request_to_end(ended.signal) && ended.exit_code != 130;
  if (failed && !has_findings && guarded_processes == 0) {
    notes.push_back(
        "the program failed, and the guard was in none of its processes: either none imported torch, or "
        "Python "
        "was told to ignore PYTHONPATH (python -I, -E, -S)");
  }
  return notes;
}

Result<RunOutcome> run(const RunRequest& request) {
  const auto installation = locate(this_executable());
  if (!installation) return installation.error();
  const auto folder = make_folder(request.reports);
  if (!folder) return folder.error();

  GuardSettings settings;
  settings.python = installation->python;
  settings.library = installation->library;
  settings.reports = folder->path();
  settings.cpu = request.cpu;
  settings.steps = request.steps;
  settings.verbose = request.verbose;
  const auto ended = run_program(request.arguments, guarded_environment(current_environment(), settings));
  if (!ended) return ended.error();

  const Collected collected = collect(*folder);
  RunOutcome outcome{*ended, merge(collected), false};
  Report& report = outcome.report;
  const bool has_findings = !report.findings.empty();
  outcome.handled = has_findings && ended->exit_code == 0;
  if (!has_findings && ended->exit_code != 0) report.verdict = Verdict::kUnknown;
  const auto notes = notes_about(*ended, has_findings, collected.guarded_processes);
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
  if (outcome.handled)
    report.notes.insert(report.notes.begin(), "the program handled the fault and ended well");
  return outcome;
}

}  // namespace trapline
