#include "log/clean/tidy.hpp"

#include <algorithm>
#include <array>

namespace trapline {
namespace {

struct Replacement {
  std::string_view from, to;
};

constexpr std::array kEntities = {
    Replacement{"&nbsp;", " "},
    Replacement{"&amp;lt;", "<"},
    Replacement{"&amp;gt;", ">"},
    Replacement{"&amp;amp;", "&"},
    Replacement{"&amp;quot;", "\""},
    Replacement{"&lt;", "<"},
    Replacement{"&gt;", ">"},
    Replacement{"&amp;", "&"},
    Replacement{"&quot;", "\""},
    Replacement{"&#39;", "'"},
    Replacement{"&#x27;", "'"},
    Replacement{"&apos;", "'"},
    Replacement{"&#96;", "`"},
    // JSON's spelling of the same, in text that is no JSON any more.
    Replacement{"\\u003c", "<"},
    Replacement{"\\u003e", ">"},
    Replacement{"\\u0026", "&"},
    Replacement{"\\u0027", "'"},
    Replacement{"\\u0022", "\""},
    // Quoted-printable mail.
    Replacement{"=3D", "="},
};

// Whether there may be something to decode: one pass over a table of bytes, since nearly every line has none.
bool may_be_encoded(std::string_view text) {
  static constexpr auto kMayStart = [] {
    std::array<bool, 256> table{};
    for (const char c : std::string_view("&\\=\xEF\xE3\xC2")) table[static_cast<unsigned char>(c)] = true;
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
      const auto* entity = std::find_if(kEntities.begin(), kEntities.end(), [&](const Replacement& r) {
        return text.substr(i).starts_with(r.from);
      });
      if (entity != kEntities.end()) {
        out += entity->to;
        i += entity->from.size();
        continue;
      }
    } else if (byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) == 0xA0) {
      out += ' ';  // no-break space
      i += 2;
      continue;
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

// Literal "\n" between lines, not the beginning of a folder's name in a Windows path.
bool is_line_end(std::string_view text, std::size_t at) {
  if (text[at] != '\\' || at + 1 >= text.size() || text[at + 1] != 'n') return false;
  if (at + 2 >= text.size()) return true;
  const char next = text[at + 2];
  if (next == ' ' || next == '\\' || next == '/' || next == '.' || next == '"' || next == '\'' || next == '[')
    return true;
  const std::string_view rest = text.substr(at + 2);
  for (const std::string_view start :
       {"Traceback", "RuntimeError", "CUDA ", "During", "The above", "torch.", "For debugging",
        "Compile with", "IndexError", "ValueError", "File "}) {
    if (rest.starts_with(start)) return true;
  }
  return false;
}

}  // namespace

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

void tidy(std::string_view text, std::string& storage, std::vector<std::string_view>& lines) {
  lines.clear();
  if (decode(text, storage)) text = storage;
  if (drop_lost_colours(text, storage)) text = storage;
  std::size_t breaks = 0;
  for (std::size_t at = text.find("\\n"); at != std::string_view::npos; at = text.find("\\n", at + 2))
    breaks += is_line_end(text, at) ? 1 : 0;
  if (breaks >= 2) {
    std::size_t begin = 0;
    for (std::size_t at = text.find("\\n"); at != std::string_view::npos; at = text.find("\\n", at + 2)) {
      if (!is_line_end(text, at)) continue;
      lines.push_back(strip_edges(text.substr(begin, at - begin)));
      begin = at + 2;
    }
    text.remove_prefix(begin);
  }
  lines.push_back(strip_edges(text));
}

}  // namespace trapline
