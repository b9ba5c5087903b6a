#include "bytes/source.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace trapline {

DescriptorSource::DescriptorSource(int fd, bool fresh) : fd_(fd) {
  struct stat status {};
  const bool known = ::fstat(fd, &status) == 0;
  live_ = known && !S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode);
  // Files below /proc say that they are empty; they are read to their end like a stream.
  if (known && S_ISREG(status.st_mode) && status.st_size > 0) {
    const off_t position = fresh ? 0 : ::lseek(fd, 0, SEEK_CUR);
    left_ = position < 0 ? -1 : std::max<off_t>(status.st_size - position, 0);
    size_ = status.st_size;
  }
}

bool DescriptorSource::wait(int milliseconds) const {
  pollfd wanted{fd_, POLLIN, 0};
  return ::poll(&wanted, 1, milliseconds) != 0;  // an error shows in read()
}

std::size_t DescriptorSource::read(char* data, std::size_t size) {
  // A regular file ends where it ended when it was opened: no call to hear so, no race with a program that
  // writes on.
  while (!problem_ && left_ != 0) {
    if (left_ > 0) size = std::min(size, static_cast<std::size_t>(left_));
    const ssize_t got = ::read(fd_, data, size);
    if (got > 0 && left_ > 0) left_ -= got;
    struct stat now {};
    // Files below /sys say that they are larger than they are, and go on saying so.
    if (got == 0 && left_ > 0 && ::fstat(fd_, &now) == 0 && now.st_size < size_) {
      problem_ = {"it became shorter while it was read",
                  "read it again, with the copy that its rotation made"};
      return 0;
    }
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {  // somebody gave us a non-blocking descriptor
      wait(-1);
      continue;
    }
    problem_ = {std::strerror(errno), "check the disk or the permissions"};
  }
  return 0;
}

PeekedSource::PeekedSource(ByteSource& rest, std::span<char> storage, std::size_t least)
    : rest_(rest), storage_(storage) {
  while (have_ < least) {  // a pipe may bring a magic number in pieces
    const std::size_t got = rest_.read(storage_.data() + have_, storage_.size() - have_);
    if (got == 0) break;
    have_ += got;
  }
}

std::size_t PeekedSource::read(char* data, std::size_t size) {
  if (taken_ >= have_) return rest_.read(data, size);
  const std::size_t count = std::min(size, have_ - taken_);
  std::memcpy(data, storage_.data() + taken_, count);
  taken_ += count;
  return count;
}

}  // namespace trapline
