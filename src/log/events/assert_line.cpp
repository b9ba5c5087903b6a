#include "log/events/assert_line.hpp"

#include <re2/re2.h>

#include <charconv>

#include "log/clean/text.hpp"

namespace trapline {
namespace {

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(const re2::StringPiece& text) { return {text.data(), text.size()}; }

RE2::Options quiet() {
  RE2::Options options;
  options.set_encoding(RE2::Options::EncodingLatin1);
  options.set_log_errors(false);
  return options;
}

const RE2& place_pattern() {
  // A Markdown link may stand between the name and the function: [x.cu:12](http://...): kernel
  static const auto* const pattern = new RE2(
      R"re(((?:[A-Za-z]:)?[\w./\\+<>@~-]*\.(?:cu\.h|cuh|cu|hip|hpp|h|inl|py|cpp|cc|cxx|c)|unknown)\s*[:(,]\s*(?:line\s*)?(\d{1,7})\)?)re",
      quiet());
  return *pattern;
}

bool is_quote(char c) { return c == '`' || c == '\'' || c == '"' || c == '*' || c == '_' || c == ' '; }

std::string_view unquote(std::string_view text) {
  while (!text.empty() && is_quote(text.front()) && text.front() != '"') text.remove_prefix(1);
  while (!text.empty() && (is_quote(text.back()) && text.back() != '"')) text.remove_suffix(1);
  return text;
}

bool is_cuda_file(std::string_view file) {
  return file.ends_with(".cu") || file.ends_with(".cuh") || file.ends_with(".hip") || file.ends_with(".cu.h");
}

// From the end of "Assertion": the condition, whatever is left of its quotes and of "failed".
std::string_view read_condition(std::string_view rest) {
  for (const std::string_view end :
       {"` failed", "' failed", "`** failed", "**` failed", "failed", "\xE5\xA4\xB1\xE8\xB4\xA5"}) {
    if (const std::size_t at = rest.find(end); at != std::string_view::npos) {
      rest = rest.substr(0, at);
      break;
    }
  }
  return unquote(trim(rest));
}

}  // namespace

bool read_coordinate(std::string_view text, std::string_view label, std::size_t& from, Coordinate& out) {
  const std::size_t at = text.find(label, from);
  if (at == std::string_view::npos) return false;
  std::size_t i = at + label.size();
  while (i < text.size() && (text[i] == ' ' || text[i] == ':' || text[i] == '[')) ++i;
  std::int32_t* const parts[3] = {&out.x, &out.y, &out.z};
  for (int part = 0; part < 3; ++part) {
    while (i < text.size() && text[i] == ' ') ++i;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), *parts[part]);
    if (error != std::errc()) return false;
    i = static_cast<std::size_t>(end - text.data());
    if (i >= text.size() || text[i] != (part == 2 ? ']' : ',')) return false;
    ++i;
  }
  from = i;
  return true;
}

bool ends_assert(std::string_view text) {
  if (text.find("failed") != std::string_view::npos ||
      text.find("\xE5\xA4\xB1\xE8\xB4\xA5") != std::string_view::npos)
    return true;
  const std::size_t word = text.find("ssertion");
  if (word == std::string_view::npos) return false;
  const std::size_t open = text.find_first_of("`'", word);
  const std::size_t inside = text.find_first_not_of("`'", open);
  return open != std::string_view::npos && inside != std::string_view::npos &&
         text.find_first_of("`'", inside) != std::string_view::npos;
}

