#include "diagnose/json/read_facts.hpp"

#include "diagnose/json/parts.hpp"
#include "jsonio/access.hpp"

namespace trapline::diagnose {
namespace {

// The kind's own result as one of the variants.
template <class Kind>
Result<Facts> facts_of(Result<Kind> read) {
  if (!read) return read.error();
  return Facts(std::move(read).value());
}

}  // namespace

Result<Facts> read_facts(const nlohmann::json& json) {
  if (!json.is_object()) return Error{"facts", "they are not a JSON object", "see docs/facts.md"};
  const std::string kind = jsonio::text(json, "kind");
  if (kind == "violation") return facts_of(read_violation(json));
  if (kind == "host_error") return Facts(read_host_error(json));
  if (kind == "watch") return facts_of(read_watched_run(json));
  return Error{"facts", "`kind` is neither violation, host_error nor watch", "see docs/facts.md"};
}

}  // namespace trapline::diagnose
