// A file in memory, read-only: nothing of it is copied, and the kernel may take its pages back at any time.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "core/result.hpp"

namespace trapline::inputs {

class MappedFile {
 public:
  MappedFile() = default;
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(folder_, other.folder_);
    return *this;
  }

  // A regular file or a folder (whose bytes are empty); a pipe or a device is an error, not a wait.
  static Result<MappedFile> open(const std::string& path);
  std::span<const std::byte> bytes() const { return bytes_; }
  bool is_folder() const { return folder_; }

 private:
  std::span<const std::byte> bytes_;
  bool folder_ = false;
};

}  // namespace trapline::inputs
