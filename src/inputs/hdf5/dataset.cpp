#include "inputs/hdf5/dataset.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "inputs/damage.hpp"
#include "inputs/elements.hpp"
#include "inputs/hdf5/element.hpp"
#include "inputs/value_column.hpp"

namespace trapline::inputs {
namespace {

constexpr std::uint64_t kBlockBytes = std::uint64_t{4} << 20U;
constexpr std::uint64_t kCacheBytes = std::uint64_t{64} << 20U;  // of libhdf5, for unpacked chunks
// deflate packs a thousand times at most; what was never written takes no room at all.
constexpr std::uint64_t kMaxPacked = 4096, kAlwaysFine = std::uint64_t{1} << 30U;
constexpr std::size_t kSampleRows = 1000;
constexpr std::size_t kValuesPerPiece = std::size_t{1} << 16U;
constexpr std::size_t kMaxText = 4096;  // bytes of an element
constexpr hsize_t kRaggedRows = 1024;

using Sizes = std::vector<hsize_t>;

// Why its elements are not in this file or cannot be unpacked; empty: they can be read.
std::string left_open(hid_t plan) {
  if (H5Pget_external_count(plan) > 0) return "its values lie in another file, which is not followed";
  if (H5Pget_layout(plan) == H5D_VIRTUAL)
    return "it is put together from other data sets, which are not followed";
  const int filters = H5Pget_nfilters(plan);
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0;
    std::size_t values = 0;
    char name[64] = "";
    const H5Z_filter_t filter =
        H5Pget_filter2(plan, static_cast<unsigned>(i), &flags, &values, nullptr, sizeof name, name, nullptr);
    if (filter >= 0 && H5Zfilter_avail(filter) <= 0) {
      name[sizeof name - 1] = '\0';
      return "it is packed by the filter " + std::to_string(filter) + " " + in_quotes(name) +
             ", which libhdf5 alone does not have";
    }
  }
  return "";
}

class DataSet {
 public:
  DataSet(hid_t id, std::string path, Sink& sink) : id_(id), path_(std::move(path)), sink_(sink) {}

  std::optional<std::string> open(std::uint64_t file_bytes) {
    type_ = Id(H5Dget_type(id_));
    space_ = Id(H5Dget_space(id_));
    plan_ = Id(H5Dget_create_plist(id_));
    if (!type_ || !space_ || !plan_) return library_says();
    const int dims = H5Sget_simple_extent_ndims(space_.get());
    if (dims < 0 || dims > H5S_MAX_RANK) return library_says();
    sizes_.resize(static_cast<std::size_t>(dims));
    if (dims > 0 && H5Sget_simple_extent_dims(space_.get(), sizes_.data(), nullptr) < 0)
      return library_says();
    empty_ = H5Sget_simple_extent_type(space_.get()) == H5S_NULL;
    open_ = left_open(plan_.get());
    // An element takes a byte at least, so that this bounds every number of them.
    std::uint64_t bytes = std::max<std::uint64_t>(H5Tget_size(type_.get()), 1);
    std::uint64_t most = kAlwaysFine;
    if (__builtin_mul_overflow(file_bytes, kMaxPacked, &most) ||
        __builtin_add_overflow(most, kAlwaysFine, &most))
      most = ~std::uint64_t{0} >> 2U;
    bool none = false;
    for (const hsize_t size : sizes_) none |= size == 0;
    for (const hsize_t size : sizes_) {
      if (!none && (__builtin_mul_overflow(bytes, size, &bytes) || bytes > most))
        open_ = "it claims more elements than a file of this size can hold";
    }
    return std::nullopt;
  }

  std::optional<std::string> read() {
    if (empty_) return nothing(path_, "no elements");
    const std::vector<Member> members = members_of(type_.get());
    if (members.empty()) return column(path_, element_of(type_.get()));
    for (const Member& member : members) {
      if (std::optional<std::string> problem = column(path_ + "." + member.name, member.element))
        return problem;
    }
    return std::nullopt;
  }

 private:
  std::optional<std::string> nothing(const std::string& name, const std::string& why) {
    sink_.skipped(name, why);
    return std::nullopt;
  }

