#include "inputs/csv_rows.hpp"

#include <algorithm>
#include <cstring>

namespace trapline::inputs {
namespace {

std::string_view without_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

bool CsvRows::next(std::vector<std::string_view>& fields, std::size_t most) {
  fields.clear();
  while (next_ < text_.size()) {
    if (text_[next_] == '\n') {  // a file may hold gigabytes of empty lines
      ++next_;
      ++line_;
      continue;
    }
    row_ = next_;
    row_line_ = line_;
    const char* begin = text_.data() + next_;
    const auto* newline = static_cast<const char*>(std::memchr(begin, '\n', text_.size() - next_));
    const std::size_t length =
        newline != nullptr ? static_cast<std::size_t>(newline - begin) : text_.size() - next_;
    if (std::memchr(begin, '"', length) != nullptr) return quoted_row(fields, most);
    next_ += length + (newline != nullptr ? 1 : 0);
    ++line_;
    std::string_view line = without_return({begin, length});
    if (line.empty()) continue;
    const char* const end = line.data() + line.size();
    const char* field = line.data();
    const char* at = field;
    for (; at != end; ++at) {
      if (*at != delimiter_) continue;
      fields.emplace_back(field, static_cast<std::size_t>(at - field));
      field = at + 1;
      if (fields.size() == most) return true;
    }
    fields.emplace_back(field, static_cast<std::size_t>(end - field));
    return true;
  }
  return false;
}

// A row with a quote somewhere: its fields may hold delimiters, newlines and doubled quotes.
bool CsvRows::quoted_row(std::vector<std::string_view>& fields, std::size_t most) {
  unquoted_used_ = 0;
  for (;;) {
    std::string_view field;
    if (next_ < text_.size() && text_[next_] == '"') {
      const std::size_t open = next_++;
      std::size_t start = next_;
      std::string* built = nullptr;
      for (;;) {
        const std::size_t quote = text_.find('"', next_);
        if (quote == text_.npos) {
          problem_ = "a quoted field does not end";
          problem_offset_ = open;
          next_ = text_.size();
          fields.clear();
          return false;
        }
        line_ += std::count(text_.begin() + static_cast<std::ptrdiff_t>(next_),
                            text_.begin() + static_cast<std::ptrdiff_t>(quote), '\n');
        next_ = quote + 1;
        const bool doubled = next_ < text_.size() && text_[next_] == '"';
        // Fields that nobody wants are walked over, not copied.
        if (fields.size() < most && (doubled || built != nullptr)) {
          if (built == nullptr) {
            if (unquoted_used_ == unquoted_.size()) unquoted_.emplace_back();
            built = &unquoted_[unquoted_used_];
            built->clear();
          }
          built->append(text_.substr(start, quote - start));
          if (doubled) built->push_back('"');
        }
        if (!doubled) {
          if (built == nullptr) field = text_.substr(start, quote - start);
          break;
        }
        start = ++next_;
      }
      if (built != nullptr) {
        // Its place in the vector may move when another field is added; the characters are fetched at the
        // end.
        ++unquoted_used_;
        field = {nullptr, unquoted_used_};
      }
      // Text behind the closing quote is not part of any dialect; it is passed over.
      while (next_ < text_.size() && text_[next_] != delimiter_ && text_[next_] != '\n') ++next_;
    } else {
      const std::size_t start = next_;
      while (next_ < text_.size() && text_[next_] != delimiter_ && text_[next_] != '\n') ++next_;
      field = text_.substr(start, next_ - start);
      if (next_ == text_.size() || text_[next_] == '\n') field = without_return(field);
    }
    if (fields.size() < most) fields.push_back(field);
    if (next_ == text_.size()) break;
    if (text_[next_++] == '\n') break;
  }
  ++line_;
  for (std::string_view& field : fields) {
    if (field.data() == nullptr && !field.empty()) field = unquoted_[field.size() - 1];
  }
  return true;
}

}  // namespace trapline::inputs
