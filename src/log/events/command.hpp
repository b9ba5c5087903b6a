// The program's own command line, where a log shows it.
//
// A log is anybody's text, and a command is there to be pasted into a shell. So only words of a strict
// alphabet are taken, which no shell gives a meaning to; only programs that run Python or start what does,
// and only with a script; and nothing that would run other code than that script.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trapline {

// `text` as a command that a shell may be given; nullopt: not one that may be told. Redirections and what
// follows are left out; so is nohup. Arguments that cannot be told become "...".
std::optional<std::string> safe_command(std::string_view text);

// Collects the commands of a log, line by line.
class CommandFinder {
 public:
  // A clean line of the log.
  void line(std::string_view text);

  // The command that started `script` (the file of the program's outermost frame; empty: not known): the
  // first one that names it, or, where no script is known, the only one there is.
  std::optional<std::string> command_of(std::string_view script) const;

 private:
  std::vector<std::string> commands_;  // different ones, in their order; a few
};

// "python train.py ...": what can be told where only the script is known.
std::optional<std::string> command_from_script(std::string_view script);

// Puts what guards a program into its command: "trapline run -- python train.py", and with leading variables
// or srun at its right place.
std::string guarded(const std::string& command);

}  // namespace trapline
