#include "report/writer.hpp"

#include <algorithm>
#include <array>

#include "report/html/page.hpp"
#include "report/json.hpp"
#include "report/text.hpp"

namespace trapline {
namespace {

constexpr int kIndent = 2;

std::string render_json(const Report& report, const Style&) { return to_json(report).dump(kIndent) + "\n"; }

constexpr auto kFormats = std::to_array<Format>({
    {"text", render_text},
    {"json", render_json},
    {"html", render_html},
});

}  // namespace

std::span<const Format> formats_of_reports() { return kFormats; }

const Format* find_format(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &Format::name);
  return found == kFormats.end() ? nullptr : &*found;
}

}  // namespace trapline
