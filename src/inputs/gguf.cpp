// .gguf, as llama.cpp reads it. Tensors of plain numbers are columns; quantised blocks are told by their
// type.
#include <algorithm>

#include "inputs/damage.hpp"
#include "inputs/elements.hpp"
#include "inputs/formats.hpp"
#include "inputs/gguf_header.hpp"

namespace trapline::inputs {
namespace {

struct PlainRow {
  std::string_view type;
  Stored stored;
};
constexpr PlainRow kPlain[] = {
    {"F32", Stored::kFloat32}, {"F16", Stored::kFloat16}, {"BF16", Stored::kBFloat16},
    {"F64", Stored::kFloat64}, {"I8", Stored::kInt8},     {"I16", Stored::kInt16},
    {"I32", Stored::kInt32},   {"I64", Stored::kInt64},
};

class GgufReader final : public Reader {
 public:
  std::string_view name() const override { return "gguf"; }
  bool knows(const Source& source) const override {
    return is_gguf(source.bytes) || source.path.ends_with(".gguf");
  }
  Result<bool> read(const Source& source, Sink& sink) const override {
    const Result<GgufHeader> header = read_gguf_header(source.bytes, source.path);
    if (!header) return header.error();
    for (const GgufTensor& tensor : header->tensors) {
      if (sink.stopped()) return false;
      const std::string_view type = gguf_type_name(tensor.type);
      const auto* row = std::ranges::find(kPlain, type, &PlainRow::type);
      if (row == std::end(kPlain)) {
        sink.skipped(tensor.name, "blocks of " + (type.empty() ? "the type " + std::to_string(tensor.type)
                                                               : std::string(type)));
        continue;
      }
      const Encoding encoding{row->stored};
      const Column column{tensor.name, encoding.dtype(), tensor.sizes};
      if (!sink.begin(column)) continue;
      DenseDelivery delivery(sink, column, encoding);
      delivery.all(source.bytes.subspan(tensor.begin, tensor.bytes.value_or(0)));
    }
    return !sink.stopped();
  }
};

}  // namespace

const Reader& gguf() {
  static const GgufReader reader;
  return reader;
}

}  // namespace trapline::inputs
