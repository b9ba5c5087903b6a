#include "diagnose/diagnose.hpp"

namespace trapline::diagnose {

std::optional<Finding> finding_of(const Facts& facts) {
  return std::visit([](const auto& one) { return std::optional<Finding>(finding_of(one)); }, facts);
}

}  // namespace trapline::diagnose
