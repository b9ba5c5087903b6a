// The names of the classes in a YOLO data.yaml or classes.txt.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "inputs/reader.hpp"

namespace trapline::inputs {

// Of YAML just the key `names`: a list in brackets, a list of "- name" lines, or "0: name" lines.
std::vector<ClassName> names_in_yaml(std::string_view text);
// A name per line.
std::vector<ClassName> names_in_lines(std::string_view text);

}  // namespace trapline::inputs
