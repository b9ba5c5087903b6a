#include "supervise/loop.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <random>

#include "supervise/tree.hpp"

namespace trapline::supervise {
namespace {

constexpr double kBeat = 1;      // seconds
constexpr double kPress = 0.05;  // between looks at processes that are to end
constexpr std::array kStopping{SIGTERM, SIGINT, SIGQUIT};
constexpr std::array kForwarded{SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};

double jitter() {
  static std::minstd_rand random{std::random_device{}()};
  return std::uniform_real_distribution<double>(0, 1)(random);
}

// Whoever sees the status page may see which program it is; what its flags hold is not theirs to know.
std::string shown(const std::vector<std::string>& arguments) {
  std::string out;
  for (const std::string& word : arguments) {
    if (word.starts_with("--")) return out + " ...";
    out += (out.empty() ? "" : " ") + word;
  }
  return out;
}

}  // namespace

Loop::Loop(const Request& request, ReportFolder folder, ReportFolder own_folder, sigset_t mask)
    : request_(request),
      settings_(request.settings),
      folder_(std::move(folder)),
      own_folder_(std::move(own_folder)),
      judge_(request.settings.policy, jitter) {
  stage_.arguments = request.arguments;
  stage_.run = request.run;
  stage_.run.reports = folder_.path();
  if (!stage_.run.quarantine) {
    const auto where = request.run.reports ? folder_.path() : std::filesystem::current_path();
    stage_.run.quarantine = where / "trapline-quarantine.jsonl";
  }
  stage_.own_folder = own_folder_.path();
  stage_.mark = fmt::format("TRAPLINE_SUPERVISOR={}-{:.6f}", ::getpid(), unix_time());
  stage_.mask = mask;
  stage_.log_seen = [this] { inbox_.log_seen(); };
  // Only who has the terminal can hand it on: a background job does not.
  stage_.has_terminal = ::isatty(STDIN_FILENO) == 1 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
}

Loop::~Loop() {
  if (active_ || standby_) {
    const std::vector<pid_t> watch{last_watch_ ? last_watch_->pid() : -1};
    signal_all(descendants(::getpid(), watch), SIGKILL);
  }
}

std::optional<Error> Loop::prepare() {
  for (const Address& address : settings_.listen) {
    auto socket = listen_at(address);
    if (!socket) return socket.error();
    sockets_.push_back(std::move(socket).value());
    stage_.listening.push_back(sockets_.back().get());
  }
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : kStopping) sigaddset(&wanted, signal);
  for (const int signal : kForwarded) sigaddset(&wanted, signal);
  sigaddset(&wanted, SIGCHLD);
  sigaddset(&wanted, SIGTTOU);  // so that the terminal can be taken back from the background
  ::pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);  // some launchers leave it ignored, and then nobody learns how children ended
  sigdelset(&wanted, SIGTTOU);
  signals_ = Descriptor(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.is_open() || inbox_.descriptor() < 0)
    return Error{"cannot supervise", std::strerror(errno), "close other programs"};
  become_subreaper();
  last_watch_ = std::make_unique<LastWatch>(stage_.mark, settings_.grace);
  // Without the socket only the log and the probe tell a lost context.
  if (auto contexts = Contexts::open(own_folder_.path() / "contexts"))
    contexts_.emplace(std::move(contexts).value());
  board_.beat();
  board_.update([&](Snapshot& now) {
    now.started = now.since = unix_time();
    now.entered = steady_seconds();
    now.has_standby = settings_.standby;
    now.program = shown(request_.arguments);
  });
  state_since_ = steady_seconds();
  if (settings_.status || settings_.probe) {
    if (auto error = load_http()) return error;
  }
  if (settings_.status) {
    auto server = serve_http(*settings_.status,
                             [this](const std::string& path) { return answer_status(board_, path); });
    if (!server) return server.error();
    server_ = std::move(server).value();
  }
  if (settings_.probe) {
    probe_ = std::make_unique<Probe>(*settings_.probe, settings_.probe_interval, settings_.probe_timeout,
                                     [this](bool is_well) { inbox_.probed(is_well); });
  }
  if (!launch()) return cannot_start_;
  return std::nullopt;
}

Outcome Loop::run() {
  while (!is_over_) {
    const double now = steady_seconds();
    meet_deadlines(now);
    if (!is_over_) wait(next_deadline());
  }
  if (standby_) drop_standby("");
  // What the program left behind outside its own tree is ours by now.
  for (int look = 0; look < 100; ++look) {
    const std::vector<pid_t> left = descendants(::getpid(), others());
    if (left.empty()) break;
    signal_all(left, SIGKILL);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    ::usleep(10'000);
  }
  set_state(State::kStopped);
  systemd_.stopping();
  outcome_.report.notes.insert(outcome_.report.notes.end(), decisions_.begin(), decisions_.end());
  if (!folder_.is_private()) outcome_.kept = folder_.path();
  return std::move(outcome_);
}

void Loop::wait(double until) {
  std::vector<pollfd> wanted{{signals_.get(), POLLIN, 0}, {inbox_.descriptor(), POLLIN, 0}};
  const bool has_line = standby_ && standby_->standby_line() >= 0;
  if (has_line) wanted.push_back({standby_->standby_line(), POLLIN, 0});
  if (contexts_) {
    for (const int fd : contexts_->descriptors()) wanted.push_back({fd, POLLIN, 0});
  }
  const double left = std::clamp(until - steady_seconds(), 0.0, kBeat);
  if (::poll(wanted.data(), wanted.size(), static_cast<int>(std::ceil(left * 1000))) <= 0) return;
  inbox_.clear();
  take_signals();
  if (has_line && standby_) take_lines();
  if (contexts_) contexts_->serve();
  if (probe_) take_probe();
  if (inbox_.take_log_seen() && active_ && !is_ending_) suspect();
}

void Loop::take_signals() {
  signalfd_siginfo info{};
  bool has_ended = false;
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      has_ended = true;
    } else if (std::ranges::find(kStopping, signal) != kStopping.end()) {
      if (asked_to_end_) {
        kill_at_ = 0;  // asked twice: at once
        continue;
      }
      asked_to_end_ = true;
      start_at_.reset();
      if (standby_) drop_standby("");
      systemd_.stopping();
      if (!active_) {
        is_over_ = true;
      } else if (!is_ending_) {
        ended_by_ = EndedBy::kRequest;
        begin_end(signal, settings_.grace);
      }
    } else if (active_ && !(signal == SIGWINCH && stage_.has_terminal)) {
      ::kill(active_->pid(), signal);
    }
  }
  if (has_ended) take_ended();
}

