// Ranks that complain about another one: what they say is one sentence for each way of complaining, however
// many they are. They are innocent; the one that they waited for is not.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/finding.hpp"
#include "log/events/event.hpp"

namespace trapline {

class Peers {
 public:
  // `rank`: -1 where the text does not tell whose line it is. Of one rank the first complaint counts.
  void add(const Event& event, int rank);

  bool empty() const { return groups_.empty(); }

  // "ranks 0-4, 6, 7 waited for rank 5 (NCCL time-out)", one each; `root`: -1 where it is not known.
  // `but_first`: the first one is the summary of the root.
  std::vector<Finding> consequences(int root, bool but_first) const;

  // When nothing else was printed: the first sentence, without a claim why. `silent`: the one rank that said
  // nothing.
  std::string summary(int silent) const;

 private:
  struct Group {
    Complaint complaint = Complaint::kNone;
    std::string_view failure;
    bool by_launcher = false;
    std::string op;
    std::set<std::int64_t> ranks;
    std::vector<Evidence> evidence;
  };

  const Group* first() const;
  std::string sentence(const Group& group, int whom, bool with_op) const;

  std::vector<Group> groups_;
  std::set<std::int64_t> ranks_;  // that have complained
};

}  // namespace trapline
