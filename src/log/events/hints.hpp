// What a line says about the program without being a message of the catalogue.
#pragma once

#include <string_view>

#include "catalogue/hints.hpp"

namespace trapline {

// `progress`: percent done, by a bar that was taken off the line; -1: none.
Hints hints_in(std::string_view text, int progress);

}  // namespace trapline
