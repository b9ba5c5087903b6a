#include "log/read/encoding.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "log/clean/text.hpp"

namespace trapline {
namespace {

// A format that is told by its first bytes. An archive can hold logs; a picture cannot.
struct Magic {
  std::string_view bytes;
  std::string_view what;
  bool no_log = true;
  std::size_t offset = 0;
};

using namespace std::string_view_literals;

// The formats' own specifications; of PyTorch's checkpoints torch/serialization.py, of safetensors its README
// (the size of the header as 64 bits, then the header, a JSON object), of TensorBoard's events
// tensorboard/compat/tensorflow_stub (a record of 24 bytes whose first field is the time, 0x09).
constexpr Magic kBinaries[] = {
    {"\x7f"
     "ELF",
     "an ELF program or core dump"},
    {"\x89PNG", "a picture"},
    {"\xff\xd8\xff", "a picture"},
    {"GIF8", "a picture"},
    {"RIFF", "a picture, sound or video"},
    {"OggS", "a sound or video"},
    {"fLaC", "a sound"},
    {"ftyp", "a video", true, 4},
    {"%PDF-", "a PDF"},
    {"\x93NUMPY", "a NumPy array"},
    {"\x89HDF", "an HDF5 file"},
    {"GGUF", "a GGUF model"},
    {"ARROW1", "an Arrow file"},
    {"PAR1", "a Parquet file"},
    {"PK\x03\x04", "a ZIP archive", false},
    {"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", false},
    {"Rar!\x1a", "a RAR archive", false},
    {"SQLite format 3", "a SQLite database", false},
    {"ustar", "a tar archive", false, 257},
};
// Told by bytes that a text could have too: asked only of what is no text.
constexpr Magic kData[] = {
    {"\x80\x02", "a pickle or an old PyTorch checkpoint"},
    {"\x80\x03", "a pickle"},
    {"\x80\x04", "a pickle"},
    {"\x80\x05", "a pickle"},
    {"\r\n\0\0\0\0"sv, "Python bytecode", true, 2},
    {"\0\0\0{\""sv, "a safetensors file", true, 5},
    {"\x09", "TensorBoard's events", true, 12},
};

bool is_magic(const Magic& magic, std::string_view head) {
  return head.size() > magic.offset && head.substr(magic.offset).starts_with(magic.bytes);
}

// What torch.save, NumPy and TorchScript put first into their archives.
bool is_zip_of_data(std::string_view head) {
  constexpr std::size_t kNameAt = 30;
  if (head.size() < kNameAt) return false;
  const auto low = static_cast<unsigned char>(head[26]), high = static_cast<unsigned char>(head[27]);
  const std::string_view name = head.substr(kNameAt, low | static_cast<std::size_t>(high) << 8U);
  constexpr std::string_view kFirst[] = {
      "/data.pkl",      "/version", "/byteorder", "/.format_version", "/.data/serialization_id",
      "/constants.pkl", ".npy"};
  return std::ranges::any_of(kFirst, [&](std::string_view end) { return name.ends_with(end); });
}

EncodingGuess binary_of(const Magic& magic, std::string_view head) {
  if (magic.bytes.starts_with("PK") && is_zip_of_data(head))
    return {Encoding::kBinary, 0, "a PyTorch checkpoint or NumPy arrays", true};
  return {Encoding::kBinary, 0, magic.what, magic.no_log};
}

bool is_odd_control(unsigned char c) {
  return (c < 0x20 && c != 0 && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\v' && c != '\b' &&
          c != '\a' && c != 0x1b) ||
         c == 0x7f;
}

// Whether a byte is there that a plain text in UTF-8 has no use for. Pieces of one size and no early exit:
// the loop becomes vectors.
bool has_controls(std::string_view text) {
  const auto look = [](const char* bytes, std::size_t count) {
    unsigned char any = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      const bool blank = static_cast<unsigned char>(byte - 9) < 5;  // tab to carriage return
      any |= static_cast<unsigned char>((byte < 32 && !blank) || byte == 0x7f);
    }
    return any != 0;
  };
  constexpr std::size_t kPiece = 256;
  for (; text.size() >= kPiece; text.remove_prefix(kPiece)) {
    if (look(text.data(), kPiece)) return true;
  }
  return look(text.data(), text.size());
}

// UTF-16 without its mark in a language whose letters have no zero bytes: its line feeds and the Latin text
// between have, and nearly every unit is a character of a living script. A zero at the wrong place is none.
bool is_utf16_text(std::string_view head, bool big) {
  std::size_t units = 0, letters = 0, feeds = 0, latin = 0;
  for (std::size_t i = 0; i + 1 < head.size(); i += 2, ++units) {
    const auto first = static_cast<unsigned char>(head[i]), second = static_cast<unsigned char>(head[i + 1]);
    const unsigned high = big ? first : second;
    const unsigned unit = high << 8U | (big ? second : first);
    feeds += unit == '\n' ? 1 : 0;
    latin += unit >= 0x20 && unit < 0x7f ? 1 : 0;
    const bool is_letter = unit == '\n' || unit == '\r' || unit == '\t' || unit == 0x1b ||
                           (unit >= 0x20 && unit < 0x7f) || (unit >= 0xa0 && unit < 0x600) ||
                           (unit >= 0x2010 && unit < 0x2040) || (unit >= 0x2500 && unit < 0x25a0) ||
                           (unit >= 0x3000 && unit < 0xa000) || (unit >= 0xac00 && unit < 0xd7a4) ||
                           (unit >= 0xff00 && unit < 0xfff0);
    letters += is_letter ? 1 : 0;
  }
  return units >= 16 && feeds > 0 && feeds * 1000 > units && latin > 0 && letters * 100 >= units * 98;
}

// UTF-8, or text in an encoding that holds ASCII, and so its blanks, which is read as it is. EBCDIC has its
// blank at 0x40, and its letters where UTF-8 has no characters.
EncodingGuess eight_bit_text(std::string_view head) {
  constexpr std::size_t kLeast = 32;  // of fewer bytes nobody can tell
  if (head.size() < kLeast || count_invalid_utf8(head) * 4 < head.size()) return {};
  const auto count = [&](char byte) { return static_cast<std::size_t>(std::ranges::count(head, byte)); };
  const std::size_t spaces = count(' ');
  std::size_t ats = 0;
  for (std::size_t i = 1; i < head.size(); ++i)
    ats += head[i] == '@' && head[i - 1] != '\x81' ? 1 : 0;  // 81 40 is Shift-JIS's wide blank
  if (ats * 25 > head.size() && ats > spaces * 4) return {Encoding::kBinary, 0, "a text in EBCDIC"};
  const std::size_t blanks = spaces + count('\n') + count('\t') + count('\r');
  return blanks * 200 < head.size() ? EncodingGuess{Encoding::kBinary, 0, {}} : EncodingGuess{};
}

}  // namespace

