#include "catalogue/phrases.hpp"

#include <deque>
#include <limits>
#include <stdexcept>

namespace trapline {

void Phrases::add(std::string_view folded, std::uint32_t id) {
  if (folded.empty()) return;
  State at = 0;
  for (const char c : folded) {
    const int letter = letter_of(c);
    if (letter < 0) return;  // not folded: cannot occur
    State next = nodes_[at].next[static_cast<std::size_t>(letter)];
    if (next == 0) {
      if (nodes_.size() > std::numeric_limits<State>::max()) throw std::length_error("too many phrases");
      next = static_cast<State>(nodes_.size());
      nodes_.emplace_back();
      nodes_[at].next[static_cast<std::size_t>(letter)] = next;
    }
    at = next;
  }
  std::int32_t* last = &nodes_[at].first;
  while (*last >= 0) last = &ids_[static_cast<std::size_t>(*last)].next;
  *last = static_cast<std::int32_t>(ids_.size());
  ids_.push_back({id, -1});
}

void Phrases::build() {
  std::deque<State> queue;
  for (const State child : nodes_[0].next) {
    if (child != 0) queue.push_back(child);
  }
  while (!queue.empty()) {
    const State at = queue.front();
    queue.pop_front();
    Node& node = nodes_[at];
    node.output = node.first < 0 ? nodes_[node.fail].output : at;
    for (std::size_t letter = 0; letter < kLetters; ++letter) {
      const State child = node.next[letter];
      const State fallback = nodes_[node.fail].next[letter];
      if (child == 0) {
        node.next[letter] = fallback;
      } else {
        nodes_[child].fail = fallback;
        queue.push_back(child);
      }
    }
  }
}

}  // namespace trapline
