#include "check/bounded_json.hpp"

#include <limits>

#include "inputs/mapped_file.hpp"

namespace trapline::check {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxBytes = std::size_t{256} << 20U;
constexpr int kMaxDepth = 64;

}  // namespace

Result<json> read_json_object(const std::string& path, std::string_view leave_out) {
  const Result<inputs::MappedFile> file = inputs::MappedFile::open(path);
  if (!file) return file.error();
  const Error damaged{"cannot read " + path, "", "save or download the file again"};
  const auto fail = [&](const std::string& why) { return Error{damaged.what, why, damaged.fix}; };
  if (file->bytes().empty()) return fail("the file is empty");
  if (file->bytes().size() > kMaxBytes) return fail("it is larger than 256 MiB");
  bool too_deep = false;
  bool drop_next = false;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) too_deep = true;
    if (too_deep) return false;
    if (event == json::parse_event_t::key) {
      drop_next =
          !leave_out.empty() && parsed.is_string() && parsed.get_ref<const std::string&>() == leave_out;
      return !drop_next;
    }
    return true;
  };
  const auto* begin = reinterpret_cast<const char*>(file->bytes().data());
  json parsed = json::parse(begin, begin + file->bytes().size(), watch, /*allow_exceptions=*/false);
  if (too_deep) return fail("it is nested deeper than 64 levels");
  if (parsed.is_discarded()) return fail("it is truncated or no JSON");
  if (!parsed.is_object()) return fail("it is not a JSON object");
  return parsed;
}

std::int64_t saturated(const json& integer) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  const bool above = integer.is_number_unsigned() && integer.get<std::uint64_t>() > std::uint64_t{kMax};
  return above ? kMax : integer.get<std::int64_t>();
}

}  // namespace trapline::check
