// A file in memory, read-only: nothing of it is copied, and the kernel may take its pages back at any time.
//
// Another process may shorten a file that is mapped here. Reading what is gone would end this one by SIGBUS;
// a handler puts zeros in the place of what is gone, and take_changed_file() says that nothing read from the
// file counts. Faults outside of mapped files go to the handler that was there before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/result.hpp"

namespace trapline::inputs {

struct Mapping;

class MappedFile {
 public:
  MappedFile() = default;
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(folder_, other.folder_);
    std::swap(path_, other.path_);
    std::swap(opened_, other.opened_);
    std::swap(mapping_, other.mapping_);
    return *this;
  }

  // A regular file or a folder (whose bytes are empty); a pipe or a device is an error, not a wait.
  static Result<MappedFile> open(const std::string& path);
  // The first `size` bytes of an open regular file that nobody else can write to; it may be closed
  // afterwards.
  static Result<MappedFile> of(int file, std::uint64_t size);
  std::span<const std::byte> bytes() const { return bytes_; }
  bool is_folder() const { return folder_; }

 private:
  struct State {
    std::uint64_t device = 0, inode = 0;
    std::int64_t size = 0, seconds = 0, nanoseconds = 0;
    bool operator==(const State&) const = default;
  };
  // The file was written to or shortened since it was opened. One that was replaced or removed was not: what
  // is mapped is still there.
  std::optional<Error> changed() const;

  std::span<const std::byte> bytes_;
  bool folder_ = false;
  std::string path_;
  State opened_;
  Mapping* mapping_ = nullptr;
};

// The first file that this thread has closed and that had changed by then; forgets it.
std::optional<Error> take_changed_file();

// Gives the pages of `bytes` back to the kernel, as far as they belong to mapped files: they are read again
// when they are needed. Memory of any other kind is left alone.
void release_pages(std::span<const std::byte> bytes);
// The pages of all mapped files.
void release_all_pages();

}  // namespace trapline::inputs
