// The formats in which a report can be written.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/finding.hpp"
#include "report/style.hpp"

namespace trapline {

struct Format {
  std::string_view name;  // of --format
  std::string (*render)(const Report& report, const Style& style);
};

// All formats. To add one, write its file and add its row in writer.cpp.
std::span<const Format> formats_of_reports();

// nullptr when there is none of that name.
const Format* find_format(std::string_view name);

}  // namespace trapline
