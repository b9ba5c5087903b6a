#include "inputs/json_stretch.hpp"

#include <simdjson.h>

#include <bit>
#include <charconv>
#include <cstring>

#include "inputs/json_text.hpp"

namespace trapline::inputs {
namespace {

using Kind = JsonStretch::Kind;

constexpr std::size_t kMaxAside = 32;  // records of a stretch; it ends at the next
constexpr std::ptrdiff_t kMaxDigits = 18;

constexpr std::uint64_t kOnes = 0x0101010101010101, kHighs = 0x8080808080808080;

// High bits where a byte of `word` is zero; bytes behind the first such may be wrong.
constexpr std::uint64_t zeros(std::uint64_t word) { return (word - kOnes) & ~word & kHighs; }

// Takes less than the parser of JsonRecords does, and what it takes it reads as that one does.
class Scan {
 public:
  Scan(const JsonKey& root, std::size_t keys, bool full, JsonStretch& stretch)
      : root_(root), full_(full), stretch_(stretch), latest_(keys) {
    seen_.resize(keys);
    objects_.resize(keys);
  }

  void lines() {
    JsonStretch& to = stretch_;
    std::size_t next = 0;
    start_run(0);
    while (next < to.text.size() && to.runs.size() <= kMaxAside) {
      const std::size_t newline = to.text.find('\n', next);
      const std::size_t end = newline == to.text.npos ? to.text.size() : newline;
      const std::string_view line = to.text.substr(next, end - next);
      next = newline == to.text.npos ? to.text.size() : newline + 1;
      const std::uint32_t number = to.lines++;
      if (take(line)) {
        to.line_of.push_back(number);
      } else if (!is_blank_line(line)) {
        put_aside(line, number);
      }
    }
    end_run();
    to.end = next;
  }

 private:
  void start_run(std::uint32_t first) {
    stretch_.runs.emplace_back();
    stretch_.runs.back().first = first;
    std::fill(seen_.begin(), seen_.end(), 0);
    std::fill(objects_.begin(), objects_.end(), 0);
  }
  void end_run() {
    JsonStretch::Run& run = stretch_.runs.back();
    run.last = record();
    run.seen = seen_;
    run.objects = objects_;
  }
  // A record that was put aside has a number, too.
  void put_aside(std::string_view line, std::uint32_t number) {
    end_run();
    JsonStretch::Run& run = stretch_.runs.back();
    run.put_aside = true;
    run.aside = line;
    run.aside_line = number;
    stretch_.line_of.push_back(number);
    start_run(record());
  }
  std::uint32_t record() const { return static_cast<std::uint32_t>(stretch_.line_of.size()); }

  bool take(std::string_view line) {
    if (line.size() > kMaxJsonLine) return false;
    at_ = line.data();
    end_ = at_ + line.size();
    ascii_ = true;
    touched_.clear();
    const std::size_t texts = stretch_.texts.size();
    blanks();
    if (value(root_, 0)) {
      blanks();
      if (at_ == end_ && (ascii_ || simdjson::validate_utf8(line.data(), line.size()))) return true;
    }
    // As if it had not been there.
    stretch_.texts.resize(texts);
    for (const Touch& touch : touched_) {
      if (touch.object) --objects_[touch.key];
      if (!touch.object) --seen_[touch.key];
      std::vector<JsonStretch::Cell>& cells = stretch_.cells[touch.key];
      while (!cells.empty() && cells.back().record == record()) cells.pop_back();
    }
    std::vector<JsonStretch::Cell>& own = stretch_.cells[root_.id];
    while (!own.empty() && own.back().record == record()) own.pop_back();
    return false;
  }

  void blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  bool is(char c) const { return at_ != end_ && *at_ == c; }
  bool word(std::string_view word) {
    if (static_cast<std::size_t>(end_ - at_) < word.size() ||
        std::memcmp(at_, word.data(), word.size()) != 0) {
      return false;
    }
    at_ += word.size();
    return behind_scalar();
  }
  bool behind_scalar() const {
    return at_ == end_ || *at_ == ',' || *at_ == '}' || *at_ == ']' || *at_ == ' ' || *at_ == '\t' ||
           *at_ == '\r';
  }

  bool value(const JsonKey& key, int depth) {
    if (at_ == end_ || depth > kMaxJsonDepth) return false;
    switch (*at_) {
      case '{':
        return object(key, depth);
      case '[':
        return array(key, depth);
      case '"':
        return string(key);
      case 't':
        return word("true") && boolean(key, 1);
      case 'f':
        return word("false") && boolean(key, 0);
      case 'n':
        return word("null") && null(key);
      default:
        return number(key);
    }
  }

  bool object(const JsonKey& key, int depth) {
    if (key.is_number() || key.objects == 0) return false;
    const std::uint64_t serial = ++serial_;
    ++objects_[key.id];
    touched_.push_back({key.id, true});
    std::size_t count = 0, guess = 0;
    ++at_;
    blanks();
    if (is('}')) {
      ++at_;
    } else {
      for (;;) {
        const JsonKey* next = name(key, guess);
        if (next == nullptr || latest_[next->id] == serial) return false;
        latest_[next->id] = serial;
        ++seen_[next->id];
        touched_.push_back({next->id, false});
        ++count;
        blanks();
        if (!is(':')) return false;
        ++at_;
        blanks();
        if (!value(*next, depth + 1)) return false;
        blanks();
        if (at_ == end_) return false;
        const char c = *at_++;
        if (c == '}') break;
        if (c != ',') return false;
        blanks();
      }
    }
    if (count == key.below.size()) return true;
    for (const auto& next : key.below) {
      if (latest_[next->id] != serial && next->counts_absent()) return false;
    }
    return true;
  }

