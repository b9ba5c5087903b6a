#include "inputs/zip.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "inputs/damage.hpp"

namespace trapline::inputs {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50,
                        kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr std::size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56, kLocatorSize = 20;
constexpr std::size_t kMaxComment = 65535;

struct Directory {
  std::uint64_t offset = 0, size = 0, count = 0;
};

// The record at the end of the archive; nullopt: there is none.
std::optional<Directory> find_directory(std::span<const std::byte> bytes) {
  if (bytes.size() < kEndSize) return std::nullopt;
  const std::size_t last = bytes.size() - kEndSize;
  const std::size_t first = last > kMaxComment ? last - kMaxComment : 0;
  for (std::size_t at = last + 1; at-- > first;) {
    if (load_le<std::uint32_t>(bytes, at) != kEnd) continue;
    Directory directory{load_le<std::uint32_t>(bytes, at + 16), load_le<std::uint32_t>(bytes, at + 12),
                        load_le<std::uint16_t>(bytes, at + 10)};
    if (at >= kLocatorSize && load_le<std::uint32_t>(bytes, at - kLocatorSize) == kEnd64Locator) {
      const auto end64 = load_le<std::uint64_t>(bytes, at - kLocatorSize + 8);
      if (bytes.size() < kEnd64Size || end64 > bytes.size() - kEnd64Size) return std::nullopt;
      const auto place = static_cast<std::size_t>(end64);
      if (load_le<std::uint32_t>(bytes, place) != kEnd64) return std::nullopt;
      directory = {load_le<std::uint64_t>(bytes, place + 48), load_le<std::uint64_t>(bytes, place + 40),
                   load_le<std::uint64_t>(bytes, place + 32)};
    }
    return directory;
  }
  return std::nullopt;
}

struct Sizes {
  std::uint64_t size, compressed, header;
};
// The zip64 field replaces what did not fit 32 bits. False: it should be there and is not.
bool widen(std::span<const std::byte> extra, Sizes& sizes) {
  constexpr std::uint64_t kWide = 0xffffffff;
  if (sizes.size != kWide && sizes.compressed != kWide && sizes.header != kWide) return true;
  while (extra.size() >= 4) {
    const auto id = load_le<std::uint16_t>(extra, 0);
    const std::size_t length = load_le<std::uint16_t>(extra, 2);
    if (length > extra.size() - 4) return false;
    std::span<const std::byte> field = extra.subspan(4, length);
    extra = extra.subspan(4 + length);
    if (id != 1) continue;
    for (std::uint64_t* wide : {&sizes.size, &sizes.compressed, &sizes.header}) {
      if (*wide != kWide) continue;
      if (field.size() < 8) return false;
      *wide = load_le<std::uint64_t>(field, 0);
      field = field.subspan(8);
    }
    return true;
  }
  return false;
}

}  // namespace

bool is_zip(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && load_le<std::uint32_t>(bytes, 0) == kLocalHeader;
}

