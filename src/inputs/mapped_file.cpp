#include "inputs/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "inputs/stand_in.hpp"

namespace trapline::inputs {
namespace {

Error cannot_read(const std::string& path, const std::string& why, const std::string& fix) {
  return {"cannot read " + path, why, fix};
}

Error system_problem(const std::string& path, int number) {
  return cannot_read(path, std::generic_category().message(number),
                     number == ENOENT ? "check the path" : "check the file and its permissions");
}

}  // namespace

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return system_problem(path, errno);
  MappedFile mapped;
  struct stat status {};
  int problem = ::fstat(file, &status) == 0 ? 0 : errno;
  const bool regular = problem == 0 && S_ISREG(status.st_mode);
  mapped.folder_ = problem == 0 && S_ISDIR(status.st_mode);
  if (regular && status.st_size > 0) {
    const auto size = static_cast<std::size_t>(status.st_size);
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (address == MAP_FAILED) {
      problem = errno;
    } else {
      ::madvise(address, size, MADV_SEQUENTIAL);
      mapped.bytes_ = {static_cast<const std::byte*>(address), size};
    }
  }
  ::close(file);
  if (problem != 0) return system_problem(path, problem);
  if (!regular && !mapped.folder_) {
    return cannot_read(path, "it is neither a file nor a folder", "write its contents to a file first");
  }
  if (std::optional<Error> other = stand_in(path, mapped.bytes_)) return *std::move(other);
  return mapped;
}

}  // namespace trapline::inputs
