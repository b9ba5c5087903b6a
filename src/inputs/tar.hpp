// The members of a tar archive, in their order: ustar, pax and GNU's long names. Nothing is extracted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace trapline::inputs {

struct TarMember {
  std::string name;
  std::span<const std::byte> data;  // inside the archive
};

// The first block is a header with the magic of POSIX or GNU.
bool is_tar(std::span<const std::byte> bytes);

class Tar {
 public:
  explicit Tar(std::span<const std::byte> bytes) : bytes_(bytes) {}
  // The next regular file; folders, links and devices are passed over. Empty: the end, or problem().
  std::optional<TarMember> next();
  const std::string& problem() const { return problem_; }  // "" when there is none
  std::size_t offset() const { return at_; }               // of the next header, or of the problem

 private:
  struct Header;
  std::optional<Header> header();
  // What an 'x' or 'L' entry says of the member behind it.
  bool extension(const Header& header, std::span<const std::byte> data);
  bool pax(std::string_view records);
  bool fail(std::string why) {
    problem_ = std::move(why);
    return false;
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  std::string problem_;
  std::optional<std::string> long_name_;  // of the next member, and its size
  std::optional<std::uint64_t> long_size_;
};

}  // namespace trapline::inputs
