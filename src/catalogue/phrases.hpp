// Finds any of many folded phrases in a stream of text in one pass, in linear time (Aho and Corasick).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trapline {

class Phrases {
 public:
  using State = std::uint16_t;  // small nodes: the table is filled anew by every process

  // Room for so many letters of phrases that share no beginning; only to save copies.
  void reserve(std::size_t nodes) { nodes_.reserve(nodes); }
  // Adds a phrase in folded form. The identifiers of one phrase may be several. Throws when there are more
  // than 65,535 states.
  void add(std::string_view folded, std::uint32_t id);
  // To be called once, after the last add() and before the first step().
  void build();

  State step(State state, char c) const {
    const int letter = letter_of(c);
    return letter < 0 ? 0 : nodes_[state].next[static_cast<std::size_t>(letter)];
  }
  // True when some phrase ends in this state.
  bool ends(State state) const { return nodes_[state].output != 0; }
  // Calls found(id) for every phrase that ends here, the longest first.
  template <class Found>
  void each(State state, Found&& found) const {
    for (State at = nodes_[state].output; at != 0; at = nodes_[nodes_[at].fail].output) {
      for (std::int32_t id = nodes_[at].first; id >= 0; id = ids_[static_cast<std::size_t>(id)].next)
        found(ids_[static_cast<std::size_t>(id)].id);
    }
  }

 private:
  static constexpr std::size_t kLetters = 34;  // a-z and 2-9, as folding leaves them
  static constexpr int letter_of(char c) {
    if (c >= 'a' && c <= 'z') return c - 'a';
    return c >= '2' && c <= '9' ? c - '2' + 26 : -1;
  }

  struct Node {
    std::array<State, kLetters> next{};
    State fail = 0;
    State output = 0;         // this node or the nearest suffix at which a phrase ends
    std::int32_t first = -1;  // of the identifiers that end here, in ids_; -1: none
  };
  struct Identifier {
    std::uint32_t id;
    std::int32_t next;  // the one added after it; -1: none
  };
  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::vector<Identifier> ids_;
};

}  // namespace trapline
