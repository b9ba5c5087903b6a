#include "inputs/json_text.hpp"

#include <cstring>

namespace trapline::inputs {

simdjson::padded_string_view JsonText::of(std::string_view text) {
  if (copy_ == nullptr || capacity_ - simdjson::SIMDJSON_PADDING < text.size()) {
    capacity_ = text.size() + text.size() / 2 + simdjson::SIMDJSON_PADDING;
    copy_ = std::make_unique_for_overwrite<char[]>(capacity_);
  }
  std::memcpy(copy_.get(), text.data(), text.size());
  std::memset(copy_.get() + text.size(), ' ', simdjson::SIMDJSON_PADDING);
  size_ = text.size();
  return simdjson::padded_string_view(copy_.get(), text.size(), capacity_);
}

}  // namespace trapline::inputs
