// Facts in JSON all the way to a finding: what trapline_diagnose does with them.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "diagnose/diagnose.hpp"
#include "diagnose/json/parts.hpp"
#include "diagnose/json/read_facts.hpp"

namespace trapline::diagnose {

// Of facts of this kind; an error where they cannot be read.
inline Result<std::optional<Finding>> diagnose_kind(const char* kind, nlohmann::json facts) {
  if (facts.is_object()) facts["kind"] = kind;
  const Result<Facts> read = read_facts(facts);
  if (!read) return read.error();
  return finding_of(*read);
}

inline Result<Finding> diagnose_violation(nlohmann::json facts) {
  const auto result = diagnose_kind("violation", std::move(facts));
  if (!result) return result.error();
  return result->value();
}

inline Result<Finding> diagnose_watch(nlohmann::json facts) {
  const auto result = diagnose_kind("watch", std::move(facts));
  if (!result) return result.error();
  return result->value();
}

inline std::optional<Finding> diagnose_host_error(nlohmann::json facts) {
  const auto result = diagnose_kind("host_error", std::move(facts));
  return result ? *result : std::nullopt;
}

}  // namespace trapline::diagnose
