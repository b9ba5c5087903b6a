#include "check/sentencepiece.hpp"

namespace trapline::check {
namespace {

constexpr std::uint64_t kPieces = 1;  // repeated SentencePiece pieces = 1;

class Wire {
 public:
  explicit Wire(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool at_end() const { return at_ == bytes_.size(); }

  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_end()) return std::nullopt;
      const auto byte = std::to_integer<std::uint64_t>(bytes_[at_++]);
      value |= (byte & 0x7FU) << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    return std::nullopt;
  }
  bool skip(std::uint64_t count) {
    if (count > bytes_.size() - at_) return false;
    at_ += count;
    return true;
  }
  bool skip_field(std::uint64_t type) {
    switch (type) {
      case 0:
        return varint().has_value();
      case 1:
        return skip(8);
      case 2: {
        const auto length = varint();
        return length && skip(*length);
      }
      case 5:
        return skip(4);
      default:
        return false;
    }
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::int64_t> count_pieces(std::span<const std::byte> bytes) {
  Wire wire(bytes);
  std::int64_t pieces = 0;
  while (!wire.at_end()) {
    const auto key = wire.varint();
    if (!key || !wire.skip_field(*key & 7U)) return std::nullopt;
    if (*key >> 3U == kPieces && (*key & 7U) == 2) ++pieces;
  }
  return pieces > 0 ? std::optional(pieces) : std::nullopt;
}

}  // namespace trapline::check
