#include "inputs/json_outline.hpp"

#include <algorithm>
#include <vector>

namespace trapline::inputs {
namespace {

constexpr std::string_view kBlank = " \t\r\n";
constexpr std::size_t kMaxEntries = 4096;  // keys of the object at the top
// The keys under which libraries write records beside a version or a schema: datasets' `field`, pandas'
// "table".
constexpr std::string_view kRecordKeys[] = {"data",    "rows",      "records", "items",
                                            "samples", "instances", "examples"};

struct Entry {
  std::string_view key;
  char kind = 0;               // the first character of the value
  std::int64_t count = 0;      // of its elements
  char first = 0;              // the first character of the first of them
  std::string_view first_key;  // and its key, in an object
};

// Goes through the text once: strings are jumped over, of lists and objects only the nesting is followed.
class Scan {
 public:
  explicit Scan(std::string_view text) : text_(text) {}

  // The values of the object that begins here; so many as there are before the text is cut or wrong.
  std::vector<Entry> entries() {
    std::vector<Entry> found;
    ++at_;  // its brace
    while (found.size() < kMaxEntries) {
      Entry entry;
      if (next() != '"' || !string(entry.key) || next() != ':') break;
      ++at_;
      entry.kind = next();
      if (!value(entry)) {
        whole_ = false;
        if (entry.count > 1) found.push_back(entry);
        return found;
      }
      found.push_back(entry);
      const char behind = next();
      if (behind == '}') return found;
      if (behind != ',') break;
      ++at_;
    }
    whole_ = false;
    return found;
  }
  bool whole() const { return whole_; }

 private:
  char next() {
    at_ = std::min(text_.find_first_not_of(kBlank, at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool string(std::string_view& inside) {
    const std::size_t begin = ++at_;
    for (;;) {
      at_ = text_.find_first_of("\"\\", at_);
      if (at_ == text_.npos) {
        at_ = text_.size();
        return false;
      }
      if (text_[at_] == '"') break;
      at_ += 2;
    }
    inside = text_.substr(begin, at_ - begin);
    ++at_;
    return true;
  }
  // Behind a value of any kind; of a list or an object its elements are counted.
  bool value(Entry& entry) {
    std::string_view ignored;
    if (entry.kind == '"') return string(ignored);
    if (entry.kind != '[' && entry.kind != '{') {
      at_ = std::min(text_.find_first_of(",}]", at_), text_.size());
      return at_ < text_.size();
    }
    ++at_;
    if (next() == ']' || next() == '}') {
      ++at_;
      return true;
    }
    entry.count = 1;
    if (entry.kind == '{') {
      if (next() != '"' || !string(entry.first_key) || next() != ':') return false;
      ++at_;
    }
    entry.first = next();
    for (int depth = 1; at_ < text_.size();) {
      const std::size_t found = text_.find_first_of("\"[]{},", at_);
      if (found == text_.npos) break;
      at_ = found;
      switch (text_[at_]) {
        case '"':
          if (!string(ignored)) return false;
          continue;
        case '[':
        case '{':
          ++depth;
          break;
        case ',':
          entry.count += depth == 1 ? 1 : 0;
          break;
        default:
          if (--depth == 0) {
            ++at_;
            return true;
          }
      }
      ++at_;
    }
    at_ = text_.size();
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool whole_ = true;
};

bool is_number_like(char first) { return (first >= '0' && first <= '9') || first == '-'; }

const Entry* find(const std::vector<Entry>& entries, std::string_view key) {
  const auto found = std::ranges::find(entries, key, &Entry::key);
  return found == entries.end() ? nullptr : &*found;
}

bool are_columns(const std::vector<Entry>& entries, bool whole) {
  const Entry& first = entries[0];
  const bool same = std::ranges::all_of(entries, [&](const Entry& entry) {
    // A cut one may have lost elements of its last list.
    const bool count = entry.count == first.count || (!whole && &entry == &entries.back());
    return entry.kind == first.kind && count && entry.first_key == first.first_key;
  });
  return same && first.count > 1 && std::ranges::any_of(entries, [&](const Entry& entry) {
           return is_number_like(entry.first) || (entry.kind == '[' && entry.first == '[');
         });
}

}  // namespace

std::string_view json_start(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text.substr(std::min(text.find_first_not_of(kBlank), text.size()));
}

JsonOutline outline_json(std::string_view text) {
  text = json_start(text);
  if (!text.starts_with('{')) return {};
  Scan scan(text);
  const std::vector<Entry> entries = scan.entries();
  if (entries.empty()) return {};
  const Entry* names = find(entries, "columns");
  const Entry* data = find(entries, "data");
  if (names != nullptr && names->first == '"' && data != nullptr && data->first == '[')
    return {JsonOutline::Kind::kSplit, {}};
  if (are_columns(entries, scan.whole())) return {JsonOutline::Kind::kColumns, {}};
  const auto is_records = [](const Entry& entry) { return entry.kind == '[' && entry.first == '{'; };
  const auto records = std::ranges::find_if(entries, is_records);
  if (records != entries.end() && records->count > 1 && std::ranges::count_if(entries, is_records) == 1 &&
      std::ranges::find(kRecordKeys, records->key) != std::end(kRecordKeys)) {
    return {JsonOutline::Kind::kRecords, std::string(records->key)};
  }
  return {};
}

}  // namespace trapline::inputs
