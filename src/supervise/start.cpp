#include "supervise/start.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "report/merge.hpp"
#include "supervise/board.hpp"
#include "supervise/decide.hpp"

namespace trapline::supervise {
namespace {

constexpr int kFirstLine = 100;      // a standby's line lies above what programs expect to inherit
constexpr double kDrainSeconds = 2;  // for a stream that somebody holds open who could not be ended

bool is_same_file(int one, int other) {
  struct stat a {
  }, b{};
  return ::fstat(one, &a) == 0 && ::fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void set(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(name + "="); });
  environment.push_back(name + "=" + value);
}

}  // namespace

Start::~Start() { finish_streams(); }

Result<std::unique_ptr<Start>> Start::launch(const Stage& stage, std::int64_t number, bool as_standby) {
  RunOptions options = stage.run;
  options.reports = *stage.run.reports / fmt::format("start-{:04}", number);
  // A file that is not there yet has nothing to leave out: the guard stays off the loaders.
  std::error_code ignored;
  if (options.on_fault != "skip" && !std::filesystem::exists(*options.quarantine, ignored))
    options.quarantine.reset();
  auto prepared = prepare({stage.arguments, options});
  if (!prepared) return prepared.error();
  std::unique_ptr<Start> start(new Start(std::move(prepared).value(), number));

  SpawnRequest request;
  request.arguments = start->prepared_.arguments;
  request.environment = start->prepared_.environment;
  for (const char* name : {"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"})
    std::erase_if(request.environment,
                  [&](const std::string& entry) { return entry.starts_with(std::string(name) + "="); });
  set(request.environment, "TRAPLINE_SUPERVISE_DIR", stage.own_folder.string());
  set(request.environment, "TRAPLINE_CONTEXT_SOCKET", (stage.own_folder / "contexts").string());
  const auto equals = stage.mark.find('=');
  set(request.environment, stage.mark.substr(0, equals), stage.mark.substr(equals + 1));
  request.listening = stage.listening;
  request.takes_terminal = stage.has_terminal && !as_standby;
  request.mask = stage.mask;

  Descriptor far_end;
  if (as_standby) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      return Error{"cannot prepare a standby", std::strerror(errno), "run without --standby"};
    start->line_ = Descriptor(ends[0]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    far_end = Descriptor(::fcntl(ends[1], F_DUPFD_CLOEXEC, kFirstLine));
    ::close(ends[1]);
    request.kept = far_end.get();
    set(request.environment, "TRAPLINE_STANDBY_FD", std::to_string(far_end.get()));
  }

  start->log_ = std::make_unique<LiveLog>(stage.log_seen);
  // A terminal is passed through as it is, and not read. One pipe for both streams, where they go to the same
  // place, keeps their order.
  const auto open_stream = [&](int to, const char* name) -> std::optional<Error> {
    auto relay = Relay::open(to, name, *start->log_);
    if (!relay) return relay.error();
    start->relays_.push_back(std::move(relay).value());
    return std::nullopt;
  };
  if (::isatty(STDOUT_FILENO) != 1) {
    if (auto error = open_stream(STDOUT_FILENO, "stdout")) return *error;
    request.output = start->relays_.back()->write_end();
  }
  if (::isatty(STDERR_FILENO) != 1) {
    if (request.output >= 0 && is_same_file(STDOUT_FILENO, STDERR_FILENO)) {
      request.error = request.output;
    } else {
      if (auto error = open_stream(STDERR_FILENO, "stderr")) return *error;
      request.error = start->relays_.back()->write_end();
    }
  }
  const auto pid = spawn(request);
  for (const auto& relay : start->relays_) relay->close_write_end();
  if (!pid) return pid.error();
  start->pid_ = *pid;
  start->started_ = steady_seconds();
  return start;
}

void Start::read_line() {
  char block[16];
  const ssize_t got = ::read(line_.get(), block, sizeof block);
  if (got > 0) prepared_to_go_ = true;
  if (got == 0) line_.close();
}

void Start::go() {
  const char word = 1;
  // The line stays open: one that has not come so far finds the word when it gets there.
  [[maybe_unused]] const auto sent = ::send(line_.get(), &word, 1, MSG_NOSIGNAL);
  started_ = steady_seconds();
}

std::uint64_t Start::output_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& relay : relays_) sum += relay->bytes();
  return sum;
}

bool Start::drops_output() const {
  bool drops = false;
  for (const auto& relay : relays_) drops = drops || relay->drops();
  return drops;
}

void Start::finish_streams() {
  for (const auto& relay : relays_) relay->finish(kDrainSeconds);
}

Evidence Start::evidence(const ExitStatus& ended, bool lost) {
  RunOutcome outcome = conclude(prepared_, ended);
  Report seen = std::move(outcome.report);
  Report told = log_->report();
  std::vector<Finding> first;
  if (lost || !outcome.uncaught) {
    const auto rest = std::stable_partition(told.findings.begin(), told.findings.end(), ruins_context);
    first.assign(told.findings.begin(), rest);
    told.findings.erase(told.findings.begin(), rest);
  }
  // The guard has seen what the traceback in the log only repeats.
  if (!seen.findings.empty())
    std::erase_if(told.findings, [](const Finding& one) { return one.cause == Cause::kNotCuda; });
  Report report = merge(std::move(seen), std::move(told));
  report.findings.insert(report.findings.begin(), first.begin(), first.end());
  if (!first.empty()) report.verdict = Verdict::kFault;
  report.command = Command::kSupervise;
  if (report.findings.empty() && ended.exit_code != 0) report.verdict = Verdict::kUnknown;
  return {std::move(report), outcome.uncaught, outcome.caught_before};
}

}  // namespace trapline::supervise
