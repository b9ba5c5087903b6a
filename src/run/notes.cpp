#include "run/notes.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "run/environment.hpp"

namespace trapline {
namespace {

// "0.67 %"; 100 % is said of all only, and no share is a power of ten.
std::string share_of(std::uint64_t part, std::uint64_t whole) {
  const double share = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (part < whole && share >= 99.5) return "over 99 %";
  if (part > 0 && share < 0.01) return "under 0.01 %";
  return share >= 9.95 ? fmt::format("{:.0f} %", share) : fmt::format("{:.2g} %", share);
}

}  // namespace

bool is_request_to_end(const ExitStatus& ended) {
  const int signal = ended.signal;
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGPIPE ||
         signal == SIGQUIT || ended.exit_code == 128 + SIGINT;
}

std::vector<std::string> notes_about(const ExitStatus& ended, bool has_findings,
                                     std::size_t guarded_processes, bool is_cpp) {
  std::vector<std::string> notes;
  if (ended.signal != 0 && !is_request_to_end(ended)) {
    std::string note =
        fmt::format("the program was killed by signal {} ({})", ended.signal, strsignal(ended.signal));
    if (ended.core_dumped) note += ", core dumped";
    if (ended.signal == SIGKILL) note += "; the kernel does that when memory runs out (see dmesg)";
    notes.push_back(note);
  }
  const bool failed = ended.exit_code != 0 && !is_request_to_end(ended);
  if (failed && !has_findings && is_cpp) {
    notes.push_back(
        "the program failed without a fault that Trapline saw. Where a line at its start says that there is "
        "no "
        "guard for its libtorch, it ran unguarded: build the guard with that line's command, and run again");
  } else if (failed && !has_findings && guarded_processes == 0) {
    notes.push_back(
        "the program failed, and none of its processes was guarded: either none imported torch, or it ended "
        "before torch was there, or Python was told to ignore PYTHONPATH (python -I, -E, -S), or the guard "
        "was "
        "switched off (TRAPLINE_OFF=1)");
  }
  return notes;
}

std::vector<std::string> notes_about(const Settled& settled, const ExitStatus& ended, bool has_findings,
                                     const std::string& where) {
  std::vector<std::string> notes;
  if (!settled.other.empty()) {
    notes.push_back(fmt::format("the program ended by {}: that is not a kind of fault that Trapline knows",
                                settled.other));
  }
  if (has_findings && settled.caught_before) {
    notes.push_back(ended.signal != 0
                        ? fmt::format("the program caught this fault; later signal {} ended it", ended.signal)
                        : fmt::format("the program caught this fault; later it ended with exit code {}",
                                      ended.exit_code));
  }
  // An abort is how an uncaught exception ends a C++ program.
  if (has_findings && !settled.caught_before && !settled.uncaught && ended.signal != 0 &&
      ended.signal != SIGABRT) {
    notes.push_back("whether the program had caught this fault before is not known");
  }
  const std::string caught = sentence_about(settled.caught);
  if (!caught.empty()) notes.push_back(fmt::format("{}; {}", caught, where));
  return notes;
}

std::string why_unguarded(std::span<const std::string> arguments, std::span<const std::string> environment) {
  if (find_variable(environment, "TRAPLINE_OFF") == "1") return "TRAPLINE_OFF=1 switches the guard off";
  const std::string_view program = arguments.empty() ? std::string_view() : arguments.front();
  if (!program.substr(program.rfind('/') + 1).starts_with("python")) return "";
  for (const std::string& word : arguments.subspan(1)) {
    if (word.size() < 2 || word[0] != '-' || word[1] == '-') break;
    for (std::size_t i = 1; i < word.size(); ++i) {
      const char flag = word[i];
      if (flag == 'I' || flag == 'E' || flag == 'S')
        return fmt::format("python -{} does not read PYTHONPATH, by which the guard gets in", flag);
      // What follows these is their value.
      if (flag == 'c' || flag == 'm' || flag == 'W' || flag == 'X') return "";
    }
  }
  return "";
}

std::string how_to_see(const std::map<std::string, std::uint64_t>& caught) {
  const bool one = caught.size() == 1 && caught.begin()->second == 1;
  return fmt::format("to see {}: trapline run --report DIR -- ...", one ? "it" : "them");
}

std::string sentence_about(const SkipCounts& skip) {
  if (skip.skipped == 0) return "";
  std::string text = fmt::format("{} of {} optimizer steps {} skipped ({})", skip.skipped, skip.steps,
                                 skip.skipped == 1 ? "was" : "were", share_of(skip.skipped, skip.steps));
  if (skip.samples > 0) {
    text += fmt::format(", {} sample{} in {}", skip.samples, skip.samples == 1 ? " is" : "s are",
                        skip.quarantine);
    if (skip.quarantine.empty()) text = text.substr(0, text.rfind(" in ")) + " in no file";
  } else {
    text += "; which samples of the data set were bad is not known";
  }
  return text;
}

std::string unchecked_line(const Collected& collected) {
  const auto& ends = collected.ends;
  if (collected.guarded_processes == 0) {
    return "no operation that Trapline checks ran: no guarded process imported torch, so this run says "
           "nothing about the program";
  }
  std::size_t idle = 0;
  for (const ProcessEnd& end : ends) idle += end.checked == false ? 1 : 0;
  if (!collected.findings.empty() || idle < collected.guarded_processes) return "";
  return "no operation that Trapline checks ran, so this run says nothing about the program: look whether it "
         "ended early, e.g. because it asks for more GPUs than --cpu shows";
}

}  // namespace trapline
