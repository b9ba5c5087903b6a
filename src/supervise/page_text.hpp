// page.html, as it was when the program was built.
#pragma once

namespace trapline::supervise {

extern const char* const kPage;

}  // namespace trapline::supervise
