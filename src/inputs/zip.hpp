// ZIP archives as NumPy and PyTorch write them (stored or deflated, zip64), from the memory map. What is
// stored is used where it lies; what is deflated comes out as a stream, whatever size the archive claims for
// it.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace trapline::inputs {

struct ZipEntry {
  std::string name;
  bool deflated = false;
  std::uint32_t crc = 0;
  std::uint64_t size = 0;           // as the archive claims
  std::uint64_t data_offset = 0;    // in the file
  std::span<const std::byte> data;  // as it lies in the file
};

bool is_zip(std::span<const std::byte> bytes);
// The files in the archive, each checked to lie inside it; folders are left out. `path` is for the error.
Result<std::vector<ZipEntry>> read_zip(std::span<const std::byte> bytes, const std::string& path);

// The contents of an entry as a stream. The checksum of a deflated entry is checked at its end; that of a
// stored one is not, because its data would be read twice.
class ZipStream {
 public:
  explicit ZipStream(const ZipEntry& entry);
  ~ZipStream();
  ZipStream(const ZipStream&) = delete;
  ZipStream& operator=(const ZipStream&) = delete;

  // Fills `out` as far as the entry goes. Less than its size: the end, or problem() says what is wrong.
  std::size_t read(std::span<std::byte> out);
  std::string_view problem() const { return problem_; }
  std::uint64_t offset() const;  // in the file: how far it has been read

 private:
  const ZipEntry& entry_;
  z_stream stream_{};
  std::uint64_t produced_ = 0;
  unsigned long crc_ = 0;
  std::size_t next_ = 0;  // of entry_.data
  bool ended_ = false;
  std::string_view problem_;
};

}  // namespace trapline::inputs
