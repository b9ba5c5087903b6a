#include "run/program.hpp"

#include "run/child.hpp"

namespace trapline {

Result<ExitStatus> run_program(const std::vector<std::string>& arguments,
                               const std::vector<std::string>& environment) {
  SignalForwarding forwarding;
  Child child(arguments, environment, &forwarding);
  if (const auto error = child.start()) return *error;
  return *child.wait();
}

}  // namespace trapline
