// Markdown for a terminal: the small part of it that the cause pages use.
#pragma once

#include <string>
#include <string_view>

#include "report/style.hpp"

namespace trapline::cli {

// Headings, paragraphs, lists (one level) and fenced code. Text is wrapped at the style's width; code is not.
std::string render_markdown(std::string_view markdown, const Style& style);

}  // namespace trapline::cli
