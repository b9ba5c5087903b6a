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
  return fmt::format("{} keeps to the table: look for what does not pass it, or grows behind it", limit);
}

}  // namespace trapline::diagnose
