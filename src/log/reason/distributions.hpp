// What a refused parameter of torch.distributions tells.
#pragma once

#include "log/reason/decide.hpp"

namespace trapline {

// Does nothing where the message is another one's.
void decide_distribution(const Event& event, Decision& d);

}  // namespace trapline
