// .npy: one array, used where it lies in the memory map.
#include <algorithm>

#include "inputs/damage.hpp"
#include "inputs/elements.hpp"
#include "inputs/formats.hpp"
#include "inputs/npy_array.hpp"
#include "inputs/npy_header.hpp"

namespace trapline::inputs {

Column npy_column(const NpyHeader& header, std::string name) {
  return {std::move(name), header.encoding.dtype(), header.sizes, name_of(header.encoding.stored)};
}

bool deliver_npy(Sink& sink, const Column& column, const NpyHeader& header, std::span<const std::byte> data) {
  if (!header.fortran_order || header.sizes.size() < 2) {
    DenseDelivery delivery(sink, column, header.encoding);
    return delivery.all(data);
  }
  // Fortran order: the first dimension lies densest. The 2 of complex numbers is no dimension of NumPy's and
  // lies densest in either order.
  std::vector<std::int64_t> strides(header.sizes.size(), 1);
  std::int64_t next = 1;
  const bool pairs = header.complex;
  if (pairs) next = 2;
  for (std::size_t d = 0; d + (pairs ? 1 : 0) < strides.size(); ++d) {
    strides[d] = next;
    next *= std::max<std::int64_t>(header.sizes[d], 1);
  }
  return deliver_strided(sink, column, header.encoding, data, 0, strides);
}

namespace {

class NpyReader final : public Reader {
 public:
  std::string_view name() const override { return "npy"; }
  bool knows(const Source& source) const override {
    return is_npy(source.bytes) || source.path.ends_with(".npy");
  }
  Result<bool> read(const Source& source, Sink& sink) const override {
    const Result<NpyHeader> header =
        read_npy_header(source.bytes.subspan(0, std::min(source.bytes.size(), kMaxNpyHeader)), source.path);
    if (!header) return header.error();
    if (!header->no_numbers.empty()) {
      return unreadable(source.path, "the array holds " + header->no_numbers,
                        "save an array of integers or floating point numbers");
    }
    const std::span<const std::byte> data = source.bytes.subspan(header->data_offset);
    const auto claimed = static_cast<std::uint64_t>(header->data_bytes);
    if (data.size() < claimed) {
      return damaged(source.path, source.bytes.size(),
                     "the array ends too early: its header claims " + std::to_string(claimed) +
                         " bytes of elements, " + std::to_string(data.size()) + " are there");
    }
    const Column column = npy_column(*header, "");
    if (sink.begin(column)) deliver_npy(sink, column, *header, data.first(claimed));
    return !sink.stopped();
  }
};

}  // namespace

const Reader& npy() {
  static const NpyReader reader;
  return reader;
}

}  // namespace trapline::inputs
