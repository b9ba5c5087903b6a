// Reading in a process of its own: where a library is known to crash on damaged files, the crash is then an
// error of that file.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/result.hpp"
#include "inputs/reader.hpp"

namespace trapline::inputs {

// Calls `body` in a child that can open no file, write to none, start nothing and take no more than a bounded
// share of memory. What it tells its sink arrives at `sink`, in this process, until the sink is stopped. The
// views that the body hands out must be contiguous. `library`: the name that an error gives to what crashed.
std::optional<Error> read_apart(const std::string& path, const std::string& library, Sink& sink,
                                const std::function<std::optional<Error>(Sink&)>& body);

}  // namespace trapline::inputs
