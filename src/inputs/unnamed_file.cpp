#include "inputs/unnamed_file.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>

#include <cstdlib>

namespace trapline::inputs {

std::string temporary_folder() {
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

int open_unnamed(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  std::string name = folder + "/trapline-XXXXXX";  // a file system without O_TMPFILE
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

std::optional<std::uint64_t> room_for(int file) {
  struct statvfs room {};
  if (::fstatvfs(file, &room) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(room.f_bavail) * room.f_frsize / 2;
}

}  // namespace trapline::inputs
