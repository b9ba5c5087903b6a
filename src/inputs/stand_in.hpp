// What stands where a file was meant to be: the pointer of Git LFS, the page of a download that failed, or a
// file of a kind that is known and not read.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "core/result.hpp"

namespace trapline::inputs {

// The error that says so; nullopt: it is neither.
std::optional<Error> stand_in(const std::string& path, std::span<const std::byte> bytes);

}  // namespace trapline::inputs
