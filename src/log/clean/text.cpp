#include "log/clean/text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace trapline {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

unsigned char at(std::string_view text, std::size_t i) {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
}

// The length of the valid UTF-8 sequence at `i`; 0 when it is none. Shortest forms and scalar values only.
std::size_t sequence_length(std::string_view text, std::size_t i) {
  const unsigned char c = at(text, i);
  const auto follows = [&](std::size_t k) { return (at(text, i + k) & 0xc0) == 0x80; };
  if (c < 0x80) return 1;
  if (c < 0xc2) return 0;
  if (c < 0xe0) return follows(1) ? 2 : 0;
  if (c < 0xf0) {
    const unsigned char second = at(text, i + 1);
    if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second >= 0xa0)) return 0;
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (c < 0xf5) {
    const unsigned char second = at(text, i + 1);
    if ((c == 0xf0 && second < 0x90) || (c == 0xf4 && second >= 0x90)) return 0;
    return follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

// One past the escape sequence at `i` (an ESC, or the two characters "^[" that some pagers show for it).
std::size_t after_escape(std::string_view text, std::size_t i) {
  std::size_t k = i + 1;
  if (text[i] == '^') ++k;
  const unsigned char kind = at(text, k);
  if (kind == '[') {  // CSI: parameters, intermediates, one final byte
    ++k;
    while (at(text, k) >= 0x20 && at(text, k) <= 0x3f) ++k;
    if (at(text, k) >= 0x40 && at(text, k) <= 0x7e) ++k;
    return k;
  }
  if (kind == ']' || kind == 'P' || kind == '^' || kind == '_') {  // strings up to BEL or ESC backslash
    const std::size_t limit = std::min(text.size(), k + 4096);
    for (std::size_t end = k + 1; end < limit; ++end) {
      if (text[end] == '\a') return end + 1;
      if (text[end] == '\x1b' && at(text, end + 1) == '\\') return end + 2;
    }
    return k + 1;  // never ended: only the introducer is one
  }
  if (kind == '(' || kind == ')') return std::min(k + 2, text.size());  // character sets
  if (kind >= 0x30 && kind <= 0x7e) return k + 1;
  return std::min(k, text.size());
}

// How many columns an escape sequence moves the cursor forward: what a screen shows there is blank ("\x1b[1C"
// between the words of a recorded terminal).
std::size_t forward(std::string_view sequence) {
  const std::size_t bracket = sequence.find('[', sequence.starts_with('^') ? 2 : 1);
  if (bracket == sequence.npos || !sequence.ends_with('C')) return 0;
  std::size_t columns = 0;
  for (const char c : sequence.substr(bracket + 1, sequence.size() - bracket - 2)) {
    if (c < '0' || c > '9' || columns > 100) return 0;
    columns = columns * 10 + static_cast<std::size_t>(c - '0');
  }
  return columns == 0 ? 1 : std::min<std::size_t>(columns, 200);
}

// Printable ASCII and tabs only. Pieces of one size and no early exit: the loop becomes vectors.
bool is_plain(std::string_view raw) {
  const auto look = [](const char* bytes, std::size_t count) {
    unsigned char odd = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      odd |= static_cast<unsigned char>((byte < 0x20 && byte != '\t') || byte >= 0x7f);
    }
    return odd == 0;
  };
  constexpr std::size_t kPiece = 32;
  for (; raw.size() >= kPiece; raw.remove_prefix(kPiece)) {
    if (!look(raw.data(), kPiece)) return false;
  }
  return look(raw.data(), raw.size());
}

void erase_last(std::string& text) {
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) text.pop_back();
  if (!text.empty() && text.back() != '\r') text.pop_back();
}

}  // namespace

std::size_t count_invalid_utf8(std::string_view bytes) {
  std::size_t invalid = 0;
  for (std::size_t i = 0; i < bytes.size();) {
    std::uint64_t eight = ~std::uint64_t{0};
    if (i + sizeof eight <= bytes.size()) std::memcpy(&eight, bytes.data() + i, sizeof eight);
    if ((eight & 0x8080808080808080) == 0) {  // as most of most logs is
      i += sizeof eight;
      continue;
    }
    const std::size_t length = sequence_length(bytes, i);
    if (length == 0 && i + 4 > bytes.size()) break;
    invalid += length == 0 ? 1 : 0;
    i += std::max<std::size_t>(length, 1);
  }
  return invalid;
}

std::string_view clean_text(std::string_view raw, std::string& scratch, bool& replaced) {
  while (!raw.empty() && (raw.back() == '\n' || raw.back() == '\r')) raw.remove_suffix(1);
  if (raw.ends_with("^M")) raw.remove_suffix(2);
  const bool plain = is_plain(raw);
  if (plain && raw.find("^[[") == raw.npos) return raw;
  scratch.clear();
  for (std::size_t i = 0; i < raw.size();) {
    const unsigned char c = at(raw, i);
    if (c == 0x1b || (c == '^' && at(raw, i + 1) == '[' && at(raw, i + 2) == '[')) {
      const std::size_t next = after_escape(raw, i);
      scratch.append(forward(raw.substr(i, next - i)), ' ');
      i = next;
    } else if (c == '\b') {
      erase_last(scratch);
      ++i;
    } else if (c >= 0x20 && c < 0x7f) {
      scratch.push_back(raw[i++]);
    } else if (c < 0x80) {
      if (c == '\t' || c == '\r') scratch.push_back(raw[i]);
      if (c == '\f' || c == '\v') scratch.push_back(' ');
      ++i;
    } else {
      const std::size_t length = sequence_length(raw, i);
      const std::string_view sequence = raw.substr(i, length);
      i += std::max<std::size_t>(length, 1);
      if (length == 0) {
        replaced = true;
        if (!scratch.ends_with(kReplacement)) scratch += kReplacement;  // one for a run of them
      } else if (sequence == "\u00a0" || sequence == "\u202f") {
        scratch.push_back(' ');
      } else if (sequence != "\u200b" && sequence != "\u200c" && sequence != "\u200d" &&
                 sequence != "\ufeff" && sequence != "\u2060" && sequence != "\u00ad") {
        scratch += sequence;
      }
    }
  }
  return scratch;
}

void append_utf8(std::string& text, std::uint32_t code) {
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) code = 0xfffd;
  const auto put = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::string single_spaced(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' || !out.ends_with(' ')) out += c;
  }
  return out;
}

}  // namespace trapline