  // Null: one that is not known, or not written as it is.
  const JsonKey* name(const JsonKey& object, std::size_t& guess) {
    if (!is('"')) return nullptr;
    const char* from = at_ + 1;
    const auto left = static_cast<std::size_t>(end_ - from);
    for (std::size_t tried = 0; tried < object.below.size(); ++tried) {
      if (guess >= object.below.size()) guess = 0;
      const JsonKey& candidate = *object.below[guess++];
      const std::size_t size = candidate.name.size();
      if (left <= size || from[size] != '"' || !candidate.plain ||
          std::memcmp(from, candidate.name.data(), size) != 0) {
        continue;
      }
      ascii_ = ascii_ && candidate.ascii;
      at_ = from + size + 1;
      return &candidate;
    }
    return nullptr;
  }

  bool array(const JsonKey& key, int depth) {
    if (key.is_number()) return false;
    ++at_;
    blanks();
    if (is(']')) {
      ++at_;
      return true;
    }
    if (!key.lists) return false;
    for (;;) {
      if (!value(key, depth + 1)) return false;
      blanks();
      if (at_ == end_) return false;
      const char c = *at_++;
      if (c == ']') return true;
      if (c != ',') return false;
      blanks();
    }
  }

  bool string(const JsonKey& key) {
    const char* from = ++at_;
    bool escapes = false;
    for (;;) {
      while (end_ - at_ >= 8) {
        std::uint64_t bytes = 0;
        std::memcpy(&bytes, at_, 8);
        const std::uint64_t found = zeros(bytes ^ (kOnes * '"')) | zeros(bytes ^ (kOnes * '\\')) |
                                    ((bytes - kOnes * 0x20) & ~bytes & kHighs);
        if ((bytes & kHighs) != 0) ascii_ = false;
        if (found != 0) {
          at_ += std::countr_zero(found) / 8;
          break;
        }
        at_ += 8;
      }
      if (at_ == end_) return false;
      const char c = *at_++;
      if (c == '"') break;
      if (static_cast<unsigned char>(c) >= 0x80) ascii_ = false;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c != '\\') continue;
      escapes = true;
      if (at_ == end_ || *at_ < 0x20) return false;
      ++at_;
    }
    const std::string_view text(from, static_cast<std::size_t>(at_ - from - 1));
    const ValueColumn* column = key.column != nullptr ? key.column.get() : key.texts.get();
    if (key.column == nullptr && !key.told) return false;
    if (column == nullptr || !column->wanted()) return true;
    if (escapes) return false;
    stretch_.texts.push_back(text);
    add(key, Kind::kText, stretch_.texts.size() - 1);
    return true;
  }

  bool boolean(const JsonKey& key, std::uint64_t flag) {
    if (key.column == nullptr) return full_ && key.told;
    if (key.column->wanted()) add(key, Kind::kInteger, flag);
    return true;
  }

  bool null(const JsonKey& key) {
    if (key.column == nullptr) return key.nulls.size() >= JsonKey::kMaxNulls;
    if (key.column->wanted()) add(key, Kind::kNull, 0);
    return true;
  }

  bool number(const JsonKey& key) {
    const char* from = at_;
    if (*at_ == '-') ++at_;
    const char* digits = at_;
    std::uint64_t sum = 0;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') sum = sum * 10 + static_cast<unsigned>(*at_++ - '0');
    const std::ptrdiff_t count = at_ - digits;
    if (count == 0 || (count > 1 && *digits == '0')) return false;
    const bool whole = behind_scalar();
    if (!whole && !fraction()) return false;
    if (key.column == nullptr) return full_ && key.told;
    if (!key.column->wanted()) return true;
    if (whole) {
      if (count > kMaxDigits || (sum == 0 && digits != from)) return false;
      add(key, Kind::kInteger, digits != from ? 0 - sum : sum);
      return true;
    }
    double real = 0;
    const auto read = std::from_chars(from, at_, real);
    if (read.ptr != at_ || read.ec != std::errc()) return false;
    add(key, Kind::kReal, std::bit_cast<std::uint64_t>(real));
    return true;
  }

  bool some_digits() {
    const char* from = at_;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ != from;
  }
  // ".5e-3", behind the digits of a number.
  bool fraction() {
    if (is('.')) {
      ++at_;
      if (!some_digits()) return false;
    }
    if (is('e') || is('E')) {
      ++at_;
      if (is('+') || is('-')) ++at_;
      if (!some_digits()) return false;
    }
    return behind_scalar();
  }

  void add(const JsonKey& key, Kind kind, std::uint64_t bits) {
    stretch_.cells[key.id].push_back({record(), kind, bits});
  }

  struct Touch {
    std::size_t key = 0;
    bool object = false;  // it was one; else it was seen
  };

  const JsonKey& root_;
  bool full_;
  JsonStretch& stretch_;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  bool ascii_ = true;
  std::uint64_t serial_ = 0;           // of the object that is read
  std::vector<std::uint64_t> latest_;  // by id of the key: the last object that has it
  std::vector<std::uint32_t> seen_, objects_;
  std::vector<Touch> touched_;  // by the record that is read
};

}  // namespace

void read_stretch(const JsonKey& root, std::size_t keys, bool full, JsonStretch& stretch) {
  stretch.runs.clear();
  stretch.lines = 0;
  stretch.line_of.clear();
  stretch.texts.clear();
  stretch.cells.resize(keys);
  for (auto& cells : stretch.cells) cells.clear();
  Scan(root, keys, full, stretch).lines();
}

}  // namespace trapline::inputs
