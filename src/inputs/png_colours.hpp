// Pictures in few colours: masks in which a colour stands for a class.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace trapline::inputs {

// What colours the first of the PNG pictures among `paths` have, in words: when all of them are in colour,
// and the colours are so few that each must mean something. Photographs have thousands.
std::optional<std::string> few_colours(std::span<const std::string> paths);

}  // namespace trapline::inputs
