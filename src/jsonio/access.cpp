#include "jsonio/access.hpp"

#include <limits>

namespace trapline::jsonio {

using nlohmann::json;

const json* member(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const json* object_member(const json& object, const char* name) {
  const json* found = member(object, name);
  return found != nullptr && found->is_object() ? found : nullptr;
}

std::string text(const json& object, const char* name) {
  const json* value = member(object, name);
  if (value == nullptr || !value->is_string()) return {};
  return value->get_ref<const std::string&>().substr(0, kMaxText);
}

std::vector<std::string> texts(const json& object, const char* name) {
  std::vector<std::string> list;
  each(object, name, [&](const json& item) {
    if (item.is_string()) list.push_back(item.get_ref<const std::string&>().substr(0, kMaxText));
  });
  return list;
}

std::optional<bool> boolean(const json& object, const char* name) {
  const json* value = member(object, name);
  if (value == nullptr || !value->is_boolean()) return std::nullopt;
  return value->get<bool>();
}

std::optional<std::int64_t> integer(const json& value) {
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return std::nullopt;
  }
  if (!value.is_number_integer()) return std::nullopt;
  return value.get<std::int64_t>();
}

std::optional<std::int64_t> integer(const json& object, const char* name) {
  const json* value = member(object, name);
  return value == nullptr ? std::nullopt : integer(*value);
}

std::vector<std::int64_t> integers(const json& object, const char* name) {
  std::vector<std::int64_t> list;
  bool whole = true;
  each(
      object, name,
      [&](const json& item) {
        const auto number = integer(item);
        whole = whole && number && list.size() < kMaxItems;
        if (whole) list.push_back(*number);
      },
      kMaxItems + 1);
  return whole ? list : std::vector<std::int64_t>();
}

}  // namespace trapline::jsonio
