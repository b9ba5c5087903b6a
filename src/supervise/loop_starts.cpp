// The loop's hands: starting the program, its standby, and ending its processes.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "supervise/loop.hpp"
#include "supervise/tree.hpp"

namespace trapline::supervise {
namespace {

constexpr double kStandbyPause = 0.2;  // seconds after the program was ready: they must not compete
constexpr int kStandbyFailures = 3;    // in a row, after which there is none any more
constexpr double kLeftBehind = 1;      // seconds that processes get that outlived the program

// "ready, start 3; last fault TL103 at server.py:31: quarantine"
std::string status_line(const Snapshot& now) {
  std::string line = fmt::format("{}, start {}", name_of(now.state), now.starts);
  if (now.incidents.empty()) return line;
  const Incident& last = now.incidents.back();
  line += fmt::format("; last fault {}", last.code.empty() ? "without a known cause" : last.code);
  if (!last.where.empty()) line += " at " + last.where;
  return line + ": " + last.action;
}

}  // namespace

bool Loop::launch() {
  ++starts_;
  if (standby_) {
    standby_->go();
    active_ = std::move(standby_);
  } else {
    auto start = Start::launch(stage_, ++folders_, false);
    if (!start) {
      outcome_.exit_code = 2;
      outcome_.has_failed = true;
      cannot_start_ = start.error();
      request_.say(start.error().line());
      return false;
    }
    active_ = std::move(start).value();
  }
  is_ending_ = killed_ = false;
  suspicion_until_.reset();
  condemn_at_.reset();
  dismissed_.clear();
  noted_.clear();
  failed_probes_ = 0;
  seen_bytes_ = active_->output_bytes();
  last_sign_ = steady_seconds();
  board_.update([this](Snapshot& now) {
    now.pid = active_->pid();
    now.starts = starts_;
    now.standby_ready = false;
  });
  set_state(probe_ ? State::kStarting : State::kReady);
  if (probe_) probe_->set(true, true);
  return true;
}

void Loop::launch_standby() {
  auto start = Start::launch(stage_, ++folders_, true);
  if (!start) return request_.say(start.error().line());
  standby_ = std::move(start).value();
}

// `why`: what is said about it; empty: nothing, since none is wanted any more.
void Loop::drop_standby(const std::string& why) {
  if (!standby_->ended()) {
    signal_all(descendants(standby_->pid(), {}), SIGKILL);
    ::kill(-standby_->pid(), SIGKILL);
  }
  standby_.reset();
  board_.update([](Snapshot& now) { now.standby_ready = false; });
  if (why.empty()) return;
  if (++standby_failures_ >= kStandbyFailures) {
    request_.say("the standby " + why + "; there will be none any more");
    return;
  }
  request_.say("the standby " + why + "; another one is started");
  standby_at_ = steady_seconds() + settings_.policy.delay * standby_failures_;
}

std::vector<pid_t> Loop::others() const {
  std::vector<pid_t> out;
  if (last_watch_ && last_watch_->pid() > 0) out.push_back(last_watch_->pid());
  if (standby_) out.push_back(standby_->pid());
  return out;
}

std::vector<pid_t> Loop::program_tree() const { return descendants(::getpid(), others()); }

void Loop::begin_end(int signal, double grace) {
  is_ending_ = true;
  killed_ = false;
  kill_at_ = steady_seconds() + grace;
  suspicion_until_.reset();
  condemn_at_.reset();
  if (probe_) probe_->set(false, true);
  if (state_ != State::kPoisoned) set_state(State::kEnding);
  if (active_->ended()) {
    signal_all(program_tree(), signal);
  } else if (ended_by_ == EndedBy::kRequest) {
    ::kill(active_->pid(),
           signal);  // as it would have got it alone; what it tells its children is its own matter
  } else {
    ::kill(-active_->pid(), signal);
  }
}

void Loop::press_end(double now) {
  const std::vector<pid_t> tree = program_tree();
  if (active_->ended() && tree.empty()) return finish_end();
  if (active_->ended() && !killed_ && kill_at_ > now + kLeftBehind) {
    signal_all(tree, SIGTERM);
    kill_at_ = now + kLeftBehind;
  }
  if (now < kill_at_) return;
  killed_ = true;
  // Stopped first: what forks faster than it is killed would win.
  signal_all(tree, SIGSTOP);
  signal_all(tree, SIGKILL);
}

void Loop::finish_end() {
  active_->finish_streams();
  note_output();
  const ExitStatus ended = *active_->ended();
  Decision decision;
  if (decided_) {
    decision = *decided_;
    decided_.reset();
  } else {
    Ending ending;
    ending.by = ended_by_;
    ending.exit_code = ended.exit_code;
    ending.signal = ended.signal;
    decision = decide(std::move(ending), active_->evidence(ended, false));
  }
  forget_requests();
  if (folder_.is_private()) {
    std::error_code ignored;
    std::filesystem::remove_all(active_->folder(), ignored);
  }
  active_.reset();
  is_ending_ = false;
  act(decision);
}

// What the processes that are gone were working on; a standby keeps its own.
void Loop::forget_requests() {
  std::vector<pid_t> alive;
  if (standby_) {
    alive = descendants(standby_->pid(), {});
    alive.push_back(standby_->pid());
  }
  forget_requests_in_flight(own_folder_.path(), alive);
}

// Replaces a program that is of no use any more without waiting for its end: its requests wait at the
// sockets.
void Loop::replace_now(const Decision& decision) {
  std::vector<pid_t> tree = descendants(active_->pid(), {});
  ::kill(-active_->pid(), SIGKILL);
  signal_all(tree, SIGKILL);
  forget_requests();
  dying_.push_back(std::move(active_));
  act(decision);
}

// Ends those processes of the program that have lost their contexts, where their parent starts others:
// workers of a server, kernels of a notebook server. False: the program itself is one of them, or it is not
// known which they are.
bool Loop::replace_processes(const Decision& decision) {
  const std::vector<pid_t> dead = contexts_ ? contexts_->dead() : std::vector<pid_t>{};
  if (!settings_.replaces_process || dead.empty() || decision.delay > 0 ||
      std::ranges::find(dead, active_->pid()) != dead.end())
    return false;
  signal_all(dead, SIGKILL);
  request_.say(fmt::format("{} of the program's processes {} ended; the program goes on", dead.size(),
                           dead.size() == 1 ? "was" : "were"));
  active_->forget_log();
  dismissed_.clear();
  set_state(probe_ ? State::kStarting : State::kReady);
  if (probe_) probe_->set(true, true);
  return true;
}

// Ctrl-Z: the program's group is stopped by the terminal, Trapline with it, and both go on with `fg`.
void Loop::follow_terminal() {
  if (!stage_.has_terminal) return;
  ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
  ::kill(::getpid(), SIGSTOP);
  if (::tcgetpgrp(STDIN_FILENO) == ::getpgrp()) ::tcsetpgrp(STDIN_FILENO, active_->pid());
  ::kill(-active_->pid(), SIGCONT);
  last_sign_ = steady_seconds();
}

void Loop::set_state(State state) {
  const double now = steady_seconds();
  const State before = state_;
  const double lasted = now - state_since_;
  state_ = state;
  state_since_ = now;
  const bool is_ready = state == State::kReady;
  board_.update([&](Snapshot& one) {
    if (before != State::kReady) one.unready_seconds += lasted;
    if (before == State::kPoisoned) one.poisoned_seconds += lasted;
    if (before != state) one.since = unix_time();
    one.entered = now;
    one.state = state;
    if (is_ready && fault_at_) {
      one.last_to_ready = now - *fault_at_;
      if (!one.incidents.empty()) one.incidents.back().to_ready = one.last_to_ready;
    }
  });
  systemd_.status(status_line(board_.read()));
  if (!is_ready) return;
  fault_at_.reset();
  if (!saw_ready_) systemd_.ready();
  saw_ready_ = true;
  if (probe_) probe_->set(true, false);
  if (settings_.standby && !standby_ && standby_failures_ < kStandbyFailures)
    standby_at_ = now + kStandbyPause;
}

}  // namespace trapline::supervise
