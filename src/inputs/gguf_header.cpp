#include "inputs/gguf_header.hpp"

#include <algorithm>
#include <utility>

#include "inputs/damage.hpp"

namespace trapline::inputs {
namespace {

// Of ggml's own table of types: elements of a block, bytes of a block.
struct TypeRow {
  std::uint32_t type;
  std::string_view name;
  std::int64_t elements;
  std::int64_t bytes;
};
constexpr TypeRow kTypes[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},     {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},     {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},  {14, "Q6_K", 256, 210},
    {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74}, {18, "IQ3_XXS", 256, 98},
    {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110}, {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},       {26, "I32", 1, 4},
    {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},  {30, "BF16", 1, 2},
    {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},
};

const TypeRow* row_of(std::uint32_t type) {
  const auto* row = std::ranges::find(kTypes, type, &TypeRow::type);
  return row == std::end(kTypes) ? nullptr : row;
}

constexpr std::uint64_t kMaxName = 65535;  // of a key; a tensor's has less
constexpr std::uint64_t kMaxDims = 4;
constexpr std::uint64_t kMaxTensors = 1U << 20U;
constexpr std::size_t kMaxText = 256;
constexpr int kMaxDepth = 4;

enum ValueType : std::uint32_t { kBool = 7, kString = 8, kArray = 9 };

// Bytes of a value; 0: not of a fixed size.
std::size_t width_of(std::uint32_t type) {
  constexpr std::size_t kWidths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < std::size(kWidths) ? kWidths[type] : 0;
}

class Header {
 public:
  Header(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  Result<GgufHeader> read() {
    std::uint32_t version = 0;
    std::uint64_t tensors = 0, pairs = 0;
    at_ = 4;
    if (!take(version)) return error();
    if (version != 2 && version != 3) {
      fail("the version of the format is " + std::to_string(version) + ", and 2 and 3 are read");
      return error();
    }
    if (!take(tensors) || !take(pairs)) return error();
    if (tensors > kMaxTensors) {
      fail("the header claims " + std::to_string(tensors) + " tensors");
      return error();
    }
    for (std::uint64_t i = 0; i < pairs; ++i) {
      if (!pair()) return error();
    }
    for (std::uint64_t i = 0; i < tensors; ++i) {
      if (!tensor()) return error();
    }
    if (!place()) return error();
    return std::move(out_);
  }

 private:
  Error error() const { return damaged(path_, where_, why_); }
  bool fail(std::string why) {
    why_ = std::move(why);
    where_ = at_;
    return false;
  }
  bool skip(std::uint64_t count) {
    if (count > bytes_.size() - at_)
      return fail("the file ends too early: its header goes on behind the end");
    at_ += count;
    return true;
  }
  template <class T>
  bool take(T& value) {
    const std::size_t from = at_;
    if (!skip(sizeof(T))) return false;
    value = load_le<T>(bytes_, from);
    return true;
  }
  bool take_text(std::string_view& text) {
    std::uint64_t size = 0;
    if (!take(size)) return false;
    const std::size_t from = at_;
    if (!skip(size)) return false;
    text = as_text(bytes_.subspan(from, size));
    return true;
  }

  bool pair() {
    std::string_view key;
    std::uint32_t type = 0;
    if (!take_text(key) || !take(type)) return false;
    if (key.size() > kMaxName) return fail("the metadata has a key of more than 64 KiB");
    return value(std::string(key), type);
  }

  bool value(const std::string& key, std::uint32_t type) {
    if (type == kString) {
      std::string_view text;
      if (!take_text(text)) return false;
      if (text.size() <= kMaxText) out_.texts.emplace(key, text);
      return true;
    }
    if (type == kArray) {
      std::uint64_t count = 0;
      if (!array(0, count)) return false;
      out_.array_sizes.emplace(key, static_cast<std::int64_t>(count));
      return true;
    }
    const std::size_t width = width_of(type);
    if (width == 0) return fail("the metadata has a value of the unknown type " + std::to_string(type));
    const std::size_t from = at_;
    if (!skip(width)) return false;
    if (const auto number = integer(type, from)) out_.integers.emplace(key, *number);
    return true;
  }

  // The elements are passed over; texts among them have to be walked.
  bool array(int depth, std::uint64_t& count) {
    std::uint32_t type = 0;
    if (!take(type) || !take(count)) return false;
    if (depth == kMaxDepth) return fail("the metadata has lists nested more than 4 deep");
    if (const std::size_t width = width_of(type); width > 0) {
      if (count > (bytes_.size() - at_) / width)
        return fail("the file ends too early: its header goes on behind the end");
      return skip(count * width);
    }
    if (type != kString && type != kArray) {
      return fail("the metadata has a value of the unknown type " + std::to_string(type));
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      std::string_view text;
      std::uint64_t inner = 0;
      if (type == kString ? !take_text(text) : !array(depth + 1, inner)) return false;
    }
    return true;
  }

  std::optional<std::int64_t> integer(std::uint32_t type, std::size_t from) const {
    switch (type) {
      case 0:
      case kBool:
        return load_le<std::uint8_t>(bytes_, from);
      case 1:
        return load_le<std::int8_t>(bytes_, from);
      case 2:
        return load_le<std::uint16_t>(bytes_, from);
      case 3:
        return load_le<std::int16_t>(bytes_, from);
      case 4:
        return load_le<std::uint32_t>(bytes_, from);
      case 5:
        return load_le<std::int32_t>(bytes_, from);
      case 10:
        return static_cast<std::int64_t>(
            std::min<std::uint64_t>(load_le<std::uint64_t>(bytes_, from), INT64_MAX));
      case 11:
        return load_le<std::int64_t>(bytes_, from);
      default:
        return std::nullopt;
    }
  }

  bool tensor() {
    GgufTensor tensor;
    std::string_view name;
    std::uint32_t dims = 0;
    if (!take_text(name) || !take(dims)) return false;
    if (name.size() > kMaxName) return fail("a tensor has a name of more than 64 KiB");
    tensor.name = std::string(name);
    if (dims > kMaxDims)
      return fail("the tensor " + in_quotes(name) + " has " + std::to_string(dims) + " dimensions");
    for (std::uint32_t d = 0; d < dims; ++d) {
      std::uint64_t size = 0;
      if (!take(size)) return false;
      if (size > INT64_MAX) return fail("the shape of " + in_quotes(name) + " is not valid");
      tensor.sizes.insert(tensor.sizes.begin(), static_cast<std::int64_t>(size));
    }
    if (!take(tensor.type) || !take(tensor.begin)) return false;
    const TypeRow* row = row_of(tensor.type);
    if (row != nullptr) {
      const auto count = product(tensor.sizes);
      std::int64_t bytes = 0;
      if (!count || *count % row->elements != 0 ||
          __builtin_mul_overflow(*count / row->elements, row->bytes, &bytes)) {
        return fail("the shape of " + in_quotes(name) + " does not fit its type " + std::string(row->name));
      }
      tensor.bytes = static_cast<std::uint64_t>(bytes);
    }
    out_.tensors.push_back(std::move(tensor));
    return true;
  }

  // The offsets count from the first multiple of the alignment behind the header.
  bool place() {
    const auto found = out_.integers.find("general.alignment");
    const std::int64_t alignment = found == out_.integers.end() ? 32 : found->second;
    if (alignment <= 0 || alignment > (1 << 20))
      return fail("general.alignment is " + std::to_string(alignment));
    const auto step = static_cast<std::uint64_t>(alignment);
    const std::uint64_t data = (at_ + step - 1) / step * step;
    std::uint64_t missing = 0;
    std::string first;
    for (GgufTensor& tensor : out_.tensors) {
      if (tensor.begin > std::uint64_t{1} << 60U)
        return fail("the place of " + in_quotes(tensor.name) + " is not valid");
      tensor.begin += data;
      const std::uint64_t end = tensor.begin + tensor.bytes.value_or(0);
      if (end <= bytes_.size()) continue;
      if (missing == 0) first = tensor.name;
      missing = std::max(missing, end - bytes_.size());
    }
    if (missing == 0) return true;
    at_ = bytes_.size();
    return fail("the file ends too early: " + in_quotes(first) + " goes on behind its end, " +
                std::to_string(missing) + " bytes are missing");
  }

  std::span<const std::byte> bytes_;
  const std::string& path_;
  std::size_t at_ = 0, where_ = 0;
  std::string why_;
  GgufHeader out_;
};

}  // namespace

bool is_gguf(std::span<const std::byte> bytes) { return as_text(bytes).starts_with("GGUF"); }

std::string_view gguf_type_name(std::uint32_t type) {
  const TypeRow* row = row_of(type);
  return row == nullptr ? std::string_view() : row->name;
}

Result<GgufHeader> read_gguf_header(std::span<const std::byte> bytes, const std::string& path) {
  if (!is_gguf(bytes)) return damaged(path, 0, "it does not begin with GGUF");
  return Header(bytes, path).read();
}

}  // namespace trapline::inputs
