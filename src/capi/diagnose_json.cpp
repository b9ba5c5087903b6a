#include "capi/diagnose_json.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "core/result.hpp"
#include "diagnose/diagnose.hpp"
#include "diagnose/host/errors.hpp"
#include "diagnose/watch.hpp"
#include "report/json.hpp"

namespace trapline {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxBytes = std::size_t{16} << 20U;
constexpr int kMaxDepth = 32;

std::string error(const Error& error) {
  return json{{"error", error.line()}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string finding(const json& value) {
  return json{{"finding", value}}.dump(-1, ' ', false, json::error_handler_t::replace);
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
  if (!facts || !facts->is_object()) return error({"facts", "they are no JSON object", "see docs/facts.md"});
  const auto kind = facts->find("kind");
  if (kind != facts->end() && *kind == "violation") {
    const Result<Finding> result = diagnose_violation(*facts);
    return result ? finding(to_json(*result)) : error(result.error());
  }
  if (kind != facts->end() && *kind == "host_error") {
    const std::optional<Finding> result = diagnose_host_error(*facts);
    return finding(result ? to_json(*result) : json(nullptr));
  }
  if (kind != facts->end() && *kind == "watch") {
    const Result<Finding> result = diagnose_watch(*facts);
    return result ? finding(to_json(*result)) : error(result.error());
  }
  return error({"facts", "`kind` is neither violation, host_error nor watch", "see docs/facts.md"});
}

}  // namespace trapline
