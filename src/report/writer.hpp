// The formats in which a report can be written.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/finding.hpp"
#include "report/style.hpp"

namespace trapline {

struct Format {
  std::string_view name;     // of --format
  std::string_view summary;  // for the manual: what reads it
  std::string (*render)(const Report& report, const Style& style);
  // Formats that can be written while the report grows: what is new in it; the last call says that it is
  // over. nullptr: the others.
  std::function<std::string(const Report& report, bool is_over)> (*stream)(const Style& style) = nullptr;
};

// All formats. To add one, write its file and add its row in writer.cpp.
std::span<const Format> formats_of_reports();

// nullptr when there is none of that name.
const Format* find_format(std::string_view name);

}  // namespace trapline
