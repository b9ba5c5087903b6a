// Asks the program's own processes whether their CUDA contexts are alive: they know, the log only suggests
// it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "supervise/spawn.hpp"

namespace trapline::supervise {

enum class ContextAnswer { kNotAsked, kWaiting, kNone, kAlive, kDead };

// A socket that guarded processes connect to (python/trapline/_supervise/context.py). Each is asked in one
// datagram and answers in one. Without threads: the owner's loop waits for the descriptors.
class Contexts {
 public:
  static Result<Contexts> open(const std::filesystem::path& socket);

  // The listening descriptor first, then one for each process.
  std::vector<int> descriptors() const;
  // Something is there at one of them: takes who connects, what they say, who has gone.
  void serve();

  // Asks every connected process of `pids`; how many were asked.
  std::size_t ask(const std::vector<pid_t>& pids);
  // Of those that were asked: kDead when one is, kWaiting while one may still say so, else kAlive, or kNone.
  ContextAnswer answer() const;
  // The processes that have answered that theirs is lost.
  std::vector<pid_t> dead() const;

 private:
  struct Peer {
    Descriptor socket;
    ContextAnswer answer = ContextAnswer::kNotAsked;
  };

  explicit Contexts(Descriptor listening) : listening_(std::move(listening)) {}
  bool read_from(Peer& peer);

  Descriptor listening_;
  std::map<pid_t, Peer> peers_;
};

}  // namespace trapline::supervise
