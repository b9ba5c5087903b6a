// The functions of libtrapline that a kernel calls. Their addresses come from the process that has loaded it:
// nothing is linked, so that this file fits wherever the library lies.
#pragma once

#include "trapline/capi.h"

namespace trapline::kernel {

struct Library {
  decltype(&trapline_check) check = nullptr;
};

inline Library g_library;

}  // namespace trapline::kernel
