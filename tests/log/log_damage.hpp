// What happens to a log on its way into a bug report: launchers, collectors, editors, mail, translation. Each
// damage takes a text and gives back what a user would have of it.
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

// Damages of whole logs that the way from bytes to the verdict must survive.
const std::vector<LogDamage>& log_damages();

// Damages of a single line (without its line feed) that the reasoner alone must survive; some cost it what
// the row says about the operation.
const std::vector<LogDamage>& line_damages();

}  // namespace trapline
