#include "capi/diagnose_json.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "core/result.hpp"
#include "diagnose/diagnose.hpp"
#include "diagnose/json/read_facts.hpp"
#include "report/json.hpp"

namespace trapline {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxBytes = std::size_t{16} << 20U;
constexpr int kMaxDepth = 32;

std::string error(const Error& error) {
  return json{{"error", error.line()}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

// A parse that stops at kMaxDepth: facts come from the user's process, which may hold anything.
std::optional<json> parse(std::string_view text, bool& too_deep) {
  const auto watch = [&](int depth, json::parse_event_t, json&) {
    if (depth > kMaxDepth) too_deep = true;
    return !too_deep;
  };
  json parsed = json::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
  if (parsed.is_discarded() || too_deep) return std::nullopt;
  return parsed;
}

}  // namespace

std::string diagnose_json(std::string_view text) {
  if (text.size() > kMaxBytes) {
    return error({"facts", "they are larger than 16 MiB", "leave long lists out"});
  }
  bool too_deep = false;
  const std::optional<json> facts = parse(text, too_deep);
  if (too_deep) return error({"facts", "they are nested deeper than 32 levels", "see docs/facts.md"});
  const Result<diagnose::Facts> read = diagnose::read_facts(facts.value_or(json()));
  if (!read) return error(read.error());
  const std::optional<Finding> found = diagnose::finding_of(*read);
  return json{{"finding", found ? to_json(*found) : json()}}.dump(-1, ' ', false,
                                                                  json::error_handler_t::replace);
}

}  // namespace trapline
