#include "run/forwarding.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace trapline {
namespace {

// The signal handler reads and writes them, so they are the only variables of this room with static storage.
std::atomic<pid_t> g_program{0};
std::atomic<std::uint64_t> g_held{0};  // bit N: signal N
static_assert(std::atomic<pid_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

constexpr std::uint64_t bit(int signal) { return std::uint64_t{1} << static_cast<unsigned>(signal); }

// What the terminal sends (SI_KERNEL) goes to the whole foreground group, so the program has it already. What
// a process sends to Trapline's pid is meant for the program, unless the program sent it itself.
void forward(int signal, siginfo_t* info, void*) {
  const int saved = errno;
  const pid_t program = g_program.load(std::memory_order_relaxed);
  if (program == 0) {
    g_held.fetch_or(bit(signal), std::memory_order_relaxed);
  } else if (info->si_code <= 0 && info->si_pid != program) {
    ::kill(program, signal);
  }
  errno = saved;
}

}  // namespace

SignalForwarding::SignalForwarding() {
  g_held.store(0, std::memory_order_relaxed);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    // What was ignored at the start stays so: nohup, and jobs that a script starts with `&`.
    if (before_[i].sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_sigaction = forward;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigfillset(&action.sa_mask);
    sigaction(kSignals[i], &action, nullptr);
  }
}

SignalForwarding::~SignalForwarding() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

void SignalForwarding::set_target(pid_t program) {
  g_program.store(program, std::memory_order_relaxed);
  if (program == 0) return;
  const std::uint64_t held = g_held.exchange(0, std::memory_order_relaxed);
  for (const int signal : kSignals) {
    if ((held & bit(signal)) != 0) ::kill(program, signal);
  }
}

bool SignalForwarding::holds(int signal) const {
  return (g_held.load(std::memory_order_relaxed) & bit(signal)) != 0;
}

}  // namespace trapline
