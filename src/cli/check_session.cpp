#include "cli/check_session.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "cli/exit_code.hpp"
#include "cli/flags.hpp"
#include "inputs/mapped_file.hpp"
#include "report/utf8.hpp"

namespace trapline::cli {
namespace {

std::atomic<bool> stop_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

// The first Ctrl-C ends the reading and what was seen is reported; the second ends Trapline.
void stop_on_interrupt() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_asked = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
}

// One line on a terminal, rewritten while the work goes on and wiped at its end.
class ProgressBar {
 public:
  explicit ProgressBar(const check::Progress& progress) : progress_(progress) {
    if (::isatty(STDERR_FILENO) == 1) thread_ = std::thread([this] { show(); });
  }
  ~ProgressBar() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

 private:
  void show() {
    using namespace std::chrono_literals;
    std::unique_lock lock(mutex_);
    bool shown = false;
    while (!wake_.wait_for(lock, shown ? 200ms : 600ms, [this] { return done_; })) {
      shown = true;
      const std::int64_t all = progress_.all_bytes, seen = progress_.bytes;
      const auto percent = all > 0 ? std::min<std::int64_t>(100, seen * 100 / all) : 0;
      write_all(STDERR_FILENO, fmt::format("\r\x1b[Ktrapline: check: {} %, {} of {} files", percent,
                                           progress_.files.load(), progress_.all_files.load()));
    }
    if (shown) write_all(STDERR_FILENO, "\r\x1b[K");
  }

  const check::Progress& progress_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace

const char* const kCheckFooter =
    "Exit code: 0 clean, 1 findings, 2 usage or an input that could not be read (the others are checked), "
    "3 stopped by Ctrl-C without a finding so far. Formats: docs/formats.md";

void declare_check(FlagSet& flags, CheckFlags& check) {
  flags.add({"--threads", "N", &check.threads, "how many threads read; 0: as many as the machine has cores",
             WholeNumber{0, 1024}});
  declare_output(flags, check.output, "do not shorten the report; add where every finding was seen");
  flags.set_footer(kCheckFooter);
}

Result<int> run_check(const CheckFlags& flags, const CheckBody& look) {
  const auto output = Output::open(flags.output, STDOUT_FILENO);
  if (!output) return output.error();
  outlive_refused_writes();
  stop_on_interrupt();
  std::vector<Error> problems;
  Report report;
  {
    check::Workers workers(flags.threads);
    check::Progress progress;
    const ProgressBar bar(progress);
    report = look({workers, stop_asked, progress}, problems);
    if (auto changed = inputs::take_changed_file()) problems.push_back(std::move(*changed));
  }
  for (const Error& problem : problems) {
    write_all(STDERR_FILENO, "trapline: " + printable(problem.line()) + "\n");
  }
  if (stop_asked) leave_open(report, "stopped by Ctrl-C: what was seen until then");
  if (!problems.empty()) {
    leave_open(report,
               fmt::format("{} could not be checked",
                           problems.size() == 1 ? "1 input" : fmt::format("{} inputs", problems.size())));
  }
  if (const auto problem = output->write(report)) return *problem;
  if (!problems.empty()) return kUsageError;
  return exit_code_of(report.verdict);
}

}  // namespace trapline::cli
