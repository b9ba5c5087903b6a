#include "cli/run_command.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <memory>

#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "cli/run_flags.hpp"
#include "report/utf8.hpp"
#include "run/session.hpp"

namespace trapline::cli {
namespace {

struct RunFlags {
  RunOptions options;
  OutputFlags output;
};

// No report, because the program dealt with its faults: it would look like a failure.
std::string handled_line(const RunFlags& flags, const RunOutcome& outcome) {
  const std::string where = !flags.output.file.empty() && flags.output.file != "-"
                                ? "see " + flags.output.file
                            : flags.options.reports ? "see " + flags.options.reports->string()
                                                    : outcome.how_to_see;
  if (!outcome.skipped.empty()) {
    return fmt::format("{} ({}): {}", outcome.skipped, info(outcome.report.findings.front().cause).code,
                       where);
  }
  return fmt::format("{}; {}", outcome.caught, where);
}

// Where and how the report goes.
struct Destination {
  const RunFlags& flags;
  const Output& output;

  // A person reads standard error. (The program's standard output stays its own: without -o the report goes
  // to standard error, whatever its format.)
  bool is_for_people() const { return flags.output.format == "text" && flags.output.file.empty(); }
};

// False when the destination did not take it. A report that cannot be written to its file is still printed.
bool write_report(const Destination& to, const Report& report) {
  const auto problem = to.output.write(report);
  if (!problem) return true;
  if (to.output.is_file()) {
    say(problem->what + ": " + problem->why + ": the report follows here: " + problem->fix);
    OutputFlags here = to.flags.output;
    here.file.clear();
    if (const auto fallback = Output::open(here, STDERR_FILENO)) fallback->write(report);
  }
  return false;
}

// The program dealt with its faults: for people lines, no report.
void print_handled(const Destination& to, const RunOutcome& outcome) {
  const bool for_people = to.is_for_people();
  if (for_people && outcome.skipped.empty()) {
    for (const std::string& line : outcome.caught_lines) say(line);
  }
  if (for_people || to.output.is_file()) say(handled_line(to.flags, outcome));
  if (for_people && !outcome.unchecked.empty()) say(outcome.unchecked);
  if (!for_people) write_report(to, outcome.report);
}

// Nothing was found: for people at most a line about how the program ended.
void print_clean(const Destination& to, const RunOutcome& outcome) {
  if (!to.is_for_people()) {
    write_report(to, outcome.report);
    return;
  }
  if (outcome.torchless) return;  // make, cat, a launcher's own shell: the report knows, people are not told
  for (const std::string& note : outcome.report.notes) say(note);
}

void print_fault(const Destination& to, const RunOutcome& outcome) {
  // After a traceback an empty line helps the eye to find the beginning.
  if (to.is_for_people()) write_all(STDERR_FILENO, "\n");
  if (!write_report(to, outcome.report)) return;
  const std::string pointer = to.output.pointer(outcome.report);
  if (!pointer.empty()) say(pointer);
}

void print(const Destination& to, const RunOutcome& outcome) {
  if (outcome.handled) return print_handled(to, outcome);
  if (outcome.report.findings.empty()) return print_clean(to, outcome);
  print_fault(to, outcome);
}

// A shell that runs a script ends it on Ctrl-C only if the program that it waited for was ended by the
// signal; an exit code of 130 says that the program dealt with it.
void end_as_interrupted() {
  ::signal(SIGINT, SIG_DFL);
  ::raise(SIGINT);
}

// `interrupted`: SIGINT ended the program.
Result<int> execute(RunFlags& flags, const std::vector<std::string>& program, bool& interrupted) {
  if (program.empty()) {
    return Error{"no program to run", "", "write it after the flags, e.g. trapline run python train.py"};
  }
  if (const auto problem = problem_of(flags.options)) return *problem;
  const auto output = Output::open(flags.output, STDERR_FILENO);
  if (!output) return output.error();
  const auto outcome = run({program, flags.options});
  if (!outcome) return outcome.error();
  outlive_refused_writes();  // only now: the program starts with the signals as they were
  print({flags, *output}, *outcome);
  if (flags.output.verbose) {
    for (const std::string& guard : outcome->guards) say("guard: " + guard);
  }
  interrupted = outcome->ended.signal == SIGINT;
  return outcome->ended.exit_code;
}

}  // namespace

Action declare_run(FlagSet& flags, const std::vector<std::string>& program) {
  auto given = std::make_shared<RunFlags>();
  declare_run_options(flags, given->options);
  declare_output(flags, given->output,
                 "do not shorten the report; add the stack, the last operations and the evidence");
  flags.set_footer(
      "Everything from PROGRAM on is the program's own; it keeps its terminal, its input and output, and its "
      "exit code (128+N when signal N ended it). The report follows on standard error. Trapline's own errors "
      "exit with 2.");
  return [given, &program] {
    bool interrupted = false;
    Result<int> code = execute(*given, program, interrupted);
    if (interrupted) end_as_interrupted();
    return code;
  };
}

}  // namespace trapline::cli