EncodingGuess guess_encoding(std::string_view head) {
  if (head.starts_with("\xef\xbb\xbf")) return {Encoding::kUtf8, 3, {}};
  if (head.starts_with("\xff\xfe")) return {Encoding::kUtf16Little, 2, {}};
  if (head.starts_with("\xfe\xff")) return {Encoding::kUtf16Big, 2, {}};
  for (const Magic& magic : kBinaries) {
    if (is_magic(magic, head)) return binary_of(magic, head);
  }
  if (!has_controls(head)) return eight_bit_text(head);
  std::array<std::size_t, 2> zeros{};    // at even and odd offsets
  std::array<std::size_t, 2> letters{};  // ASCII text at even and odd offsets
  std::size_t odd = 0;
  for (std::size_t i = 0; i < head.size(); ++i) {
    const auto c = static_cast<unsigned char>(head[i]);
    if (c == 0) ++zeros[i & 1];
    if (c >= 0x20 && c < 0x7f) ++letters[i & 1];
    if (is_odd_control(c)) ++odd;
  }
  const std::size_t half = head.size() / 2;
  // UTF-16 without its mark: nearly every other byte is zero, and the ones between are text.
  if (half >= 4 && zeros[1] * 10 > half * 8 && letters[0] * 10 > half * 7)
    return {Encoding::kUtf16Little, 0, {}};
  if (half >= 4 && zeros[0] * 10 > half * 8 && letters[1] * 10 > half * 7)
    return {Encoding::kUtf16Big, 0, {}};
  if (zeros[0] + zeros[1] > 0) {
    if (is_utf16_text(head, false)) return {Encoding::kUtf16Little, 0, {}};
    if (is_utf16_text(head, true)) return {Encoding::kUtf16Big, 0, {}};
  }
  // Zeros alone are no sign: a log that was cut while its program went on writing starts with millions of
  // them.
  const std::size_t rest = head.size() - zeros[0] - zeros[1];
  const bool is_data = odd * 10 > rest || (odd * 50 > rest && count_invalid_utf8(head) * 20 > rest);
  if (!is_data) return eight_bit_text(head);
  for (const Magic& magic : kData) {
    if (is_magic(magic, head)) return binary_of(magic, head);
  }
  return {Encoding::kBinary, 0, {}};
}

