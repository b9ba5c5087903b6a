// What `trapline doctor` says: one line a thing, what it means, and what to do.
#pragma once

#include <string>
#include <vector>

namespace trapline::doctor {

enum class Level : unsigned char { kOk, kNote, kProblem };

struct Line {
  Level level = Level::kOk;
  std::string topic;  // "driver", "torch", the name of a variable
  std::string fact;
  std::string means{};  // empty: the fact says it
  std::string todo{};   // empty: nothing
};

using Lines = std::vector<Line>;

}  // namespace trapline::doctor
