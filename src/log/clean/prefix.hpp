// What stands before a program's own text in a log: launchers, containers, journals, loggers, time stamps.
#pragma once

#include <cstdint>
#include <string_view>

namespace trapline {

struct Origin {
  int rank = -1;
  std::int64_t pid = -1;
  std::string_view host;  // a part of the line
  // Of a path: its name is nothing but a number. A rank where other files have theirs, else of anything.
  bool is_bare_number = false;
  bool is_error = false;  // a logger's level that was taken away said so
  bool is_calm = false;   // ... said that it is none
};

// The text behind all prefixes that are known for sure; what they say goes into `origin`. Leading spaces of
// the text stay, for a traceback's structure hangs on them. Tags that belong to the message ("[Rank 7] NCCL
// watchdog ...",
// "[E1118 ProcessGroupNCCL.cpp:616]") stay in the text, but their rank and pid are noted.
std::string_view without_prefix(std::string_view line, Origin& origin);

// From the name of a file: rank3.log, worker-3.err, attempt_0/3/stderr.log (torchrun), out.1.3 (mpirun) ...
Origin origin_of_path(std::string_view path);

}  // namespace trapline
