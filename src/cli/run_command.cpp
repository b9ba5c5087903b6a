#include "cli/run_command.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <memory>

#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "report/utf8.hpp"
#include "run/session.hpp"

namespace trapline::cli {
namespace {

struct RunFlags {
  RunRequest request;
  OutputFlags output;
  std::string reports;
  long steps = 0;
  double skip_limit = -1;  // not given
  std::string quarantine;
};

void say(const std::string& line) { write_all(STDERR_FILENO, "trapline: " + printable(line) + "\n"); }

// No report, because the program dealt with its faults: it would look like a failure.
std::string handled_line(const RunFlags& flags, const RunOutcome& outcome) {
  const std::string where = !flags.output.file.empty() && flags.output.file != "-"
                                ? "see " + flags.output.file
                            : !flags.reports.empty() ? "see " + flags.reports
                                                     : outcome.how_to_see;
  if (!outcome.skipped.empty()) {
    return fmt::format("{} ({}): {}", outcome.skipped, info(outcome.report.findings.front().cause).code,
                       where);
  }
  return fmt::format("{}; {}", outcome.caught, where);
}

// The program's standard output stays its own: without -o the report goes to standard error, whatever its
// format.
void print(const RunFlags& flags, const Output& output, const RunOutcome& outcome) {
  const bool for_people = flags.output.format == "text" && !output.is_file() && flags.output.file.empty();
  if (outcome.handled && for_people && outcome.skipped.empty()) {
    for (const std::string& line : outcome.caught_lines) say(line);
  }
  if (outcome.handled && (for_people || output.is_file())) say(handled_line(flags, outcome));
  if (for_people) {
    if (outcome.handled && !outcome.unchecked.empty()) say(outcome.unchecked);
    if (outcome.handled) return;
    if (outcome.report.findings.empty()) {
      for (const std::string& note : outcome.report.notes) say(note);
      return;
    }
  }
  // After a traceback an empty line helps the eye to find the beginning.
  if (for_people) write_all(STDERR_FILENO, "\n");
  if (output.write(outcome.report)) {
    const std::string pointer = output.pointer(outcome.report);
    if (!outcome.handled && !pointer.empty()) say(pointer);
    return;
  }
  if (!output.is_file()) return;
  say("cannot write '" + flags.output.file + "': the report follows here: free some space");
  OutputFlags here = flags.output;
  here.file.clear();
  if (const auto fallback = Output::open(here, STDERR_FILENO)) fallback->write(outcome.report);
}

Result<int> execute(RunFlags& flags, const std::vector<std::string>& program) {
  if (program.empty()) {
    return Error{"no program to run", "", "write it after the flags, e.g. trapline run python train.py"};
  }
  flags.request.arguments = program;
  flags.request.verbose = flags.output.verbose;
  if (!flags.reports.empty()) flags.request.reports = flags.reports;
  if (flags.steps > 0) flags.request.steps = flags.steps;
  if (flags.skip_limit >= 0) {
    if (flags.request.on_fault != "skip")
      return Error{"--skip-limit has nothing to limit", "no step is skipped", "add --on-fault skip"};
    flags.request.skip_limit = flags.skip_limit;
  }
  if (!flags.quarantine.empty()) flags.request.quarantine = flags.quarantine;
  const auto output = Output::open(flags.output, STDERR_FILENO);
  if (!output) return output.error();
  const auto outcome = run(flags.request);
  if (!outcome) return outcome.error();
  ::signal(SIGPIPE, SIG_IGN);  // a reader that went away must not change the program's exit code
  print(flags, *output, *outcome);
  return outcome->ended.exit_code;
}

}  // namespace

Action declare_run(CLI::App& app, const std::vector<std::string>& program) {
  auto flags = std::make_shared<RunFlags>();
  app.add_flag("--cpu", flags->request.cpu, "run a program written for CUDA on the CPU");
  app.add_option("--steps", flags->steps, "end the program cleanly after N optimizer steps")
      ->check(whole_number(1, 1'000'000'000'000))
      ->type_name("N");
  app.add_option("--watch", flags->request.watch, "name the step and layer where NaN or Inf began")
      ->check(one_of({"nan"}))
      ->type_name("nan");
  app.add_option("--report", flags->reports, "keep the findings of all processes in the folder DIR")
      ->type_name("DIR");
  app.add_option("--on-fault", flags->request.on_fault,
                 "raise: at the bad operation (default); skip: leave out the optimizer step and the bad "
                 "samples; stop: end at once with exit code 65")
      ->check(one_of({"raise", "skip", "stop"}))
      ->type_name("MODE");
  app.add_option("--skip-limit", flags->skip_limit,
                 "with --on-fault skip: raise when more than PERCENT of the steps were skipped (default 1)")
      ->check(number(0.0, 100.0))
      ->type_name("PERCENT");
  app.add_option("--quarantine", flags->quarantine,
                 "leave out the samples that FILE names; skip adds to it (trapline-quarantine.jsonl)")
      ->type_name("FILE");
  declare_output(app, flags->output,
                 "do not shorten the report; add the stack, the last operations and the evidence");
  app.footer(
      "Everything from PROGRAM on is the program's own; it keeps its terminal, its input and output, and its "
      "exit code (128+N when signal N ended it). The report follows on standard error. Trapline's own errors "
      "exit with 2.");
  return [flags, &program] { return execute(*flags, program); };
}

}  // namespace trapline::cli
