// What happens to a log on its way into a bug report: launchers, collectors, editors, mail, translation. Each
// damage takes the whole text of a log and gives back what a user would have of it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace trapline {

struct LogDamage {
  const char* name;
  std::function<std::string(const std::string&)> apply;
  bool for_messages = true;  // also kind to plain messages, not only to assertion lines
  bool keeps_op = true;
};

// Damages that the whole way from bytes to the verdict must survive.
const std::vector<LogDamage>& log_damages();

}  // namespace trapline
