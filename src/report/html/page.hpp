// A report as one self-contained page, and a finding as a piece of one for a notebook.
#pragma once

#include <string>

#include "core/finding.hpp"
#include "report/style.hpp"

namespace trapline {

// The whole page: no script, nothing that is loaded from elsewhere. Of `style` it is `directory` that counts.
std::string render_html(const Report& report, const Style& style);

// Shorter, for the output of a cell: <div> with its own <style>.
std::string render_html_finding(const Finding& finding, const Style& style);

namespace html {
extern const char* const kCss;  // page.css
}

}  // namespace trapline
