// Operations that make NaN and Inf of finite numbers, by their names in the graph of a loss or of their
// kernels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

// Which numbers that an operation made, or was given, are not finite: the first place, how many, of how many.
struct BadPart {
  std::vector<std::int64_t> at{};  // empty: not known
  std::int64_t bad = 0, total = 0;
};

// ", at [0, 3] of what it made (60 of 120)"; empty where that is not known, or all of them are.
std::string made_text(const BadPart& part);

// nullptr: nothing is known of the operation.
const Point* point_of(std::string_view op);
const Domain* domain_of(std::string_view op);

}  // namespace trapline::diagnose
