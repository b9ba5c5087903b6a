// What watch.cpp says of a NaN that was watched, and watch_help.cpp advises, share.
#pragma once

#include <string>

#include "diagnose/watch.hpp"

namespace trapline::diagnose {

// "the output of `fc1` (Linear)", "the gradient of `fc1.weight`", "the loss"
std::string place_text(const WatchSeen& seen, bool looked = true);

// "the optimizer's step": what weights were finite after that the program has changed itself
std::string written_after(const WatchSeen& seen);

// Its gradients were finite, and an operation of the step has made other numbers of them.
bool is_made_in_update(const WatchFact& watch);

// An update whose gradients nobody has looked at: they may have been bad before it.
bool has_unseen_gradients(const WatchFact& watch);

// The first thing to do.
std::string look_text(const WatchFact& watch);

// "3 of the 400 rows of that data set hold such numbers: 4, 71, 302"; empty: one, or nobody knows.
std::string rows_text(const WatchFact& watch);

}  // namespace trapline::diagnose
