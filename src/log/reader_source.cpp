#include "log/reader_source.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace trapline {

DescriptorSource::DescriptorSource(int fd) : fd_(fd) {
  struct stat status {};
  live_ = ::fstat(fd, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode);
#ifdef POSIX_FADV_SEQUENTIAL
  if (!live_) ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
}

bool DescriptorSource::wait(int milliseconds) const {
  pollfd wanted{fd_, POLLIN, 0};
  return ::poll(&wanted, 1, milliseconds) != 0;  // an error shows in read()
}

std::size_t DescriptorSource::read(char* data, std::size_t size) {
  while (problem_.empty()) {
    const ssize_t got = ::read(fd_, data, size);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {  // somebody gave us a non-blocking descriptor
      wait(-1);
      continue;
    }
    problem_ = std::string(std::strerror(errno)) + ": check the disk or the permissions";
  }
  return 0;
}

PeekedSource::PeekedSource(ByteSource& rest, std::size_t most, std::size_t least) : rest_(rest) {
  peeked_.resize(most);
  std::size_t have = 0;
  while (have < least) {  // a pipe may bring a magic number in pieces
    const std::size_t got = rest_.read(peeked_.data() + have, most - have);
    if (got == 0) break;
    have += got;
  }
  peeked_.resize(have);
}

std::size_t PeekedSource::read(char* data, std::size_t size) {
  if (taken_ == peeked_.size()) return rest_.read(data, size);
  const std::size_t count = std::min(size, peeked_.size() - taken_);
  std::memcpy(data, peeked_.data() + taken_, count);
  taken_ += count;
  return count;
}

}  // namespace trapline
