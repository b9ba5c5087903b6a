// Starts one program: its output, the sockets it inherits, its process group, the terminal.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "core/result.hpp"

namespace trapline::supervise {

// A descriptor that is closed with this object.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = other.release();
    }
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void close();

 private:
  int fd_ = -1;
};

struct SpawnRequest {
  std::vector<std::string> arguments;    // not empty
  std::vector<std::string> environment;  // NAME=value
  int output = -1;                       // its standard output; -1: ours
  int error = -1;                        // its standard error; -1: ours
  std::vector<int> listening;            // become its descriptors 3, 4 ...: systemd's LISTEN_FDS
  int kept = -1;                         // a descriptor that it inherits under the same number; -1: none
  bool takes_terminal = false;           // its group becomes the terminal's foreground group
  sigset_t mask{};                       // of signals; what Trapline itself was started with
};

// The program leads a process group of its own. The caller must not have changed the disposition of any
// signal but SIGPIPE. An error says why nothing runs.
Result<pid_t> spawn(const SpawnRequest& request);

}  // namespace trapline::supervise
