#include "inputs/npy_header.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "inputs/damage.hpp"

namespace trapline::inputs {
namespace {

constexpr std::string_view kMagic{"\x93NUMPY", 6};
constexpr std::size_t kMaxDimensions = 64;  // as NumPy

struct DescrRow {
  std::string_view code;
  Stored stored;
  bool complex = false;
};
constexpr DescrRow kDescr[] = {
    {"b1", Stored::kBool},          {"u1", Stored::kUInt8},          {"i1", Stored::kInt8},
    {"u2", Stored::kUInt16},        {"i2", Stored::kInt16},          {"u4", Stored::kUInt32},
    {"i4", Stored::kInt32},         {"u8", Stored::kUInt64},         {"i8", Stored::kInt64},
    {"f2", Stored::kFloat16},       {"f4", Stored::kFloat32},        {"f8", Stored::kFloat64},
    {"c8", Stored::kFloat32, true}, {"c16", Stored::kFloat64, true},
};

// The header is a Python literal: a dict of three known keys. This reads that much of Python and no more.
class Literal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}
  std::size_t offset() const { return next_; }

  bool take(char c) {
    blank();
    if (next_ >= text_.size() || text_[next_] != c) return false;
    ++next_;
    return true;
  }
  std::optional<std::string_view> string() {
    blank();
    if (next_ >= text_.size() || (text_[next_] != '\'' && text_[next_] != '"')) return std::nullopt;
    const std::size_t end = text_.find(text_[next_], next_ + 1);
    if (end == text_.npos) return std::nullopt;
    const std::string_view found = text_.substr(next_ + 1, end - next_ - 1);
    next_ = end + 1;
    return found;
  }
  std::optional<bool> boolean() {
    blank();
    if (text_.substr(next_).starts_with("True")) return next_ += 4, true;
    if (text_.substr(next_).starts_with("False")) return next_ += 5, false;
    return std::nullopt;
  }
  std::optional<std::int64_t> integer() {
    blank();
    std::int64_t value = 0;
    const char* begin = text_.data() + next_;
    const auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (problem != std::errc()) return std::nullopt;
    next_ += static_cast<std::size_t>(end - begin);
    if (next_ < text_.size() && text_[next_] == 'L') ++next_;  // written by Python 2
    return value;
  }
  // "(3, 4)", "(3,)" or "()".
  std::optional<std::vector<std::int64_t>> shape() {
    if (!take('(')) return std::nullopt;
    std::vector<std::int64_t> sizes;
    while (!take(')')) {
      const std::optional<std::int64_t> size = integer();
      if (!size || *size < 0 || sizes.size() == kMaxDimensions) return std::nullopt;
      sizes.push_back(*size);
      if (!take(',')) {
        if (!take(')')) return std::nullopt;
        break;
      }
    }
    return sizes;
  }
  char peek() {
    blank();
    return next_ < text_.size() ? text_[next_] : '\0';
  }

 private:
  void blank() {
    while (next_ < text_.size() && (text_[next_] == ' ' || text_[next_] == '\n')) ++next_;
  }
  std::string_view text_;
  std::size_t next_ = 0;
};

// False: the dtype holds no numbers that core knows; header.no_numbers says what.
bool set_encoding(std::string_view descr, NpyHeader& header) {
  const char order = descr.empty() ? '\0' : descr[0];
  const std::string_view code = descr.substr(std::min<std::size_t>(descr.size(), 1));
  for (const DescrRow& row : kDescr) {
    if (row.code != code || (order != '<' && order != '>' && order != '|' && order != '=')) continue;
    header.encoding = {row.stored, order == '>'};
    header.complex = row.complex;
    if (row.complex) header.sizes.push_back(2);
    return true;
  }
  const char kind = code.empty() ? '\0' : code[0];
  header.no_numbers = kind == 'O'                  ? "Python objects (a pickle, which is never loaded)"
                      : kind == 'U' || kind == 'S' ? "text"
                      : kind == 'M' || kind == 'm' ? "times"
                                                   : "the dtype " + in_quotes(descr);
  return false;
}

}  // namespace

bool is_npy(std::span<const std::byte> bytes) { return as_text(bytes).starts_with(kMagic); }

Result<NpyHeader> read_npy_header(std::span<const std::byte> bytes, const std::string& path,
                                  std::uint64_t base) {
  if (!is_npy(bytes)) return damaged(path, base, "no .npy array: the magic number is missing");
  if (bytes.size() < 10) return damaged(path, base + bytes.size(), "the .npy header ends too early");
  const int version = static_cast<int>(bytes[6]);
  if (version < 1 || version > 3) {
    return damaged(path, base + 6, "version " + std::to_string(version) + " of the .npy format is not known");
  }
  const std::size_t start = version == 1 ? 10 : 12;
  if (bytes.size() < start) return damaged(path, base + bytes.size(), "the .npy header ends too early");
  const std::size_t length =
      version == 1 ? load_le<std::uint16_t>(bytes, 8) : load_le<std::uint32_t>(bytes, 8);
  if (length > kMaxNpyHeader - start) {
    return damaged(path, base + 8, "the .npy header claims " + std::to_string(length) + " bytes");
  }
  if (bytes.size() - start < length) {
    return damaged(path, base + bytes.size(),
                   "the .npy header ends too early: it claims " + std::to_string(length) + " bytes");
  }

  NpyHeader header;
  header.data_offset = start + length;
  Literal literal(as_text(bytes.subspan(start, length)));
  std::optional<std::string_view> descr;
  std::optional<bool> fortran;
  std::optional<std::vector<std::int64_t>> shape;
  const auto broken = [&](const char* what) {
    return damaged(path, base + start + literal.offset(), std::string("the .npy header ") + what);
  };
  if (!literal.take('{')) return broken("is not a dictionary");
  while (!literal.take('}')) {
    const std::optional<std::string_view> key = literal.string();
    if (!key || !literal.take(':')) return broken("has no key here");
    if (*key == "descr") {
      if (literal.peek() == '[') {
        header.no_numbers = "a structured dtype";
        return header;
      }
      descr = literal.string();
      if (!descr) return broken("has no dtype");
    } else if (*key == "fortran_order") {
      fortran = literal.boolean();
      if (!fortran) return broken("does not say the order of its dimensions");
    } else if (*key == "shape") {
      shape = literal.shape();
      if (!shape) return broken("has no valid shape");
    } else {
      return broken("has an unknown key");
    }
    literal.take(',');
  }
  if (!descr || !fortran || !shape) return broken("lacks descr, fortran_order or shape");
  header.fortran_order = *fortran;
  header.sizes = *std::move(shape);
  const bool numbers = set_encoding(*descr, header);
  if (!numbers) return header;
  const std::optional<std::int64_t> size =
      product(header.sizes, static_cast<std::int64_t>(header.encoding.bytes()));
  if (!size) return broken("claims more elements than any file can hold");
  header.data_bytes = *size;
  return header;
}

}  // namespace trapline::inputs
