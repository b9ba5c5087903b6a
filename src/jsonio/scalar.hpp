// An element's value in JSON, the same way in facts and reports: integers beyond 2^53, which a reader that
// stores doubles would change, are text, and so are nan, inf and -inf, which JSON lacks.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "core/scalar.hpp"

namespace trapline::jsonio {

inline constexpr std::int64_t kExact = std::int64_t{1} << 53U;  // doubles hold every integer up to here

nlohmann::json to_json(const Scalar& value);
// A number, or the text of one; nullopt for everything else.
std::optional<Scalar> to_scalar(const nlohmann::json& value);

}  // namespace trapline::jsonio
