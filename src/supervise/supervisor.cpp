#include "supervise/supervisor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include "run/report_folder.hpp"
#include "supervise/loop.hpp"

namespace trapline::supervise {
Result<Outcome> supervise(const Request& request) {
  // Each start has threads of its own, for each of which the allocator would open a region of a megabyte.
  ::mallopt(M_ARENA_MAX, 2);
  // Who was started without standard streams would else hand something of its own to the program in their
  // place.
  int lowest = ::open("/dev/null", O_RDWR);
  while (lowest >= 0 && lowest <= STDERR_FILENO) lowest = ::open("/dev/null", O_RDWR);
  if (lowest > STDERR_FILENO) ::close(lowest);
  auto own = ReportFolder::make_private();
  if (!own) return own.error();
  auto folder = request.run.reports ? ReportFolder::open(*request.run.reports) : ReportFolder::make_private();
  if (!folder) return folder.error();
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  Loop loop(request, std::move(folder).value(), std::move(own).value(), mask);
  if (auto error = loop.prepare()) return *error;
  return loop.run();
}

std::string dry_run(const Report& report, const Policy& policy) {
  Ending ending;
  ending.exit_code = 1;
  if (!report.findings.empty()) {
    ending.root = report.findings.front();
    if (ending.root->sample && ending.root->sample->dataset_index) ending.samples = 1;
    if (ending.root->sample && !ending.root->sample->request.empty())
      ending.requests = {ending.root->sample->request};
  } else if (report.verdict == Verdict::kClean) {
    ending.exit_code = 0;
  }
  Judge judge(policy, [] { return 0.0; });
  const Decision decision = judge.decide(ending, 0);
  return fmt::format("{}: {}", name_of(decision.action), decision.reason);
}

}  // namespace trapline::supervise
