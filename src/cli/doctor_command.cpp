#include "cli/doctor_command.hpp"

#include <signal.h>
#include <unistd.h>

#include <memory>

#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "doctor/doctor.hpp"
#include "report/style.hpp"

namespace trapline::cli {
namespace {

constexpr double kSeconds = 120;  // importing torch from a busy network's file system takes a minute

struct DoctorFlags {
  std::string python, format = "text", color = "auto";
  std::optional<double> timeout;
  bool self_test = false;
};

Result<int> execute(const DoctorFlags& flags) {
  ::signal(SIGPIPE, SIG_IGN);
  const auto diagnosis = doctor::examine({flags.python, flags.timeout.value_or(kSeconds), flags.self_test});
  write_all(STDOUT_FILENO, flags.format == "json"
                               ? doctor::to_json_text(diagnosis)
                               : doctor::to_text(diagnosis, style_for(flags.color, STDOUT_FILENO)));
  return doctor::has_problem(diagnosis) ? 1 : 0;
}

}  // namespace

Action declare_doctor(FlagSet& flags, const std::vector<std::string>&) {
  auto given = std::make_shared<DoctorFlags>();
  flags.add({"--python", "PATH", &given->python, "your program's Python; otherwise the one on PATH"});
  flags.add({"--self-test", "", &given->self_test,
             "run one bad call through the whole chain, and show what is reported of it"});
  flags.add({"--timeout", "SECONDS", &given->timeout, "how long that Python may take (default 120)",
             Number{1, 3600}});
  flags.add({"--format", "FORMAT", &given->format, "text or json", OneOf{{"text", "json"}}});
  declare_color(flags, given->color);
  flags.set_footer(
      "Exit code: 0 nothing has to be done, 1 something has, 2 usage. The lines: docs/doctor.md");
  return [given] { return execute(*given); };
}

}  // namespace trapline::cli
