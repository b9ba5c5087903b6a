#include "catalogue/phrases.hpp"

#include <deque>

namespace trapline {

void Phrases::add(std::string_view folded, std::uint32_t id) {
  if (folded.empty()) return;
  State at = 0;
  for (const char c : folded) {
    const int letter = letter_of(c);
    if (letter < 0) return;  // not folded: cannot occur
    State next = nodes_[at].next[static_cast<std::size_t>(letter)];
    if (next == 0) {
      next = static_cast<State>(nodes_.size());
      nodes_.emplace_back();
      nodes_[at].next[static_cast<std::size_t>(letter)] = next;
    }
    at = next;
  }
  nodes_[at].ids.push_back(id);
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
    node.output = node.ids.empty() ? nodes_[node.fail].output : at;
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
