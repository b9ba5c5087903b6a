// .npz: a ZIP archive of .npy arrays.
#include <algorithm>
#include <vector>

#include "inputs/damage.hpp"
#include "inputs/elements.hpp"
#include "inputs/formats.hpp"
#include "inputs/npy_array.hpp"
#include "inputs/npy_header.hpp"
#include "inputs/zip.hpp"

namespace trapline::inputs {
namespace {

constexpr std::string_view kArrayEnd = ".npy";
constexpr std::size_t kStreamBytes = std::size_t{256} << 10U;
// Rows of an array in Fortran order are only known when all of it is there.
constexpr std::size_t kMaxFortran = std::size_t{256} << 20U;

class NpzReader final : public Reader {
 public:
  std::string_view name() const override { return "npz"; }
  bool knows(const Source& source) const override {
    if (source.path.ends_with(".npz")) return true;
    if (!is_zip(source.bytes)) return false;
    const Result<std::vector<ZipEntry>> entries = read_zip(source.bytes, source.path);
    return entries && !entries->empty() &&
           std::all_of(entries->begin(), entries->end(),
                       [](const ZipEntry& entry) { return entry.name.ends_with(kArrayEnd); });
  }
  Result<bool> read(const Source& source, Sink& sink) const override {
    const Result<std::vector<ZipEntry>> entries = read_zip(source.bytes, source.path);
    if (!entries) return entries.error();
    for (const ZipEntry& entry : *entries) {
      if (sink.stopped()) return false;
      if (!entry.name.ends_with(kArrayEnd)) {
        sink.skipped(entry.name, "no array");
        continue;
      }
      const Result<bool> read =
          entry.deflated ? read_stream(source, entry, sink) : read_mapped(source, entry, sink);
      if (!read) return read.error();
    }
    return !sink.stopped();
  }

 private:
  static std::string array_name(const ZipEntry& entry) {
    return entry.name.substr(0, entry.name.size() - kArrayEnd.size());
  }
  static std::string about(const ZipEntry& entry) {
    return "the array " + in_quotes(array_name(entry)) + ": ";
  }

  // The header and what it claims, which must be what the archive claims.
  static Result<NpyHeader> header_of(const Source& source, const ZipEntry& entry,
                                     std::span<const std::byte> first) {
    Result<NpyHeader> header = read_npy_header(first, source.path, entry.deflated ? 0 : entry.data_offset);
    if (!header && entry.deflated) {
      return damaged(source.path, entry.data_offset, about(entry) + header.error().why + " of its contents");
    }
    if (!header) return header;
    const std::uint64_t claimed = header->data_offset + static_cast<std::uint64_t>(header->data_bytes);
    if (header->no_numbers.empty() && claimed != entry.size) {
      return damaged(source.path, entry.data_offset,
                     about(entry) + "its header claims " + std::to_string(claimed) + " bytes, the archive " +
                         std::to_string(entry.size));
    }
    return header;
  }

  static Result<bool> read_mapped(const Source& source, const ZipEntry& entry, Sink& sink) {
    const Result<NpyHeader> header =
        header_of(source, entry, entry.data.first(std::min(entry.data.size(), kMaxNpyHeader)));
    if (!header) return header.error();
    if (!header->no_numbers.empty()) return sink.skipped(array_name(entry), header->no_numbers), true;
    const Column column = npy_column(*header, array_name(entry));
    if (sink.begin(column)) deliver_npy(sink, column, *header, entry.data.subspan(header->data_offset));
    return true;
  }

  static Result<bool> read_stream(const Source& source, const ZipEntry& entry, Sink& sink) {
    ZipStream stream(entry);
    std::vector<std::byte> buffer(kMaxNpyHeader);
    buffer.resize(stream.read(buffer));
    const auto broken = [&](const std::string& why) {
      return damaged(source.path, stream.offset(), about(entry) + why);
    };
    if (!stream.problem().empty()) return broken(std::string(stream.problem()));
    const Result<NpyHeader> header = header_of(source, entry, buffer);
    if (!header) return header.error();
    if (!header->no_numbers.empty()) return sink.skipped(array_name(entry), header->no_numbers), true;
    const Column column = npy_column(*header, array_name(entry));
    if (!sink.begin(column)) return true;

    const bool whole = header->fortran_order && header->sizes.size() > 1;
    const auto total = static_cast<std::uint64_t>(header->data_bytes);
    if (whole && total > kMaxFortran) {
      return broken(
          "a compressed array in Fortran order of more than 256 MiB: save it without compression, or "
          "as numpy.ascontiguousarray");
    }
    DenseDelivery delivery(sink, column, header->encoding);
    std::vector<std::byte> held;
    std::span<const std::byte> part = std::span(buffer).subspan(header->data_offset);
    std::uint64_t seen = 0;
    for (;;) {
      seen += part.size();
      if (seen > total) return broken("more data than the archive claims");
      if (whole) {
        held.insert(held.end(), part.begin(), part.end());
      } else if (!delivery.put(part)) {
        return true;
      }
      if (part.empty()) break;
      buffer.resize(kStreamBytes);
      part = std::span(buffer).first(stream.read(buffer));
      if (!stream.problem().empty()) {
        delivery.finish();  // what came before the damage
        return broken(std::string(stream.problem()));
      }
    }
    if (seen < total) return broken("less data than the archive claims");
    if (whole) {
      deliver_npy(sink, column, *header, held);
    } else {
      delivery.finish();
    }
    return true;
  }
};

}  // namespace

const Reader& npz() {
  static const NpzReader reader;
  return reader;
}

}  // namespace trapline::inputs
