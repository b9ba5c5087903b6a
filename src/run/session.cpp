#include "run/session.hpp"

#include <algorithm>
#include <iterator>

#include "report/ends.hpp"
#include "report/merge.hpp"
#include "run/collect.hpp"
#include "run/environment.hpp"
#include "run/libtorch.hpp"
#include "run/locate.hpp"
#include "run/notes.hpp"
#include "run/program.hpp"

namespace trapline {
namespace {

// Whether a traceback has said what ended the program.
bool says_why(const Collected& collected) {
  return collected.guarded_processes > 0 &&
         std::any_of(collected.ends.begin(), collected.ends.end(), [](const ProcessEnd& end) {
           return !end.went_on && (!end.other.empty() || !end.elsewhere.empty());
         });
}

}  // namespace

Result<Prepared> prepare(const RunRequest& request) {
  const auto installation = locate(this_executable());
  if (!installation) return installation.error();
  auto folder =
      request.options.reports ? ReportFolder::open(*request.options.reports) : ReportFolder::make_private();
  if (!folder) return folder.error();
  FolderLock lock;
  if (folder->is_private()) {
    lock = FolderLock(folder->path());
    remove_abandoned(folder->path().parent_path());
  }

  RunOptions options = request.options;
  if (options.quarantine) {
    options.quarantine = std::filesystem::absolute(*options.quarantine);
  } else if (options.on_fault == "skip") {
    options.quarantine =
        (options.reports ? folder->path() : std::filesystem::current_path()) / "trapline-quarantine.jsonl";
  }
  options.reports = folder->path();

  GuardPaths paths{installation->python, installation->library, {}, {}, {}};
  const auto environment = current_environment();
  if (uses_libtorch(request.arguments, environment)) {
    paths.preload = installation->library.parent_path() / "libtrapline_preload.so";
    paths.libtorch_folders = libtorch_folders(installation->library.parent_path().parent_path(), environment);
  }
  ReportSocket socket = ReportSocket::open();
  paths.report_socket = socket.address();
  return Prepared{std::move(folder).value(), options,
                  request.arguments,         guarded_environment(environment, paths, options),
                  paths.preload.has_value(), std::move(lock),
                  std::move(socket)};
}

Result<ExitStatus> attempt(const Prepared& prepared) {
  return run_program(prepared.arguments, prepared.environment);
}

RunOutcome conclude(const Prepared& prepared, const ExitStatus& ended) {
  Collected collected = collect(prepared.folder, prepared.socket.take());
  const bool failed = ended.exit_code != 0;
  const Settled settled = settle(collected, failed);
  std::error_code no_error;
  const std::string here = std::filesystem::current_path(no_error).string();
  std::vector<std::string> caught_lines = lines_about(collected.findings, settled.caught, here);
  RunOutcome outcome{ended,
                     merge(collected),
                     settled.uncaught,
                     settled.caught_before,
                     false,
                     sentence_about(collected.skip),
                     sentence_about(settled.caught),
                     how_to_see(settled.caught),
                     std::move(caught_lines),
                     collected.guards,
                     prepared.options.cpu ? unchecked_line(collected) : ""};
  Report& report = outcome.report;
  const bool has_findings = !report.findings.empty();
  const bool idle = !outcome.unchecked.empty();
  if ((!failed && collected.guarded_processes > 0) || says_why(collected)) outcome.unchecked.clear();
  // What `--watch` saw was never raised, so no program can have handled it.
  const bool raised = std::any_of(report.findings.begin(), report.findings.end(),
                                  [](const Finding& one) { return one.cause != Cause::kNonFiniteValue; });
  outcome.handled =
      raised && !settled.uncaught && (!failed || (is_request_to_end(ended) && settled.caught_before));
  if (!has_findings && (failed || idle)) report.verdict = Verdict::kUnknown;
  const bool is_lost = !prepared.folder.exists();
  // A process that could write nothing is not one that was not guarded.
  const std::string full = !has_findings && !is_lost ? prepared.folder.why_not_writable() : "";
  const bool is_silent = collected.guarded_processes == 0 && !has_findings && !is_lost;
  if (!full.empty()) {
    leave_open(report, "what this run's processes found could not be written into " +
                           prepared.folder.path().string() + ": " + full +
                           "; where they found a fault, the program's own output says so");
  } else if (!failed && is_silent && outcome.unchecked.empty()) {
    std::string why = why_unguarded(prepared.arguments, prepared.environment);
    outcome.torchless = why.empty();
    if (why.empty() && prepared.is_preloaded)
      why =
          "none of its processes had a guard for its libtorch: where a line at its start says so, build it "
          "with "
          "that line's command, and run again";
    leave_open(report, "nothing was guarded, so this run says nothing about the program: " +
                           (why.empty() ? "none of its processes imported torch, or Python could not see the "
                                          "guard (env -i, python -I, -E, -S)"
                                        : why));
  }
  auto notes = notes_about(ended, has_findings || !settled.other.empty(),
                           is_lost || !full.empty() ? 1 : collected.guarded_processes, prepared.is_preloaded);
  if (!outcome.handled && failed) {
    const std::string where =
        prepared.folder.is_private() ? outcome.how_to_see : "they are in " + prepared.folder.path().string();
    std::ranges::move(notes_about(settled, ended, has_findings, where), std::back_inserter(notes));
    std::ranges::move(lines_about(settled.taken, settled.caught, here), std::back_inserter(notes));
  }
  if (!outcome.unchecked.empty()) notes.push_back(outcome.unchecked);
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
  if (!outcome.skipped.empty()) report.notes.insert(report.notes.begin(), outcome.skipped);
  if (outcome.handled && outcome.skipped.empty() && !failed)
    report.notes.insert(report.notes.begin(), "the program handled the fault and ended well");
  return outcome;
}

Result<RunOutcome> run(const RunRequest& request) {
  const auto prepared = prepare(request);
  if (!prepared) return prepared.error();
  const auto ended = attempt(*prepared);
  if (!ended) return ended.error();
  return conclude(*prepared, *ended);
}

}  // namespace trapline
