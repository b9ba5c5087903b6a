// What the diagnosis is given: what was seen of one fault. docs/facts.md has the first three in JSON.
#pragma once

#include <variant>

#include "diagnose/data.hpp"
#include "diagnose/host/facts.hpp"
#include "diagnose/violation/facts.hpp"
#include "diagnose/watch.hpp"

namespace trapline::diagnose {

using Facts = std::variant<Violation, HostError, Watch, NotIntegers, LongRows>;

}  // namespace trapline::diagnose
