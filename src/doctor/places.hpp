// Trapline itself, its folders, and what it runs in.
#pragma once

#include <span>
#include <string>

#include "doctor/line.hpp"
#include "run/locate.hpp"

namespace trapline::doctor {

// "1.2 MiB"
std::string size_text(std::uint64_t bytes);

Line line_of_installation(const Result<Installation>& installation);
Lines lines_of_folders(std::span<const std::string> environment);
// A container, a job of Slurm, a service of systemd, WSL: only where it changes what to do.
Lines lines_of_surroundings(std::span<const std::string> environment);

}  // namespace trapline::doctor