// Another program went on in bytes ("> log" of PowerShell, then ">> log" of cmd): so many letters of ASCII in
// a row are no two-byte units of any language.
bool Utf16Source::is_bytes(std::string_view rest) {
  return rest.size() >= kBytesInARow && std::ranges::all_of(rest.substr(0, kBytesInARow), [](char c) {
           return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\r' || c == '\t';
         });
}

std::size_t Utf16Source::read(char* data, std::size_t size) {
  while (taken_ == out_.size()) {
    out_.clear();
    taken_ = 0;
    std::array<char, std::size_t{16} * 1024> raw;
    std::memcpy(raw.data(), pending_.data(), pending_.size());
    const std::size_t before = pending_.size();
    const std::size_t got = utf16_.read(raw.data() + before, raw.size() - before);
    if (got == 0) {
      if (in_bytes_)
        out_ += pending_;
      else if (high_ != 0 || before != 0)
        append_utf8(out_, 0xfffd);
      high_ = 0;
      pending_.clear();
      if (out_.empty()) return 0;
      break;
    }
    const std::size_t have = before + got;
    std::size_t i = 0;
    for (; i + 1 < have; i += 2) {
      if (!in_bytes_ && high_ == 0 && raw[i] != 0 && raw[i + 1] != 0)
        in_bytes_ = is_bytes({raw.data() + i, have - i});
      if (in_bytes_) {
        const std::size_t zero =
            static_cast<std::size_t>(std::find(raw.data() + i, raw.data() + have, '\0') - raw.data());
        std::size_t stop = zero;
        if (zero < have) {  // units again; the zero is the second half of one, or the first
          stop = zero > i && !big_ ? zero - 1 : zero;
          in_bytes_ = false;
        }
        out_.append(raw.data() + i, stop - i);
        i = stop;
        if (i + 1 >= have) break;
      }
      const auto first = static_cast<unsigned char>(raw[i]);
      const auto second = static_cast<unsigned char>(raw[i + 1]);
      const std::uint32_t high_byte = big_ ? first : second;
      const std::uint32_t unit = high_byte << 8U | (big_ ? second : first);
      if (high_ != 0) {
        const std::uint32_t high = high_;
        high_ = 0;
        if (unit >= 0xdc00 && unit < 0xe000) {
          append_utf8(out_, 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00));
          continue;
        }
        append_utf8(out_, 0xfffd);
      }
      if (unit >= 0xd800 && unit < 0xdc00) {
        high_ = unit;
      } else {
        append_utf8(out_, unit);
      }
    }
    pending_.clear();
    if (i < have) pending_.push_back(raw[i]);
  }
  const std::size_t count = std::min(size, out_.size() - taken_);
  std::memcpy(data, out_.data() + taken_, count);
  taken_ += count;
  return count;
}

}  // namespace trapline