Result<std::vector<ZipEntry>> read_zip(std::span<const std::byte> bytes, const std::string& path) {
  const std::optional<Directory> directory = find_directory(bytes);
  if (!directory) {
    return damaged(path, bytes.size(), "the archive has no directory at its end: it is not whole");
  }
  if (directory->offset > bytes.size() || directory->size > bytes.size() - directory->offset) {
    return damaged(path, directory->offset, "the archive's directory lies behind the end of the file");
  }
  const auto start = static_cast<std::size_t>(directory->offset);
  const std::span<const std::byte> records = bytes.subspan(start, static_cast<std::size_t>(directory->size));
  std::vector<ZipEntry> entries;
  std::size_t at = 0;
  for (std::uint64_t n = 0; n < directory->count; ++n) {
    const auto broken = [&](const std::string& why) {
      return damaged(path, start + at, "the archive's directory " + why);
    };
    if (records.size() - at < kCentralSize || load_le<std::uint32_t>(records, at) != kCentralHeader) {
      return broken("has no entry here, though it claims " + std::to_string(directory->count));
    }
    const std::size_t name_size = load_le<std::uint16_t>(records, at + 28);
    const std::size_t extra_size = load_le<std::uint16_t>(records, at + 30);
    const std::size_t whole =
        kCentralSize + name_size + extra_size + load_le<std::uint16_t>(records, at + 32);
    if (records.size() - at < whole) return broken("ends in the middle of an entry");
    const auto flags = load_le<std::uint16_t>(records, at + 8);
    const auto method = load_le<std::uint16_t>(records, at + 10);
    ZipEntry entry;
    entry.name = std::string(as_text(records.subspan(at + kCentralSize, name_size)));
    entry.crc = load_le<std::uint32_t>(records, at + 16);
    Sizes sizes{load_le<std::uint32_t>(records, at + 24), load_le<std::uint32_t>(records, at + 20),
                load_le<std::uint32_t>(records, at + 42)};
    if (!widen(records.subspan(at + kCentralSize + name_size, extra_size), sizes)) {
      return broken("lacks the sizes of " + in_quotes(entry.name));
    }
    if (!entry.name.ends_with('/')) {
      if ((flags & 1U) != 0) return broken("has an encrypted entry, " + in_quotes(entry.name));
      if (method != 0 && method != 8) {
        return broken("has an entry with the compression method " + std::to_string(method) + ", " +
                      in_quotes(entry.name));
      }
      entry.deflated = method == 8;
      entry.size = sizes.size;
      if (bytes.size() < kLocalSize || sizes.header > bytes.size() - kLocalSize ||
          load_le<std::uint32_t>(bytes, static_cast<std::size_t>(sizes.header)) != kLocalHeader) {
        return broken("leads to no entry for " + in_quotes(entry.name));
      }
      const auto local = static_cast<std::size_t>(sizes.header);
      const std::uint64_t data = sizes.header + kLocalSize + load_le<std::uint16_t>(bytes, local + 26) +
                                 load_le<std::uint16_t>(bytes, local + 28);
      if (data > bytes.size() || sizes.compressed > bytes.size() - data) {
        return broken("says that " + in_quotes(entry.name) + " ends behind the end of the file");
      }
      if (!entry.deflated && sizes.compressed != sizes.size) {
        return broken("has two sizes for the stored entry " + in_quotes(entry.name));
      }
      entry.data_offset = data;
      entry.data = bytes.subspan(static_cast<std::size_t>(data), static_cast<std::size_t>(sizes.compressed));
      entries.push_back(std::move(entry));
    }
    at += whole;
  }
  return entries;
}

ZipStream::ZipStream(const ZipEntry& entry) : entry_(entry) {
  if (entry.deflated && inflateInit2(&stream_, -15) != Z_OK) problem_ = "no memory";
}

ZipStream::~ZipStream() {
  if (entry_.deflated) inflateEnd(&stream_);
}

std::uint64_t ZipStream::offset() const { return entry_.data_offset + next_; }

std::size_t ZipStream::read(std::span<std::byte> out) {
  if (!entry_.deflated) {
    const std::size_t size = std::min(out.size(), entry_.data.size() - next_);
    std::copy_n(entry_.data.begin() + static_cast<std::ptrdiff_t>(next_), size, out.begin());
    next_ += size;
    return size;
  }
  std::size_t got = 0;
  while (got < out.size() && !ended_ && problem_.empty()) {
    constexpr std::size_t kMax = std::size_t{1} << 30U;
    const std::size_t in = std::min(entry_.data.size() - next_, kMax);
    const std::size_t room = std::min(out.size() - got, kMax);
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(entry_.data.data() + next_));
    stream_.avail_in = static_cast<uInt>(in);
    stream_.next_out = reinterpret_cast<Bytef*>(out.data() + got);
    stream_.avail_out = static_cast<uInt>(room);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    const std::size_t written = room - stream_.avail_out;
    crc_ = crc32(crc_, reinterpret_cast<const Bytef*>(out.data() + got), static_cast<uInt>(written));
    got += written;
    produced_ += written;
    next_ += in - stream_.avail_in;
    if (result == Z_STREAM_END) {
      ended_ = true;
      if (crc_ != entry_.crc) problem_ = "its checksum is wrong";
    } else if (result == Z_BUF_ERROR || (result == Z_OK && written == 0 && next_ == entry_.data.size())) {
      problem_ = "its compressed data ends too early";
    } else if (result != Z_OK) {
      problem_ = "its compressed data is broken";
    }
  }
  return got;
}

}  // namespace trapline::inputs
