// The files that the processes of a program leave in the report folder, for `trapline run` to collect.
#pragma once

#include <string>
#include <string_view>

#include "core/result.hpp"

namespace trapline {

// "finding-HOST-PID.TAG-3.json"; without a number "guard-HOST-PID.TAG.json". The host is this machine's name
// with everything replaced that a file name had better not hold. The tag, four random letters, tells apart
// what has the same pid: the first processes of two containers, a program before and after exec().
std::string folder_file_name(std::string_view kind, int number = -1);

// Writes the text beside and renames it: nobody reads half a file. The path, or why not. The process is not
// ended by a limit on the size of files either. `bytes` receives the file's bytes, shared with it for as long
// as the process lives, or nullptr where the file system has none to share.
Result<std::string> write_into_folder(const std::string& folder, const std::string& name,
                                      std::string_view text, char** bytes = nullptr);

// The same in a process of the program: what it cannot write it hands to its `trapline run`, which does (see
// report_socket.hpp). `bytes` is then nullptr.
Result<std::string> give_to_run(const std::string& folder, const std::string& name, std::string_view text,
                                char** bytes = nullptr);

}  // namespace trapline
