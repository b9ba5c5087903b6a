#include "log/clean/tidy.hpp"

#include <algorithm>
#include <array>

namespace trapline {
namespace {

struct Replacement {
  std::string_view from, to;
};

// Behind the "&".
constexpr std::array kEntities = {
    Replacement{"nbsp;", " "}, Replacement{"lt;", "<"},    Replacement{"gt;", ">"},
    Replacement{"amp;", "&"},  Replacement{"quot;", "\""}, Replacement{"#39;", "'"},
    Replacement{"#x27;", "'"}, Replacement{"apos;", "'"},  Replacement{"#96;", "`"},
};

constexpr std::array kEscapes = {
    // JSON's spelling of the same, in text that is not JSON any more.
    Replacement{"\\u003c", "<"},
    Replacement{"\\u003e", ">"},
    Replacement{"\\u0026", "&"},
    Replacement{"\\u0027", "'"},
    Replacement{"\\u0022", "\""},
    // Quoted-printable mail.
    Replacement{"=3D", "="},
};

// The entity at the start of `text`, and its length. A page that quotes a page writes "&amp;lt;" for "<".
const Replacement* entity_at(std::string_view text, std::size_t& length) {
  if (!text.starts_with('&')) return nullptr;
  std::size_t name = 1;
  const auto named = [&] {
    return std::find_if(kEntities.begin(), kEntities.end(),
                        [&](const Replacement& r) { return text.substr(name).starts_with(r.from); });
  };
  const Replacement* found = nullptr;
  for (const auto* entity = named(); entity != kEntities.end(); entity = named()) {
    found = entity;
    name += entity->from.size();
    length = name;
    if (entity->to != "&") break;
  }
  return found;
}

const Replacement* escape_at(std::string_view text, std::size_t& length) {
  const auto* const found = std::find_if(kEscapes.begin(), kEscapes.end(),
                                         [&](const Replacement& r) { return text.starts_with(r.from); });
  if (found == kEscapes.end()) return nullptr;
  length = found->from.size();
  return found;
}

// Whether there may be something to decode: one pass over a table of bytes, since nearly every line has none.
bool may_be_encoded(std::string_view text) {
  static constexpr auto kMayStart = [] {
    std::array<bool, 256> table{};
    for (const char c : std::string_view("&\\=\xEF\xE3")) table[static_cast<unsigned char>(c)] = true;
    return table;
  }();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!kMayStart[static_cast<unsigned char>(c)]) continue;
    if (c == '\\' && !text.substr(i).starts_with("\\u00")) continue;
    if (c == '=' && !text.substr(i).starts_with("=3D")) continue;
    return true;
  }
  return false;
}

// Full-width punctuation and blanks to ASCII; entities to their characters. True when something changed.
bool decode(std::string_view text, std::string& out) {
  if (!may_be_encoded(text)) return false;
  out.clear();
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '&' || byte == '\\' || byte == '=') {
      const std::string_view rest = text.substr(i);
      std::size_t length = 0;
      if (const Replacement* known = byte == '&' ? entity_at(rest, length) : escape_at(rest, length)) {
        out += known->to;
        i += length;
        continue;
      }
    } else if ((byte == 0xEF || byte == 0xE3) && i + 2 < text.size()) {
      const unsigned second = static_cast<unsigned char>(text[i + 1]),
                     third = static_cast<unsigned char>(text[i + 2]);
      const unsigned code = (byte & 0xFU) << 12U | (second & 0x3FU) << 6U | (third & 0x3FU);
      if (code >= 0xFF01 && code <= 0xFF5E) {
        out += static_cast<char>(code - 0xFF01 + 0x21);
        i += 3;
        continue;
      }
      if (code == 0x3000) {
        out += ' ';
        i += 3;
        continue;
      }
    }
    out += text[i++];
  }
  return true;
}

// The end of a colour code that lost its escape character ("[31m", "[01;32m"); npos when there is none at
// `at`.
std::size_t after_colour(std::string_view text, std::size_t at) {
  if (text[at] != '[') return std::string_view::npos;
  const std::size_t end = text.find_first_not_of("0123456789;", at + 1);
  if (end == std::string_view::npos || end == at + 1 || end > at + 12 || text[end] != 'm')
    return std::string_view::npos;
  return end + 1;
}

bool drop_lost_colours(std::string_view text, std::string& out) {
  bool any = false;
  for (std::size_t at = text.find('['); at != std::string_view::npos && !any; at = text.find('[', at + 1))
    any = after_colour(text, at) != std::string_view::npos;
  if (!any) return false;
  std::string kept;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = after_colour(text, at);
    if (end == std::string_view::npos) {
      kept += text[at++];
    } else {
      at = end;
    }
  }
  out = std::move(kept);
  return true;
}

std::string_view without(std::string_view text, std::string_view edge) {
  if (text.starts_with(edge)) text.remove_prefix(edge.size());
  if (text.ends_with(edge)) text.remove_suffix(edge.size());
  return text;
}

bool ends_with_blank(std::string_view text) {
  return !text.empty() && (text.back() == ' ' || text.back() == '\t');
}

// Indentation is kept where it can be: it tells a source line from a message.
std::string_view strip_edges(std::string_view text) {
  while (ends_with_blank(text)) text.remove_suffix(1);
  if (text.ends_with("^M")) text.remove_suffix(2);
  while (ends_with_blank(text)) text.remove_suffix(1);
  constexpr std::string_view kBar = "\u2502", kThinBar = "\u2503";
  for (const std::string_view bar : {kBar, kThinBar}) {
    if (text.ends_with(bar)) text.remove_suffix(bar.size());
    if (text.starts_with(bar)) text.remove_prefix(bar.size());
  }
  while (text.starts_with("> ")) text.remove_prefix(2);
  text = without(text, "```");
  text = without(text, "`");
  text = without(text, "**");
  text = without(text, "__");
  if (text.size() > 2 && text.front() == '_' && text.back() == '_') text = text.substr(1, text.size() - 2);
  while (ends_with_blank(text)) text.remove_suffix(1);
  return text;
}

}  // namespace

std::string_view tidy(std::string_view text, std::string& storage) {
  if (decode(text, storage)) text = storage;
  if (drop_lost_colours(text, storage)) text = storage;
  return strip_edges(text);
}

}  // namespace trapline