  std::optional<std::string> column(const std::string& name, const Element& element) {
    if (element.kind == Element::Kind::kNone) return nothing(name, element.why);
    if (element.kind == Element::Kind::kText) return text(name, element);
    Column column{name, element.encoding.dtype(), {}, name_of(element.encoding.stored)};
    for (const hsize_t size : sizes_) column.sizes.push_back(static_cast<std::int64_t>(size));
    column.sizes.insert(column.sizes.end(), element.sizes.begin(), element.sizes.end());
    if (element.kind == Element::Kind::kRagged) {
      if (sizes_.size() > 1) return nothing(name, "lists in several dimensions");
      column.sizes = {static_cast<std::int64_t>(rows())};
    }
    const bool counts = product(column.sizes).has_value();
    if (!counts && open_.empty()) open_ = "it claims more elements than a file of this size can hold";
    if (!counts) column.sizes = {-1};
    if (element.kind == Element::Kind::kRagged && open_.empty()) return ragged(column, element);
    const bool wanted = sink_.begin(column);
    if (!element.classes.empty()) sink_.class_names(column, element.classes);
    if (!wanted) return std::nullopt;
    // Wanted, and not to be had: no verdict.
    return open_.empty() ? dense(column, element) : std::optional(open_);
  }

  hsize_t rows() const { return sizes_.empty() ? 1 : sizes_[0]; }

  bool read_block(const Element& element, const Sizes& start, const Sizes& count, void* to) {
    if (sizes_.empty()) return H5Dread(id_, element.memory.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, to) >= 0;
    const Id block(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr));
    return block &&
           H5Sselect_hyperslab(space_.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr) >=
               0 &&
           H5Dread(id_, element.memory.get(), block.get(), space_.get(), H5P_DEFAULT, to) >= 0;
  }

  // How many steps in dimension `dim` are read at a time, where one takes `bytes`: a whole number of chunks
  // where they fit, so that each is unpacked once.
  hsize_t steps(std::size_t dim, std::uint64_t bytes) const {
    hsize_t chunk = 1;
    Sizes chunks(sizes_.size(), 1);
    if (H5Pget_layout(plan_.get()) == H5D_CHUNKED &&
        H5Pget_chunk(plan_.get(), static_cast<int>(chunks.size()), chunks.data()) >= 0) {
      chunk = std::max<hsize_t>(chunks[dim], 1);
    }
    const hsize_t small = std::max<hsize_t>(kBlockBytes / bytes, 1);
    const hsize_t most = std::max<hsize_t>(kCacheBytes / bytes, 1);
    if (chunk > most) return most;
    return std::max(small / chunk * chunk, std::min(chunk, most));
  }

  // Blocks one after the other, in the order of the elements.
  std::optional<std::string> dense(const Column& column, const Element& element) {
    DenseDelivery delivery(sink_, column, element.encoding);
    const std::size_t dims = sizes_.size();
    // Up to `split` one index at a time, in it several, behind it all.
    std::size_t split = dims;
    std::uint64_t bytes = element.bytes;
    while (split > 0 && bytes * std::max<hsize_t>(sizes_[split - 1], 1) <= kBlockBytes) {
      bytes *= std::max<hsize_t>(sizes_[split - 1], 1);
      --split;
    }
    // Everything fits into a block where split is 0 now.
    const std::size_t dim = split == 0 ? 0 : split - 1;
    if (split == 0 && dims > 0) bytes /= std::max<hsize_t>(sizes_[0], 1);
    const hsize_t step = dims == 0 ? 1 : std::min(steps(dim, bytes), std::max<hsize_t>(sizes_[dim], 1));
    if (std::ranges::find(sizes_, hsize_t{0}) != sizes_.end()) return std::nullopt;
    std::vector<std::byte> block(step * bytes);
    Sizes start(dims, 0), count(dims, 1);
    for (std::size_t d = dim + 1; d < dims; ++d) count[d] = sizes_[d];
    for (;;) {
      if (dims > 0) count[dim] = std::min(step, sizes_[dim] - start[dim]);
      const std::size_t size = dims == 0 ? block.size() : count[dim] * bytes;
      if (!read_block(element, start, count, block.data())) {
        const std::string why = library_says();
        delivery.finish();  // what came before the damage
        return why;
      }
      if (!delivery.put(std::span(block).first(size))) return std::nullopt;
      if (dims == 0) break;
      start[dim] += count[dim];
      std::size_t d = dim;
      while (start[d] >= sizes_[d] && d > 0) {
        start[d] = 0;
        ++start[--d];
      }
      if (start[0] >= sizes_[0]) break;
    }
    delivery.finish();
    return std::nullopt;
  }

