// JSON that another process or program wrote: a member that is missing, null or of another type is as if it
// were not there, and what is too long is cut. Nothing here throws, but where memory is exhausted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace trapline::jsonio {

inline constexpr std::size_t kMaxItems = 4096;      // of a list
inline constexpr std::size_t kMaxText = 1U << 16U;  // bytes of a string

// The member; null when it is missing or null, or when there is no object.
const nlohmann::json* member(const nlohmann::json& object, const char* name);
// The member when it is an object; else null.
const nlohmann::json* object_member(const nlohmann::json& object, const char* name);

std::string text(const nlohmann::json& object, const char* name);
std::vector<std::string> texts(const nlohmann::json& object, const char* name);
std::optional<bool> boolean(const nlohmann::json& object, const char* name);

// A number of JSON that is an integer and fits in 64 bits.
std::optional<std::int64_t> integer(const nlohmann::json& value);
std::optional<std::int64_t> integer(const nlohmann::json& object, const char* name);
// Empty when one of the items is not such a number, or when there are too many.
std::vector<std::int64_t> integers(const nlohmann::json& object, const char* name);

// Calls take(item) for the items of a list, as far as `most` goes.
template <class Take>
void each(const nlohmann::json& object, const char* name, Take take, std::size_t most = kMaxItems) {
  const nlohmann::json* list = member(object, name);
  if (list == nullptr || !list->is_array()) return;
  std::size_t count = 0;
  for (const nlohmann::json& item : *list) {
    if (++count > most) return;
    take(item);
  }
}

}  // namespace trapline::jsonio
