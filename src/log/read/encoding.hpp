// What kind of text a source holds, and UTF-16 made into UTF-8 on the way.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bytes/source.hpp"

namespace trapline {

enum class Encoding : std::uint8_t { kUtf8, kUtf16Little, kUtf16Big, kBinary };

struct EncodingGuess {
  Encoding encoding = Encoding::kUtf8;
  std::size_t skip = 0;   // bytes of the byte order mark
  std::string_view what;  // of a binary: "an ELF program", "a ZIP archive"; empty when only its bytes say so
  bool no_log = false;    // of a binary: a kind of file in which no log lies
};

inline constexpr std::size_t kSniffSize = 4096;

// From the first bytes (kSniffSize where the source has as many).
EncodingGuess guess_encoding(std::string_view head);

// Windows PowerShell writes logs in UTF-16. Unpaired surrogates become U+FFFD. What another program wrote
// behind it in bytes stays as it is.
class Utf16Source : public ByteSource {
 public:
  Utf16Source(ByteSource& utf16, bool big) : utf16_(utf16), big_(big) {}
  std::size_t read(char* data, std::size_t size) override;
  const std::optional<SourceProblem>& problem() const override { return utf16_.problem(); }

 private:
  static constexpr std::size_t kBytesInARow = 32;
  static bool is_bytes(std::string_view rest);

  ByteSource& utf16_;
  bool big_;
  std::string pending_;     // bytes of an incomplete unit
  std::uint32_t high_ = 0;  // a high surrogate that waits for its low one
  std::string out_;
  std::size_t taken_ = 0;
  bool in_bytes_ = false;
};

}  // namespace trapline
