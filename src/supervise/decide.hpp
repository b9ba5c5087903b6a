// What to do after a program has ended, or had to be ended: from facts alone, without a clock and without
// I/O.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/finding.hpp"

namespace trapline::supervise {

enum class Action : std::uint8_t {
  kFinish,      // the program is done, or was asked to end: nothing is started again
  kRetry,       // start it again
  kQuarantine,  // set the sample or the request aside, then start it again
  kStop,        // starting it again would only repeat the fault
};

std::string_view name_of(Action action);                      // "retry"
std::optional<Action> action_of_name(std::string_view name);  // of a policy file: retry, quarantine, stop

// Exit codes of `trapline supervise`, where it is not the program's own.
inline constexpr int kExitComesBack = 65;  // EX_DATAERR: stopped, since the fault would come back
inline constexpr int kExitCrashLoop = 70;  // EX_SOFTWARE: stopped, since it failed too often
inline constexpr int kExitTransient = 75;  // EX_TEMPFAIL: the same, but it may run later, or elsewhere

// Why a program does not run any more.
enum class EndedBy : std::uint8_t {
  kItself,    // it exited, or a signal killed it
  kPoisoned,  // its CUDA context was lost, and it lived on: Trapline ended it
  kStalled,   // it gave no sign of life for --stall seconds: Trapline ended it
  kProbe,     // --probe failed too often: Trapline ended it
  kRequest,   // somebody asked Trapline to end
};

struct Ending {
  EndedBy by = EndedBy::kItself;
  int exit_code = 0;
  int signal = 0;
  std::optional<Finding> root;        // what was found; nullopt: nothing
  std::vector<std::string> requests;  // fingerprints of the requests that can be set aside
  std::size_t samples = 0;            // of a data set, that can be set aside
  double lived = 0;                   // seconds
};

struct Policy {
  std::int64_t restarts = 10;         // at most so many in `window` seconds
  double window = 600;                // seconds
  double delay = 1;                   // seconds before the first restart; doubled with each that follows
  double max_delay = 60;              // seconds
  bool is_service = false;            // it answers others: a fault that comes twice does not stop it
  std::map<Cause, Action> decisions;  // what a policy file says instead
};

struct Decision {
  Action action = Action::kFinish;
  std::string reason;  // a sentence
  double delay = 0;    // seconds until the program is started again
  int exit_code = 0;   // of Trapline, when nothing is started again
};

class Judge {
 public:
  // `jitter` gives numbers in [0, 1): restarts of many machines must not come at the same moment.
  Judge(Policy policy, double (*jitter)()) : policy_(std::move(policy)), jitter_(jitter) {}

  // `now`: seconds of a clock that never goes back.
  Decision decide(const Ending& ending, double now);

 private:
  Decision judge(const Ending& ending) const;
  Decision judge_finding(const Ending& ending, const Finding& root) const;
  bool has_new_requests(const Ending& ending) const;
  Decision restart(Decision decision, const Ending& ending, double now);

  Policy policy_;
  double (*jitter_)();
  std::deque<double> restarts_;                   // when, within the window
  std::int64_t in_a_row_ = 0;                     // failures without a good while between them
  std::string last_;                              // what the last fault is told by
  std::vector<std::string> set_aside_;            // fingerprints
  std::map<std::string, int> samples_set_aside_;  // how often at the same fault, by key_of()
};

// What two findings have in common when they are the same fault: cause, operation, argument and line.
std::string key_of(const Finding& finding);

// Whether a process in which this was found can go on using its GPU; false for what ruins the context.
bool ruins_context(const Finding& finding);

}  // namespace trapline::supervise
