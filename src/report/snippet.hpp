// The user's source line with the operation underlined.
#pragma once

#include <vector>

#include "core/finding.hpp"
#include "report/lines.hpp"

namespace trapline {

// At most four lines:
//      |
//   41 | loss = F.cross_entropy(logits, labels)
//      |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
// Nothing when the line is not known. Without columns, or with columns that lie outside the line (the file
// has changed), nothing is underlined. A line that is too long is cropped around the operation.
std::vector<Line> snippet(const Frame& frame, const Style& style);

// Columns before the bar: the width of the line number and a space.
int gutter_width(const Frame& frame);

}  // namespace trapline
