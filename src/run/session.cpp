#include "run/session.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "report/merge.hpp"
#include "run/collect.hpp"
#include "run/environment.hpp"
#include "run/libtorch.hpp"
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

std::string sentence_about(const SkipCounts& skip) {
  if (skip.skipped == 0) return "";
  std::string text = fmt::format("{} of {} optimizer steps {} skipped ({:.2g} %)", skip.skipped, skip.steps,
                                 skip.skipped == 1 ? "was" : "were",
                                 100.0 * static_cast<double>(skip.skipped) / static_cast<double>(skip.steps));
  if (skip.samples > 0) {
    text += fmt::format(", {} sample{} in {}", skip.samples, skip.samples == 1 ? " is" : "s are",
                        skip.quarantine);
  } else {
    text += "; which samples of the data set were bad is not known";
  }
  return text;
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
  settings.watch = request.watch;
  settings.on_fault = request.on_fault;
  settings.skip_limit = request.skip_limit;
  if (request.quarantine) {
    settings.quarantine = std::filesystem::absolute(*request.quarantine);
  } else if (request.on_fault == "skip") {
    const auto kept = request.reports ? folder->path() : std::filesystem::current_path();
    settings.quarantine = kept / "trapline-quarantine.jsonl";
  }
  const auto environment = current_environment();
  if (uses_libtorch(request.arguments, environment)) {
    settings.preload = installation->library.parent_path() / "libtrapline_preload.so";
    settings.libtorch_folders =
        libtorch_folders(installation->library.parent_path().parent_path(), environment);
  }
  const auto ended = run_program(request.arguments, guarded_environment(environment, settings));
  if (!ended) return ended.error();

  const Collected collected = collect(*folder);
  RunOutcome outcome{*ended, merge(collected), false, sentence_about(collected.skip)};
  Report& report = outcome.report;
  const bool has_findings = !report.findings.empty();
  // What `--watch` saw was never raised, so no program can have handled it.
  const bool raised = std::any_of(report.findings.begin(), report.findings.end(),
                                  [](const Finding& one) { return one.cause != Cause::kNonFiniteValue; });
  outcome.handled = raised && ended->exit_code == 0;
  if (!has_findings && ended->exit_code != 0) report.verdict = Verdict::kUnknown;
  // The preloaded library itself says when it has no guard.
  const std::size_t guarded = settings.preload.empty() ? collected.guarded_processes : 1;
  const auto notes = notes_about(*ended, has_findings, guarded);
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
  if (!outcome.skipped.empty()) report.notes.insert(report.notes.begin(), outcome.skipped);
  if (outcome.handled && outcome.skipped.empty())
    report.notes.insert(report.notes.begin(), "the program handled the fault and ended well");
  return outcome;
}

}  // namespace trapline
