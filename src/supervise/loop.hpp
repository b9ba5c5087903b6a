// The supervisor's loop: one thread that waits for everything that can happen, and does one thing at a time.
#pragma once

#include <sys/signalfd.h>
#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "run/report_folder.hpp"
#include "supervise/board.hpp"
#include "supervise/contexts.hpp"
#include "supervise/decide.hpp"
#include "supervise/inbox.hpp"
#include "supervise/last_watch.hpp"
#include "supervise/probe.hpp"
#include "supervise/requests.hpp"
#include "supervise/start.hpp"
#include "supervise/status_server.hpp"
#include "supervise/supervisor.hpp"
#include "supervise/surroundings.hpp"

namespace trapline::supervise {

class Loop {  // NOLINT(clang-analyzer-optin.performance.Padding): by what the members are for
 public:
  Loop(const Request& request, ReportFolder folder, ReportFolder own_folder, sigset_t mask);

  // Whatever happened: no program is left running that nobody watches.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Opens what is needed. An error means that nothing was started.
  std::optional<Error> prepare();
  Outcome run();

 private:
  // What happens, and what is done about it. loop.cpp
  void wait(double until);
  void take_signals();
  void take_ended();
  void take_ended_child(pid_t pid, int status);
  void take_probe();
  void take_lines();
  void note_output();
  double next_deadline() const;
  void meet_deadlines(double now);

  // The program. loop_starts.cpp
  bool launch();
  void launch_standby();
  void drop_standby(const std::string& why);
  void begin_end(int signal, double grace);
  void press_end(double now);
  void finish_end();
  std::vector<pid_t> others() const;  // processes of ours that are not the program's
  std::vector<pid_t> program_tree() const;
  void replace_now(const Decision& decision);
  void forget_requests();
  bool replace_processes(const Decision& decision);
  void follow_terminal();
  void set_state(State state);

  // Faults. loop_faults.cpp
  void suspect();
  void settle_suspicion(double now);
  void condemn(EndedBy by, const std::string& line);
  Decision decide(Ending ending, Evidence evidence);
  void set_aside(Decision& decision, const std::optional<Finding>& root,
                 const std::vector<std::string>& samples, const std::vector<RequestInFlight>& requests);
  void tell(const Decision& decision, const std::optional<Finding>& root);
  std::vector<RequestInFlight> culprits(const std::optional<Finding>& root);
  void note_contained();
  static void add_incident(Snapshot& now, Incident incident);
  void act(const Decision& decision);

  const Request& request_;
  const Settings& settings_;
  ReportFolder folder_, own_folder_;
  Stage stage_;
  Inbox inbox_;
  Board board_;
  Systemd systemd_;
  Judge judge_;
  std::vector<Descriptor> sockets_;
  Descriptor signals_;
  std::optional<Contexts> contexts_;
  std::unique_ptr<LastWatch> last_watch_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<Probe> probe_;

  std::unique_ptr<Start> active_, standby_;
  std::vector<std::unique_ptr<Start>> dying_;  // killed, and replaced already
  std::int64_t starts_ = 0, folders_ = 0;
  std::optional<Error> cannot_start_;
  State state_ = State::kStarting;
  double state_since_ = 0;

  std::optional<double> suspicion_until_;  // answers about the contexts are waited for
  std::optional<double> condemn_at_;       // its context is lost: when it is ended
  std::string suspicion_;                  // what the log says
  State before_suspicion_ = State::kStarting;
  std::string dismissed_;  // the key of what is being looked into
  std::int64_t failed_probes_ = 0;
  double last_sign_ = 0;  // of life
  std::uint64_t seen_bytes_ = 0;
  std::map<std::string, int> deaths_;    // in how many ends a request was in flight, by fingerprint
  std::map<std::string, double> noted_;  // findings by file: since when they are there; -1: counted

  bool asked_to_end_ = false;
  bool saw_ready_ = false;
  bool is_ending_ = false;
  bool is_over_ = false;
  EndedBy ended_by_ = EndedBy::kItself;
  std::optional<Decision> decided_;  // before the end
  double kill_at_ = 0;
  bool killed_ = false;
  std::optional<double> start_at_;
  std::optional<double> standby_at_;
  int standby_failures_ = 0;
  std::optional<double> fault_at_;  // until it is ready again
  double next_beat_ = 0;
  bool said_drops_ = false;
  Outcome outcome_;
  std::vector<std::string> decisions_;
};

}  // namespace trapline::supervise
