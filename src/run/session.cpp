#include "run/session.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "report/ends.hpp"
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

// "0.67 %"; 100 % is said of all only, and no share is a power of ten.
std::string share_of(std::uint64_t part, std::uint64_t whole) {
  const double share = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (part < whole && share >= 99.5) return "over 99 %";
  if (part > 0 && share < 0.01) return "under 0.01 %";
  return share >= 9.95 ? fmt::format("{:.0f} %", share) : fmt::format("{:.2g} %", share);
}

// Of a --cpu run: a line when it is known that no process ran one guarded operation.
std::string unchecked_line(const Collected& collected) {
  const auto& ends = collected.ends;
  if (collected.guarded_processes == 0) {
    return "no operation that Trapline checks ran: no guarded process imported torch, so this run says "
           "nothing "
           "about the program";
  }
  std::size_t idle = 0;
  for (const ProcessEnd& end : ends) idle += end.checked == false ? 1 : 0;
  if (!collected.findings.empty() || idle < collected.guarded_processes) return "";
  return "no operation that Trapline checks ran, so this run says nothing about the program: look whether it "
         "ended early, e.g. because it asks for more GPUs than --cpu shows";
}

// Whether a traceback has said what ended the program.
bool says_why(const Collected& collected) {
  return collected.guarded_processes > 0 &&
         std::any_of(collected.ends.begin(), collected.ends.end(), [](const ProcessEnd& end) {
           return !end.went_on && (!end.other.empty() || !end.elsewhere.empty());
         });
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

std::vector<std::string> notes_about(const Settled& settled, const Ended& ended, bool has_findings,
                                     const std::string& where) {
  std::vector<std::string> notes;
  if (!settled.other.empty()) {
    notes.push_back(fmt::format("the program ended by {}: that is no fault of the kinds that Trapline knows",
                                settled.other));
  }
  if (has_findings && settled.caught_before) {
    notes.push_back(ended.signal != 0
                        ? fmt::format("the program caught this fault; later signal {} ended it", ended.signal)
                        : fmt::format("the program caught this fault; later it ended with exit code {}",
                                      ended.exit_code));
  }
  // An abort is how an uncaught exception ends a C++ program.
  if (has_findings && !settled.caught_before && !settled.uncaught && ended.signal != 0 &&
      ended.signal != SIGABRT) {
    notes.push_back("whether the program had caught this fault before is not known");
  }
  const std::string caught = sentence_about(settled.caught);
  if (!caught.empty()) notes.push_back(fmt::format("{}; {}", caught, where));
  return notes;
}

std::string how_to_see(const std::map<std::string, std::uint64_t>& caught) {
  const bool one = caught.size() == 1 && caught.begin()->second == 1;
  return fmt::format("to see {}: trapline run --report DIR -- ...", one ? "it" : "them");
}

std::string sentence_about(const SkipCounts& skip) {
  if (skip.skipped == 0) return "";
  std::string text = fmt::format("{} of {} optimizer steps {} skipped ({})", skip.skipped, skip.steps,
                                 skip.skipped == 1 ? "was" : "were", share_of(skip.skipped, skip.steps));
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

  Collected collected = collect(*folder);
  const Settled settled = settle(collected, ended->exit_code != 0);
  std::error_code no_error;
  const std::string here = std::filesystem::current_path(no_error).string();
  std::vector<std::string> caught_lines = lines_about(collected.findings, settled.caught, here);
  RunOutcome outcome{*ended,
                     merge(collected),
                     false,
                     sentence_about(collected.skip),
                     sentence_about(settled.caught),
                     how_to_see(settled.caught),
                     std::move(caught_lines),
                     request.cpu ? unchecked_line(collected) : ""};
  Report& report = outcome.report;
  const bool has_findings = !report.findings.empty();
  const bool idle = !outcome.unchecked.empty();
  if ((ended->exit_code == 0 && collected.guarded_processes > 0) || says_why(collected))
    outcome.unchecked.clear();
  // What `--watch` saw was never raised, so no program can have handled it.
  const bool raised = std::any_of(report.findings.begin(), report.findings.end(),
                                  [](const Finding& one) { return one.cause != Cause::kNonFiniteValue; });
  const bool on_request = is_request_to_end(ended->signal) || ended->exit_code == 130;
  outcome.handled =
      raised && !settled.uncaught && (ended->exit_code == 0 || (on_request && settled.caught_before));
  if (!has_findings && (ended->exit_code != 0 || idle)) report.verdict = Verdict::kUnknown;
  // The preloaded library itself says when it has no guard.
  const std::size_t guarded = settings.preload.empty() ? collected.guarded_processes : 1;
  auto notes = notes_about(*ended, has_findings || !settled.other.empty(), guarded);
  if (!outcome.handled && ended->exit_code != 0) {
    const std::string where = request.reports ? "they are in " + folder->path().string() : outcome.how_to_see;
    std::ranges::move(notes_about(settled, *ended, has_findings, where), std::back_inserter(notes));
    std::ranges::move(lines_about(settled.taken, settled.caught, here), std::back_inserter(notes));
  }
  if (!outcome.unchecked.empty()) notes.push_back(outcome.unchecked);
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
  if (!outcome.skipped.empty()) report.notes.insert(report.notes.begin(), outcome.skipped);
  if (outcome.handled && outcome.skipped.empty() && ended->exit_code == 0)
    report.notes.insert(report.notes.begin(), "the program handled the fault and ended well");
  return outcome;
}

}  // namespace trapline
