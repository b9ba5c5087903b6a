// What is known of the program, for everybody who looks at it from outside: one writer, many readers.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace trapline::supervise {

enum class State : std::uint8_t {
  kStarting,  // it runs, and is not ready yet
  kReady,
  kUnwell,    // the probe fails, or its log speaks of a lost context and that is being looked into
  kPoisoned,  // its CUDA context is lost, and it is still alive
  kEnding,    // it is being ended
  kWaiting,   // for the next start
  kStopped,   // nothing will be started again
};
std::string_view name_of(State state);  // "ready"

// One fault and what became of it.
struct Incident {
  double when = 0;  // unix time
  std::int64_t start = 0;
  std::string code;     // "TL103"; empty: nothing was found
  std::string summary;  // or how it ended
  std::string where;    // "train.py:31"; empty: not known
  std::string action;   // "retry"
  std::string reason;
  std::optional<double> to_ready;  // seconds from the fault to the next ready
};

struct Snapshot {
  State state = State::kStarting;
  double since = 0;    // unix time of the state
  double entered = 0;  // the same by steady_seconds()
  double started = 0;  // unix time of the supervisor
  std::string program;
  std::int64_t pid = 0;
  std::int64_t starts = 0;
  std::int64_t refused = 0;  // fingerprints of requests
  bool has_standby = false;
  bool standby_ready = false;
  std::map<std::string, std::int64_t> faults;     // by code; "none" where no cause was found
  std::map<std::string, std::int64_t> decisions;  // by name
  std::deque<Incident> incidents;                 // the newest last, at most 50
  std::optional<double> last_to_ready;            // seconds
  double poisoned_seconds = 0;                    // alive with a lost context
  double unready_seconds = 0;                     // not ready, whatever the reason
  std::uint64_t output_bytes = 0;
};

class Board {
 public:
  // `change` gets the snapshot to write in; nobody reads it meanwhile.
  template <class F>
  void update(F change) {
    const std::scoped_lock lock(mutex_);
    change(now_);
  }
  // With the seconds of the state that lasts counted in.
  Snapshot read() const;

  // The supervisor's loop says that it goes round; is_alive() is false when it has not for ten seconds.
  void beat();
  bool is_alive() const;

 private:
  mutable std::mutex mutex_;
  Snapshot now_;
  double beat_ = 0;
};

double unix_time();
double steady_seconds();  // of a clock that never goes back

// Prometheus' text format.
std::string metrics_of(const Snapshot& now);
// A page for people: one self-contained HTML document without scripts.
std::string page_of(const Snapshot& now);
// {"state": "ready", ...}
std::string json_of(const Snapshot& now);

}  // namespace trapline::supervise
