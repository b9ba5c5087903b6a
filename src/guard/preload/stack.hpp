// The calling thread's C++ stack, as the frames of docs/facts.md.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace trapline::native {

struct Stack {
  nlohmann::json frames = nlohmann::json::array();  // outermost first; without the guard's own
  nlohmann::json origin;  // the deepest frame of the program; null where debug information names none
};

// Inlined calls are frames of their own. `operation` is the name by which the origin's line calls it. File
// and line are known where the program has debug information.
Stack capture_stack(const std::string& operation);

}  // namespace trapline::native
