#include <span>
#include <string>
#include <vector>

#include "cli/command_line.hpp"

int main(int argc, char** argv) {
  const std::span<char*> words(argv, static_cast<std::size_t>(argc));
  return trapline::cli::run_command_line(std::vector<std::string>(words.begin() + (argc > 0), words.end()));
}