  std::optional<std::string> ragged(const Column& column, const Element& element) {
    ValueColumn values(sink_, column, kValuesPerPiece);
    values.has_lists();
    if (!values.begin()) return std::nullopt;
    const bool real = is_floating(column.dtype);
    std::vector<hvl_t> lists(std::min(kRaggedRows, rows()));
    for (hsize_t row = 0; row < rows() && values.wanted(); row += lists.size()) {
      const Sizes start{row}, count{std::min<hsize_t>(lists.size(), rows() - row)};
      if (!read_block(element, start, count, lists.data())) {
        const std::string why = library_says();
        values.flush();
        return why;
      }
      for (hsize_t i = 0; i < count[0]; ++i) {
        const auto at = static_cast<std::int64_t>(row + i);
        for (std::size_t k = 0; k < lists[i].len; ++k) {
          if (real) {
            values.add(at, 0, static_cast<const double*>(lists[i].p)[k]);
          } else {
            values.add(at, 0, static_cast<const std::int64_t*>(lists[i].p)[k]);
          }
        }
      }
      const Id block(H5Screate_simple(1, count.data(), nullptr));
      H5Dvlen_reclaim(element.memory.get(), block.get(), H5P_DEFAULT, lists.data());
    }
    values.flush();
    return std::nullopt;
  }

  // Text of fixed size: numbers where the first rows have some, as in a table of text.
  std::optional<std::string> text(const std::string& name, const Element& element) {
    if (sizes_.size() > 1 || element.bytes > kMaxText || !open_.empty()) return nothing(name, "text");
    std::vector<char> block(std::min<hsize_t>(rows(), kSampleRows) * element.bytes);
    const std::size_t held = element.bytes == 0 ? 0 : block.size() / element.bytes;
    std::unique_ptr<ValueColumn> values;
    for (hsize_t row = 0; held > 0 && row < rows(); row += held) {
      const hsize_t count = std::min<hsize_t>(held, rows() - row);
      if (!read_block(element, {row}, {count}, block.data())) {
        const std::string why = library_says();
        if (values) values->flush();
        return values ? std::optional(why) : nothing(name, "text");
      }
      const auto field = [&](hsize_t i) {
        const std::string_view whole(block.data() + i * element.bytes, element.bytes);
        return whole.substr(0, whole.find('\0'));
      };
      if (!values) {
        bool numbers = false, real = false;
        for (hsize_t i = 0; i < count; ++i) {
          const Number number = number_of(field(i));
          numbers |= number.kind == Number::Kind::kInteger || number.kind == Number::Kind::kFloat;
          real |= number.kind == Number::Kind::kFloat && !number.huge;
        }
        if (!numbers) return nothing(name, "text");
        const Column column{
            name, real ? DType::kFloat64 : DType::kInt64, {static_cast<std::int64_t>(rows())}};
        values = std::make_unique<ValueColumn>(sink_, column, kValuesPerPiece);
        if (!values->begin()) return std::nullopt;
      }
      for (hsize_t i = 0; i < count; ++i)
        values->add(static_cast<std::int64_t>(row + i), 0, number_of(field(i)), field(i));
      if (!values->wanted()) break;
    }
    if (!values) return nothing(name, "text");
    values->flush();
    return std::nullopt;
  }

  hid_t id_;
  std::string path_;
  Sink& sink_;
  Id type_, space_, plan_;
  Sizes sizes_;
  bool empty_ = false;
  std::string open_;  // why its elements are left alone
};

}  // namespace

std::optional<std::string> read_data_set(hid_t data_set, const std::string& path, std::uint64_t file_bytes,
                                         Sink& sink) {
  DataSet one(data_set, path, sink);
  if (std::optional<std::string> problem = one.open(file_bytes)) return problem;
  return one.read();
}

}  // namespace trapline::inputs
