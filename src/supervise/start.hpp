// One start of the program: what it was started with, its streams, its findings, how it ended.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/finding.hpp"
#include "run/session.hpp"
#include "supervise/live_log.hpp"
#include "supervise/relay.hpp"
#include "supervise/spawn.hpp"

namespace trapline::supervise {

// What all starts have in common.
struct Stage {
  std::vector<std::string> arguments;
  RunOptions run;                    // its `reports` is the folder of all starts
  std::filesystem::path own_folder;  // private to the supervisor: requests, the contexts' socket
  std::string mark;                  // "TRAPLINE_SUPERVISOR=..." in every process below
  std::vector<int> listening;
  bool has_terminal = false;       // our terminal is the program's to read and to be interrupted by
  sigset_t mask{};                 // of signals, as Trapline was started with it
  std::function<void()> log_seen;  // called from other threads
};

// What is known of a fault.
struct Evidence {
  Report report;
  bool uncaught = false;       // some finding is of an exception that nobody caught
  bool caught_before = false;  // the program had caught what was found
};

class Start {
 public:
  // `as_standby`: it does its imports, says so, and waits until it is told to go on.
  static Result<std::unique_ptr<Start>> launch(const Stage& stage, std::int64_t number, bool as_standby);
  ~Start();

  std::int64_t number() const { return number_; }
  pid_t pid() const { return pid_; }
  double started() const { return started_; }  // seconds of steady_seconds()
  const std::filesystem::path& folder() const { return prepared_.folder.path(); }
  const std::optional<ExitStatus>& ended() const { return ended_; }
  void set_ended(const ExitStatus& status) { ended_ = status; }

  // The standby's line; -1 when it is none.
  int standby_line() const { return line_.get(); }
  // It has done its imports and waits.
  bool is_prepared() const { return prepared_to_go_; }
  void read_line();
  void go();

  std::uint64_t output_bytes() const;
  bool drops_output() const;
  // All processes are gone: takes what is left in the pipes.
  void finish_streams();

  // What its processes wrote and its output told. `ended`: so far as known.
  // `lost`: its CUDA context is. Then, and where no finding of the guard's is known to have ended it, what
  // the output tells of a lost context comes first, whatever was contained before.
  Evidence evidence(const ExitStatus& ended, bool lost);
  Report log_report() { return log_->report(); }
  void forget_log() { log_->forget(); }

 private:
  Start(Prepared prepared, std::int64_t number) : prepared_(std::move(prepared)), number_(number) {}

  Prepared prepared_;
  std::int64_t number_;
  pid_t pid_ = 0;
  double started_ = 0;
  Descriptor line_;
  bool prepared_to_go_ = false;
  std::unique_ptr<LiveLog> log_;
  std::vector<std::unique_ptr<Relay>> relays_;
  std::optional<ExitStatus> ended_;
};

}  // namespace trapline::supervise
