#include "run/forwarding.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "run/process_state.hpp"

namespace trapline {
namespace {

// Whoever sends a signal to each process of a session or a container, one by one, or to a pid and then to its
// group as `timeout` does, has sent it to the witness too by then.
constexpr long long kWaitMs = 20;
// Unless it did not get a processor meanwhile: a sender that is still running may be amidst its round.
constexpr long long kLongestWaitMs = 400;
constexpr int kLookAtSenderMs = 5;
constexpr int kLookMs = 1000;  // between looks without any event

void resend(pid_t program, int signal, int code, sigval value) {
  if (code != SI_QUEUE) {
    ::kill(program, signal);
    return;
  }
  ::sigqueue(program, signal, value);
}

}  // namespace

SignalForwarding::SignalForwarding() {
  sigset_t taken;
  sigfillset(&taken);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    struct sigaction action {};
    // What was ignored at the start stays so: nohup, and jobs that a script starts with `&`.
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN && signal != SIGCHLD)
      sigdelset(&taken, signal);
  }
  sigprocmask(SIG_BLOCK, &taken, &before_);
  signals_ = ::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
  witness_ = std::make_unique<Witness>(taken);
}

SignalForwarding::~SignalForwarding() {
  witness_.reset();
  take_signals();  // meant for a program that has ended
  if (signals_ >= 0) ::close(signals_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void SignalForwarding::set_target(pid_t program) {
  program_ = program;
  witness_->watch(program);
  if (program != 0) return;
  came_.clear();
  delay_ = 0;
}

void SignalForwarding::take_signals() {
  signalfd_siginfo info{};
  while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD && info.ssi_code > 0) continue;  // it has only woken us
    sigval value{};
    value.sival_ptr = reinterpret_cast<void*>(static_cast<std::uintptr_t>(info.ssi_ptr));
    came_.push_back({signal, info.ssi_code, static_cast<pid_t>(info.ssi_pid), value, monotonic_ms()});
  }
}

void SignalForwarding::deliver_due() {
  while (!came_.empty()) {
    const Came one = came_.front();
    // What the program sends to its parent, and what the witness does to wake Trapline, is not for the
    // program.
    const bool is_ours = one.code <= 0 && (one.sender == program_ || one.sender == witness_->pid());
    const long long waited = monotonic_ms() - one.at;
    // Two that came one after the other must not be handed on at once: the kernel would make one of them.
    if (waited < std::max(kWaitMs, delay_)) return;
    if (waited < kLongestWaitMs && one.code <= 0 && !is_ours && is_running(one.sender)) return;
    came_.pop_front();
    delay_ = came_.empty() ? 0 : std::min(waited, kLongestWaitMs);
    if (!witness_->saw(one.signal, one.sender, one.code, one.at) && !is_ours)
      resend(program_, one.signal, one.code, one.value);
  }
}

void SignalForwarding::pass_on() {
  long long wait = kLookMs;
  if (!came_.empty()) {
    const long long due = came_.front().at + std::max(kWaitMs, delay_);
    wait = std::clamp<long long>(due - monotonic_ms(), kLookAtSenderMs, kWaitMs);
  }
  pollfd ready{signals_, POLLIN, 0};
  ::poll(&ready, 1, static_cast<int>(wait));
  take_signals();
  deliver_due();
}

void SignalForwarding::stop_along() {
  // A signal that is on its way may be the one that continues the program.
  take_signals();
  while (!came_.empty()) pass_on();
  if (is_stopped(program_)) witness_->stop_along();
}

bool SignalForwarding::holds(int signal) const {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, signal) == 1;
}

}  // namespace trapline
