// Operations that make NaN and Inf of finite numbers, by their names in the graph of a loss or of their
// kernels.
#pragma once

#include <string_view>

namespace trapline::diagnose {

// Where an operation has no finite derivative: "at 0".
struct Point {
  std::string_view op, where;
};

// What keeps an operation's input where its result is finite: "clamp what goes into it to 0 or more".
struct Domain {
  std::string_view op, advice;
  bool of_any = false;  // also where it was given infinities: masks
};

// nullptr: nothing is known of the operation.
const Point* point_of(std::string_view op);
const Domain* domain_of(std::string_view op);

}  // namespace trapline::diagnose
