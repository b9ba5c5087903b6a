// Where to look, for all findings that know a sample.
#pragma once

#include <string>

#include "core/finding.hpp"

namespace trapline::diagnose {

// "look at sample 1507: print(loader.dataset[1507])"; empty when no sample is known.
std::string look_at(const Sample& sample);

}  // namespace trapline::diagnose
