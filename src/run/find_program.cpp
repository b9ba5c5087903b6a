#include "run/find_program.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace trapline {
namespace {

Error cannot_start(const std::string& name, const std::string& why, const std::string& fix) {
  return {"cannot start '" + name + "'", why, fix};
}

}  // namespace

Error cannot_start(const std::string& name, int error) {
  switch (error) {
    case ENOEXEC:
      return cannot_start(name, "not a program that this machine can run",
                          "name its interpreter, e.g. trapline run -- python " + name);
    case EACCES:
      return cannot_start(name, "permission denied", "check the file's permissions (chmod +x)");
    case ENOENT:
      return cannot_start(name, "the interpreter that its first line names is missing", "check the #! line");
    default:
      return cannot_start(name, std::strerror(error), "check the command");
  }
}

Result<std::string> find_program(const std::string& name, std::string_view path) {
  const auto is_program = [](const std::string& file, struct stat& state) {
    // As exec() decides it: by the effective user, and capabilities count.
    return ::stat(file.c_str(), &state) == 0 && S_ISREG(state.st_mode) &&
           ::faccessat(AT_FDCWD, file.c_str(), X_OK, AT_EACCESS) == 0;
  };
  struct stat state {};
  if (name.find('/') != std::string::npos) {
    if (is_program(name, state)) return name;
    if (::stat(name.c_str(), &state) != 0) {
      return cannot_start(name, std::strerror(errno), "check the path");
    }
    if (S_ISDIR(state.st_mode)) return cannot_start(name, "it is a folder", "name the program in it");
    return cannot_start(name, "it is not executable",
                        "chmod +x it, or name its interpreter, e.g. trapline run -- python " + name);
  }
  for (std::size_t begin = 0; !name.empty() && begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder(path.substr(begin, end - begin));
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (is_program(file, state)) return file;
    begin = end + 1;
  }
  const bool is_here = ::stat(name.c_str(), &state) == 0;
  return cannot_start(
      name, "not found on PATH",
      is_here ? "for the file in this folder write trapline run -- python " + name : "check the spelling");
}

}  // namespace trapline
