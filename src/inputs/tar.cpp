// From POSIX.1-2017, pax ("ustar Interchange Format", "pax Extended Header"), and "Basic Tar Format" of the
// manual of GNU tar.
#include "inputs/tar.hpp"

#include <charconv>
#include <string_view>
#include <utility>

#include "inputs/damage.hpp"

namespace trapline::inputs {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kMaxExtension = std::size_t{1} << 20U;
constexpr std::string_view kCut = "it ends too early";
constexpr std::string_view kSparse = "a sparse member";

// Text up to a NUL, of a field that need not have one.
std::string_view field(std::string_view block, std::size_t at, std::size_t size) {
  const std::string_view whole = block.substr(at, size);
  return whole.substr(0, whole.find('\0'));
}

// Octal with blanks around it, or GNU's base 256.
std::optional<std::uint64_t> number(std::string_view block, std::size_t at, std::size_t size) {
  const std::string_view whole = block.substr(at, size);
  if ((static_cast<unsigned char>(whole[0]) & 0x80U) != 0) {
    std::uint64_t value = static_cast<unsigned char>(whole[0]) & 0x7FU;
    for (const char c : whole.substr(1)) {
      if (value >> 56U != 0) return std::nullopt;
      value = value << 8U | static_cast<unsigned char>(c);
    }
    return value;
  }
  std::string_view text = field(block, at, size);
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  std::uint64_t value = 0;
  if (text.empty()) return value;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// The sum of the block's bytes, its own field taken as blanks.
bool sum_is_right(std::string_view block) {
  constexpr std::size_t kSum = 148, kSumBytes = 8;
  std::uint64_t sum = kSumBytes * ' ';
  for (std::size_t i = 0; i < kBlock; ++i) {
    if (i < kSum || i >= kSum + kSumBytes) sum += static_cast<unsigned char>(block[i]);
  }
  return number(block, kSum, kSumBytes) == sum;
}

bool is_posix(std::string_view block) { return block.substr(257, 6) == std::string_view("ustar\0", 6); }

}  // namespace

struct Tar::Header {
  std::string name;
  std::uint64_t size = 0;
  char type = '0';
};

bool is_tar(std::span<const std::byte> bytes) {
  if (bytes.size() < kBlock) return false;
  const std::string_view block = as_text(bytes.first(kBlock));
  return block.substr(257, 5) == "ustar" && sum_is_right(block);
}

// Empty: the end, or problem().
std::optional<Tar::Header> Tar::header() {
  if (bytes_.size() - at_ < kBlock) {
    // Whoever closes an archive writes blocks of zeros; one without them was not written to its end.
    fail(std::string(kCut));
    return std::nullopt;
  }
  const std::string_view block = as_text(bytes_.subspan(at_, kBlock));
  if (block.find_first_not_of('\0') == block.npos) return std::nullopt;
  Header header;
  const auto size = number(block, 124, 12);
  if (!sum_is_right(block) || !size) {
    fail("the header of a member is wrong");
    return std::nullopt;
  }
  header.size = *size;
  header.type = block[156];
  header.name = field(block, 0, 100);
  const std::string_view folder = is_posix(block) ? field(block, 345, 155) : "";
  if (!folder.empty()) header.name = std::string(folder) + "/" + header.name;
  return header;
}

bool Tar::pax(std::string_view records) {
  while (!records.empty()) {
    std::size_t length = 0;
    const auto read = std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<std::size_t>(read.ptr - records.data());
    if (read.ec != std::errc() || length > records.size() || length < digits + 3 || *read.ptr != ' ' ||
        records[length - 1] != '\n') {
      return fail("a pax header is wrong");
    }
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    records.remove_prefix(length);
    const std::size_t equals = record.find('=');
    if (equals == record.npos) return fail("a pax header is wrong");
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") long_name_ = std::string(value);
    if (key.starts_with("GNU.sparse.")) return fail(std::string(kSparse));
    if (key != "size") continue;
    std::uint64_t size = 0;
    const auto end = std::from_chars(value.data(), value.data() + value.size(), size);
    if (end.ec != std::errc() || end.ptr != value.data() + value.size()) return fail("a pax header is wrong");
    long_size_ = size;
  }
  return true;
}

bool Tar::extension(const Header& header, std::span<const std::byte> data) {
  if (header.type == 'x') return pax(as_text(data));
  if (header.type == 'L') long_name_ = std::string(field(as_text(data), 0, data.size()));
  return true;
}

std::optional<TarMember> Tar::next() {
  while (problem_.empty()) {
    std::optional<Header> header = this->header();
    if (!header) break;
    const char type = header->type;
    const bool extends = type == 'x' || type == 'g' || type == 'L' || type == 'K';
    if (!extends) {
      if (long_name_) header->name = *std::exchange(long_name_, std::nullopt);
      if (long_size_) header->size = *std::exchange(long_size_, std::nullopt);
    }
    if (type == 'S') {
      fail(std::string(kSparse));
      break;
    }
    // Links, devices and folders have no data, whatever their size says.
    if (type >= '1' && type <= '6') header->size = 0;
    const std::size_t start = at_ + kBlock;
    const std::size_t left = bytes_.size() - start;
    if (header->size > left || (kBlock - header->size % kBlock) % kBlock > left - header->size) {
      fail("it ends too early: " + in_quotes(header->name) + " claims " + std::to_string(header->size) +
           " bytes, " + std::to_string(left) + " are left");
      break;
    }
    if (extends && header->size > kMaxExtension) {
      fail("a header of more than 1 MiB");
      break;
    }
    const std::span<const std::byte> data = bytes_.subspan(start, header->size);
    if (extends && !extension(*header, data)) break;
    at_ = start + (header->size + kBlock - 1) / kBlock * kBlock;
    if (type == '0' || type == '\0' || type == '7') return TarMember{std::move(header->name), data};
  }
  return std::nullopt;
}

}  // namespace trapline::inputs
