// Which of a job's events may be the root, and which of them is the nearest.
#pragma once

#include <vector>

#include "log/reason/decide.hpp"

namespace trapline {

struct Candidate {
  const EventStream* stream = nullptr;
  const Event* event = nullptr;
  Precedence precedence = Precedence::kNever;
};

bool nearer(const Candidate& a, const Candidate& b);

// Takes out the warnings after which the program lived on to a failure of another kind.
void drop_outlived(std::vector<Candidate>& candidates);

// Drops warnings of a driver or a GPU where there is nothing else: the run went on without them. Returns
// whether it did.
bool drop_survived(std::vector<Candidate>& candidates);

// Of candidates that are in order: puts another one in the front where that tells more.
void prefer_collective(std::vector<Candidate>& candidates);
void prefer_majority(std::vector<Candidate>& candidates);

}  // namespace trapline
