// All messages that a log can show: those of the catalogue, and PyTorch's host checks, whose rows explain
// live exceptions, too (diagnose/host).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalogue/wordings.hpp"
#include "diagnose/host/errors.hpp"

namespace trapline {

struct Messages {
  std::vector<const WordingRow*> rows;
  std::vector<const diagnose::HostErrorRow*> hosts;  // for each of `rows`; nullptr: the catalogue's own
  CataloguePhrases phrases;                          // indices are places in `rows`
};
const Messages& messages();

// What a line says of PyTorch's host checks.
struct HostCheck {
  const diagnose::HostErrorRow* row = nullptr;
  std::string message;  // without the words before it; empty: the phrase alone was recognized
};

// `rows`: the host checks of which a phrase is in the line. `exception` may be empty.
HostCheck host_check_in(const std::vector<const diagnose::HostErrorRow*>& rows, std::string_view exception,
                        std::string_view line);

}  // namespace trapline