void Loop::take_ended() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
    if (WIFSTOPPED(status)) {
      if (active_ && pid == active_->pid()) follow_terminal();
      continue;
    }
    take_ended_child(pid, status);
  }
}

void Loop::take_ended_child(pid_t pid, int status) {
  if (standby_ && pid == standby_->pid()) {
    standby_->set_ended(exit_status_of(status));
    drop_standby("ended while it waited");
  } else if (active_ && pid == active_->pid()) {
    active_->set_ended(exit_status_of(status));
    if (stage_.has_terminal) ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
    if (!is_ending_) {
      // The terminal interrupts the program's group only: what ended it so was a person's wish.
      const ExitStatus& ended = *active_->ended();
      const bool interrupted =
          ended.signal == SIGINT || ended.signal == SIGHUP || ended.exit_code == 128 + SIGINT;
      if (stage_.has_terminal && interrupted) asked_to_end_ = true;
      ended_by_ = asked_to_end_ ? EndedBy::kRequest : EndedBy::kItself;
      begin_end(SIGTERM, std::min(settings_.grace, 1.0));
    }
  } else {
    std::erase_if(dying_, [pid](const auto& one) { return one->pid() == pid; });
  }
}

void Loop::take_probe() {
  const bool well = inbox_.take_well(), unwell = inbox_.take_unwell();
  if (!active_ || is_ending_ || (!well && !unwell)) return;
  if (well) {
    failed_probes_ = 0;
    last_sign_ = steady_seconds();
    if (state_ == State::kStarting || (state_ == State::kUnwell && !suspicion_until_))
      set_state(State::kReady);
    return;
  }
  if (state_ == State::kStarting) return;
  ++failed_probes_;
  if (state_ == State::kReady) set_state(State::kUnwell);
  if (failed_probes_ >= settings_.probe_failures)
    condemn(EndedBy::kProbe, fmt::format("the probe failed {} times in a row", failed_probes_));
}

void Loop::take_lines() {
  standby_->read_line();
  board_.update([&](Snapshot& now) { now.standby_ready = standby_->is_prepared(); });
}

double Loop::next_deadline() const {
  double until = next_beat_;
  const auto sooner = [&until](const std::optional<double>& time) {
    if (time) until = std::min(until, *time);
  };
  sooner(suspicion_until_);
  sooner(condemn_at_);
  sooner(start_at_);
  sooner(standby_at_);
  if (is_ending_) until = std::min(until, steady_seconds() + kPress);
  if (settings_.stall && active_ && !is_ending_) until = std::min(until, last_sign_ + *settings_.stall);
  return until;
}

void Loop::note_output() {
  const std::uint64_t bytes = active_->output_bytes();
  if (bytes != seen_bytes_) {
    board_.update([&](Snapshot& one) { one.output_bytes += bytes - seen_bytes_; });
    seen_bytes_ = bytes;
    last_sign_ = steady_seconds();
  }
  if (said_drops_ || !active_->drops_output()) return;
  said_drops_ = true;
  request_.say("the program's output cannot be written, and is dropped: free some space");
}

void Loop::meet_deadlines(double now) {
  if (now >= next_beat_) {
    board_.beat();
    next_beat_ = now + std::min(kBeat, systemd_.watchdog().value_or(kBeat));
    if (systemd_.watchdog()) systemd_.alive();
    if (active_) note_contained();
  }
  if (active_) note_output();
  if (is_ending_) press_end(now);
  if (is_over_) return;
  if (suspicion_until_ && !is_ending_) settle_suspicion(now);
  if (condemn_at_ && !is_ending_ && now >= *condemn_at_) {
    condemn_at_.reset();
    condemn(EndedBy::kPoisoned,
            fmt::format("the CUDA context is lost and the program is still there: {}", suspicion_));
  }
  if (settings_.stall && active_ && !is_ending_ && now - last_sign_ >= *settings_.stall)
    condemn(EndedBy::kStalled, fmt::format("no output for {} s", *settings_.stall));
  if (start_at_ && now >= *start_at_ && !active_) {
    start_at_.reset();
    if (!launch()) is_over_ = true;
  }
  if (standby_at_ && now >= *standby_at_ && active_ && !is_ending_) {
    standby_at_.reset();
    launch_standby();
  }
}

}  // namespace trapline::supervise
