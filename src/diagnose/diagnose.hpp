// Facts in, finding out. All words about faults are made in this room, but those that a log is read for
// (src/log).
#pragma once

#include <optional>

#include "core/finding.hpp"
#include "diagnose/facts.hpp"

namespace trapline::diagnose {

Finding finding_of(const Violation& facts);
// nullopt: the exception is none of this family.
std::optional<Finding> finding_of(const HostError& facts);
Finding finding_of(const Watch& facts);
Finding finding_of(const ClassFolders& facts);
Finding finding_of(const MissingValues& facts);
Finding finding_of(const NotIntegers& facts);
Finding finding_of(const UnnamedClass& facts);
Finding finding_of(const TextLabels& facts);
Finding finding_of(const LongRows& facts);
std::optional<Finding> finding_of(const Facts& facts);

}  // namespace trapline::diagnose
