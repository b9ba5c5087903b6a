// Where to look, for all findings that know a sample.
#pragma once

#include <string>

#include "core/finding.hpp"

namespace trapline::diagnose {

// The number came in on the way from the sample to the call, or is drawn: the record is not wrong.
bool is_not_its_own(const Sample& sample);

// "look at sample 1507: print(loader.dataset[1507])"; empty when no sample is known.
std::string look_at(const Sample& sample);

}  // namespace trapline::diagnose
