#include "inputs/stand_in.hpp"

#include <algorithm>
#include <string_view>

#include "inputs/damage.hpp"

namespace trapline::inputs {
namespace {

// The first line of a pointer, and the most that one may have: the specification of Git LFS (docs/spec.md
// there).
constexpr std::string_view kPointer = "version https://git-lfs.github.com/spec/";
constexpr std::size_t kMaxPointer = 1024;

bool starts_with_any_case(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() &&
         std::ranges::equal(text.substr(0, lower.size()), lower, {}, [](char c) {
           return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
         });
}

}  // namespace

std::optional<Error> stand_in(const std::string& path, std::span<const std::byte> bytes) {
  std::string_view text = as_text(bytes.first(std::min<std::size_t>(bytes.size(), 256)));
  if (bytes.size() < kMaxPointer && text.starts_with(kPointer)) {
    return unreadable(path, "this is a Git LFS pointer, not the file", "fetch the file with `git lfs pull`");
  }
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n\xEF\xBB\xBF"), text.size()));
  if (starts_with_any_case(text, "<!doctype html") || starts_with_any_case(text, "<html")) {
    return unreadable(path, "this is a page of a web server (HTML), not the file: the download failed",
                      "download the file again, where it is gated with a login");
  }
  return std::nullopt;
}

}  // namespace trapline::inputs
