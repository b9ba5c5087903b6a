// The words of a finding that a log gave rise to.
#pragma once

#include "core/finding.hpp"
#include "log/events/command.hpp"
#include "log/events/event.hpp"
#include "log/reason/decide.hpp"

namespace trapline {

// Fills summary, element, valid, evidence and fix.
void write_words(const Event& event, const Decision& decision, Finding& finding);

// Where the log cannot tell the value: the command line that would, as the last advice.
void add_rerun(const CommandFinder& commands, Finding& root);

// The guard is for PyTorch: of another framework's program nothing is said of it.
void leave_out_guard(Finding& root);

// Positions of the argument that the blocks and threads of an assertion name, ascending, at most `most`;
// empty when the place does not tell.
std::vector<std::int64_t> positions_of(const Event& event, std::size_t most);

}  // namespace trapline
