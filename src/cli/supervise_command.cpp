#include "cli/supervise_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "cli/run_flags.hpp"
#include "report/collected.hpp"
#include "report/merge.hpp"
#include "report/utf8.hpp"
#include "supervise/options.hpp"
#include "supervise/supervisor.hpp"

namespace trapline::cli {
namespace {

struct SuperviseFlags {
  RunOptions run;
  supervise::Wishes wishes;
  std::optional<std::filesystem::path> policy, dry_run;
  OutputFlags output;
};

// What would be done about a report that is at hand.
Result<int> print_dry_run(const std::filesystem::path& file, const supervise::Policy& policy) {
  Collected collected;
  if (!add_report(file, collected))
    return Error{file.string() + " is no report", "", "name a file that trapline wrote with --format json"};
  fmt::print("{}\n", printable(supervise::dry_run(merge(collected), policy)));
  return 0;
}

Result<int> execute(SuperviseFlags& flags, const std::vector<std::string>& program) {
  if (flags.policy) {
    if (const auto error = supervise::add_policy_file(*flags.policy, flags.wishes)) return *error;
  }
  const auto settings = supervise::settings_of(flags.wishes);
  if (!settings) return settings.error();
  if (flags.dry_run) return print_dry_run(*flags.dry_run, settings->policy);
  if (program.empty())
    return Error{"no program to supervise", "",
                 "write it after the flags, e.g. trapline supervise -- python serve.py"};
  if (const auto problem = problem_of(flags.run)) return *problem;
  const auto output = Output::open(flags.output, STDERR_FILENO);
  if (!output) return output.error();
  const auto outcome = supervise::supervise({program, flags.run, *settings, say});
  if (!outcome) return outcome.error();
  const bool for_people = flags.output.format == "text" && flags.output.file.empty();
  if (for_people && outcome->has_failed && outcome->report.findings.empty()) {
    for (const std::string& note : outcome->report.notes) say(note);
  } else if (outcome->has_failed || !for_people) {
    if (for_people) write_all(STDERR_FILENO, "\n");
    if (const auto problem = output->write(outcome->report)) say(problem->line());
    if (const std::string pointer = output->pointer(outcome->report); !pointer.empty()) say(pointer);
  }
  if (!outcome->kept.empty() && outcome->has_failed)
    say("the findings of every start are in " + outcome->kept);
  return outcome->exit_code;
}

}  // namespace

Action declare_supervise(FlagSet& flags, const std::vector<std::string>& program) {
  auto given = std::make_shared<SuperviseFlags>();
  supervise::Wishes& wishes = given->wishes;
  flags.add({"--listen", "ADDRESS", &wishes.listen,
             "keep this socket open over restarts and hand it to the program as LISTEN_FDS; [HOST:]PORT or "
             "unix:PATH"});
  flags.add({"--status", "ADDRESS", &wishes.status,
             "serve a status page, /livez, /readyz, /metrics and /status.json; a port alone means loopback"});
  flags.add({"--probe", "URL", &wishes.probe, "ask the program itself whether it is ready"});
  flags.add(
      {"--probe-interval", "SECONDS", &wishes.probe_interval, "how often (default 1)", Number{0.05, 86400}});
  flags.add({"--probe-timeout", "SECONDS", &wishes.probe_timeout, "for how long at most (default 2)",
             Number{0.05, 3600}});
  flags.add({"--probe-failures", "N", &wishes.probe_failures,
             "replace it after N failures in a row (default 3)", WholeNumber{1, 1000}});
  flags.add({"--stall", "SECONDS", &wishes.stall, "replace it when it has printed nothing for so long",
             Number{1, 604800}});
  flags.add({"--standby", "", &wishes.standby, "keep a second process that has done its imports and waits"});
  flags.add(
      {"--replace", "WHAT", &wishes.replace,
       "what to replace when a context is lost: the tree (default), or the process alone, where its parent "
       "starts another: workers, notebook kernels",
       OneOf{{"tree", "process"}}});
  flags.add({"--restarts", "N", &wishes.restarts, "at most N restarts in the window (default 10)",
             WholeNumber{0, 1'000'000}});
  flags.add(
      {"--window", "SECONDS", &wishes.window, "how long the window is (default 600)", Number{1, 604800}});
  flags.add({"--delay", "SECONDS", &wishes.delay,
             "before the first restart; doubled with each that follows (default 1)", Number{0, 3600}});
  flags.add(
      {"--max-delay", "SECONDS", &wishes.max_delay, "the longest delay (default 60)", Number{0, 86400}});
  flags.add(
      {"--grace", "SECONDS", &wishes.grace, "between SIGTERM and SIGKILL (default 10)", Number{0, 3600}});
  flags.add(
      {"--policy", "FILE", &given->policy, "a TOML file that says the same, and what to decide by cause"});
  flags.add({"--dry-run", "REPORT", &given->dry_run,
             "print what would be decided after this report, and start nothing"});
  declare_run_options(flags, given->run);
  declare_output(flags, given->output, "do not shorten the report that follows when it stops");
  flags.set_footer(
      "The program keeps its input and its output; a terminal is passed through and not read, other output "
      "is "
      "copied byte for byte and read on the way. Exit code: the program's own when it ended well or was "
      "asked to "
      "end; 65 stopped, since the fault would come back; 70 stopped after too many restarts; 75 the same, "
      "and it "
      "may run later or elsewhere. Trapline's own errors exit with 2.");
  return [given, &program] { return execute(*given, program); };
}

}  // namespace trapline::cli
