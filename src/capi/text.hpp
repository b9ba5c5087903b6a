// Texts that cross the C border: the caller releases them with trapline_free.
#pragma once

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace trapline {

// Null when memory is exhausted.
inline char* copy(std::string_view text) {
  auto* bytes = static_cast<char*>(std::malloc(text.size() + 1));
  if (bytes == nullptr) return nullptr;
  if (!text.empty()) std::memcpy(bytes, text.data(), text.size());
  bytes[text.size()] = '\0';
  return bytes;
}

inline std::string_view given(const char* text) { return text == nullptr ? std::string_view() : text; }

}  // namespace trapline
