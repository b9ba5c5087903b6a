// What runs the supervisor is told in its own way: systemd, Kubernetes, torchrun.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/finding.hpp"

namespace trapline::supervise {

// systemd's sd_notify(3) protocol. Without NOTIFY_SOCKET nothing happens.
class Systemd {
 public:
  Systemd();  // reads NOTIFY_SOCKET and WATCHDOG_USEC; the program below does not inherit them

  void ready();
  void status(std::string_view text);  // one line of `systemctl status`
  void stopping();
  void alive();  // WATCHDOG=1

  // Seconds after which alive() is due again; nullopt: nobody waits for it.
  std::optional<double> watchdog() const { return watchdog_; }
  bool is_there() const { return !path_.empty(); }

 private:
  void send(const std::string& text) const;

  std::string path_;
  std::optional<double> watchdog_;
};

// The file that Kubernetes shows as the reason of a container's end. Written where it exists, or where
// TRAPLINE_TERMINATION_LOG names another.
void write_termination_message(std::string_view text);

// torchrun shows the error file of the rank that failed first; where TORCHELASTIC_ERROR_FILE names one and
// nobody has written it, this is written in its own form: {"message": {"message": ..., "extraInfo": {...}}}.
void write_error_file(const Finding& root, std::string_view decision);

}  // namespace trapline::supervise
