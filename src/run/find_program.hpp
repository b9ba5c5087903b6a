// Which file a command's first word names.
#pragma once

#include <string>
#include <string_view>

#include "core/result.hpp"

namespace trapline {

// The file that a shell would start for `name` with this PATH, or why there is none.
Result<std::string> find_program(const std::string& name, std::string_view path);

// Why `name` could not be started; `error` is what exec reports.
Error cannot_start(const std::string& name, int error);

}  // namespace trapline
