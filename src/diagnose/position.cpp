#include "diagnose/position.hpp"

#include <fmt/format.h>

namespace trapline::diagnose {

std::string limit_advice(const PositionFact& table) {
  if (table.limit_text.empty()) return {};
  const std::string limit = fmt::format("`{}` (line {})", table.limit_text, table.limit_line);
  if (table.limit_is_beyond()) {
    return fmt::format(
        "look at {}: it goes by {} and lets more through than the {} that fit; a larger table would move it "
        "along",
        limit, table.setting, table.usable());
  }
  if (table.limit_more) {
    return fmt::format("look at {}: it lets more through than the {} that fit", limit, table.usable());
  }
  if (table.value > table.usable()) {
    return fmt::format(
        "{} is the same number as {}, of which {} are for positions: give the one {}, or the other {} more "
        "where the table is trained anew",
        limit, table.setting, table.usable(), table.usable(), table.rows - table.usable());
  }
  return fmt::format("{} keeps to the table: look for what does not pass it, or grows behind it", limit);
}

}  // namespace trapline::diagnose