std::optional<AssertLine> parse_assert(std::string_view text) {
  AssertLine line;
  std::size_t from = 0, place_begin = std::string_view::npos;
  std::string_view block_label = "block:", thread_label = "thread:";
  if (text.find("global id:") != std::string_view::npos)
    block_label = "global id:", thread_label = "local id:";
  // Torn lines begin a place and break off: the first whole one counts.
  int tries = 16;  // hostile lines must not cost more than that
  for (std::size_t block = text.find(block_label);
       block != std::string_view::npos && !line.has_place && tries-- > 0;
       block = text.find(block_label, block + 1)) {
    place_begin = block;
    from = block;
    line.has_place = read_coordinate(text, block_label, from, line.block) &&
                     read_coordinate(text, thread_label, from, line.thread);
  }
  if (!line.has_place && place_begin != std::string_view::npos) from = place_begin = text.find(block_label);
  std::size_t assertion = text.find("ssertion", line.has_place ? from : 0);
  std::size_t words = 8;
  if (assertion == std::string_view::npos) {
    assertion = text.find("\xE6\x96\xAD\xE8\xA8\x80", from);  // machine translated
    words = 6;
  } else if (assertion > 0) {
    --assertion;
    ++words;
  }
  if (assertion == std::string_view::npos && !line.has_place) return std::nullopt;
  // Not the advice "to enable device-side assertions", which every error brings along.
  const bool says_device = (text.find("evice-side assertion") != std::string_view::npos &&
                            text.find("failed") != std::string_view::npos) ||
                           text.find("CUDA_KERNEL_ASSERT") != std::string_view::npos;

  // The file is the last one named before the block, or before the word.
  const std::size_t head_end = place_begin != std::string_view::npos ? place_begin
                               : assertion != std::string_view::npos ? assertion
                                                                     : text.size();
  std::string_view head = text.substr(0, head_end), after_file;
  const auto find_place = [&](std::string_view where, bool last) {
    re2::StringPiece rest = piece(where), name, number;
    while (RE2::FindAndConsume(&rest, place_pattern(), &name, &number)) {
      line.file = base_name(view(name));
      line.line = 0;
      std::from_chars(number.data(), number.data() + number.size(), line.line);
      after_file = where.substr(where.size() - rest.size());
      if (!last) break;
    }
  };
  find_place(head, true);
  if (line.file.empty() && line.has_place) {  // torn: the name may stand anywhere
    find_place(text, true);
    after_file = {};
  }
  std::string_view condition;
  if (assertion != std::string_view::npos) {
    const std::string_view rest = text.substr(std::min(text.size(), assertion + words));
    if (trim(rest).starts_with("failed:") || trim(rest).starts_with("error")) {
      // DeepEP: "Assertion failed: file.cu:12, condition: x"; PRINTF macro: "Assertion failed: `x`: text"
      std::string_view tail = trim(rest);
      tail.remove_prefix(tail.starts_with("failed:") ? 7 : 5);
      if (line.file.empty()) find_place(tail, false);
      if (const std::size_t at = tail.find("condition:"); at != std::string_view::npos) {
        condition = trim(tail.substr(at + 10));
      } else if (const std::size_t tick = tail.find('`'); tick != std::string_view::npos) {
        const std::size_t end = tail.find('`', tick + 1);
        condition = tail.substr(tick + 1, end == std::string_view::npos ? end : end - tick - 1);
      } else if (const std::size_t quote = tail.find('\''); quote != std::string_view::npos) {
        condition = unquote(tail.substr(quote));
      } else {
        condition = trim(tail.substr(0, tail.find(", ")));
      }
    } else {
      condition = read_condition(rest);
      if (line.file.empty()) find_place(rest, false);  // THNN: "... failed. at x.c:97"
    }
  }
  line.condition = condition;
  if (!after_file.empty() || !head.empty()) {
    std::string_view kernel = after_file;
    if (const std::size_t link = kernel.find("): ");
        kernel.starts_with("](") && link != std::string_view::npos)
      kernel.remove_prefix(link + 1);
    while (!kernel.empty() && (kernel.front() == ':' || kernel.front() == ' ')) kernel.remove_prefix(1);
    while (!kernel.empty() && (kernel.back() == ':' || kernel.back() == ' ')) kernel.remove_suffix(1);
    line.kernel = kernel;
  }

  if (line.has_place || says_device || place_begin != std::string_view::npos) {
    line.form = AssertForm::kDevice;
    if (!line.has_place && assertion == std::string_view::npos) return std::nullopt;
    return line;
  }
  // Without block and thread: a message that says "failed", in a file.
  if (line.file.empty() || text.find("failed", assertion) == std::string_view::npos) {
    if (text.find("ssertion error") == std::string_view::npos || line.file.empty()) return std::nullopt;
  }
  if (text.find("ssertion error") !=
      std::string_view::npos) {  // a library's check on the host, in a CUDA source
    line.form = AssertForm::kHost;
    return line;
  }
  const bool c_library =
      line.kernel.find('(') != std::string_view::npos && text.find("' failed") != std::string_view::npos;
  // Headers hold device code, too: the table knows which, and devices close their back-quote.
  const bool known_header =
      is_known_assert_file(line.file) && text.find("` failed") != std::string_view::npos;
  line.form =
      (is_cuda_file(line.file) || known_header) && !c_library ? AssertForm::kKernel : AssertForm::kHost;
  return line;
}

}  // namespace trapline
