// .pt and .pth as torch.save writes them since 1.6: a ZIP archive of a pickle and the storages it refers to.
#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "inputs/damage.hpp"
#include "inputs/elements.hpp"
#include "inputs/formats.hpp"
#include "inputs/pickled_tensors.hpp"
#include "inputs/zip.hpp"

namespace trapline::inputs {
namespace {

constexpr std::string_view kPickle = "data.pkl";
constexpr std::string_view kLegacyMagic{"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14};
// A view may show an element of its storage more than once, but not without end.
constexpr std::int64_t kMaxRepeats = 64;

struct DTypeRow {
  std::string_view name;
  Stored stored;
  bool complex = false;
};
constexpr DTypeRow kDTypes[] = {
    {"DoubleStorage", Stored::kFloat64},
    {"FloatStorage", Stored::kFloat32},
    {"HalfStorage", Stored::kFloat16},
    {"BFloat16Storage", Stored::kBFloat16},
    {"LongStorage", Stored::kInt64},
    {"IntStorage", Stored::kInt32},
    {"ShortStorage", Stored::kInt16},
    {"CharStorage", Stored::kInt8},
    {"ByteStorage", Stored::kUInt8},
    {"BoolStorage", Stored::kBool},
    {"uint16", Stored::kUInt16},
    {"uint32", Stored::kUInt32},
    {"uint64", Stored::kUInt64},
    {"float8_e4m3fn", Stored::kFloat8E4M3},
    {"float8_e5m2", Stored::kFloat8E5M2},
    {"float8_e8m0fnu", Stored::kFloat8E8M0},
    {"ComplexFloatStorage", Stored::kFloat32, true},
    {"ComplexDoubleStorage", Stored::kFloat64, true},
};

const ZipEntry* find_pickle(const std::vector<ZipEntry>& entries) {
  const auto found = std::find_if(entries.begin(), entries.end(), [](const ZipEntry& entry) {
    return entry.name == kPickle || entry.name.ends_with("/data.pkl");
  });
  return found == entries.end() ? nullptr : &*found;
}

// One past the last element that the tensor reaches; nullopt: further than any file.
std::optional<std::int64_t> reach(const PickledTensor& tensor) {
  std::int64_t last = tensor.offset;
  for (std::size_t d = 0; d < tensor.sizes.size(); ++d) {
    std::int64_t step = 0;
    if (__builtin_mul_overflow(tensor.sizes[d] - 1, tensor.strides[d], &step) ||
        __builtin_add_overflow(last, step, &last)) {
      return std::nullopt;
    }
  }
  return last < std::numeric_limits<std::int64_t>::max() ? std::optional(last + 1) : std::nullopt;
}

class Checkpoint {
 public:
  Checkpoint(const Source& source, const std::vector<ZipEntry>& entries, const ZipEntry& pickle, Sink& sink)
      : source_(source), sink_(sink) {
    prefix_ = pickle.name.substr(0, pickle.name.size() - kPickle.size());
    for (const ZipEntry& entry : entries) entries_.emplace(entry.name, &entry);
    const auto order = entries_.find(prefix_ + "byteorder");
    swapped_ = order != entries_.end() && as_text(order->second->data) == "big";
  }

  // False: stop, because the sink wants it or because of problem().
  bool tensor(const PickledTensor& tensor) {
    if (sink_.stopped()) return false;
    const auto* row = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                   [&](const DTypeRow& candidate) { return candidate.name == tensor.dtype; });
    if (row == std::end(kDTypes)) {
      sink_.skipped(tensor.name, "elements of the dtype " + std::string(tensor.dtype));
      return true;
    }
    const auto found = entries_.find(prefix_ + "data/" + std::string(tensor.storage.substr(0, 256)));
    if (found == entries_.end())
      return fail(tensor, 0, "its storage " + in_quotes(tensor.storage) + " is not there");
    const ZipEntry& entry = *found->second;
    if (entry.deflated)
      return fail(tensor, entry.data_offset, "its storage is compressed, which torch never does");

    PickledTensor view = tensor;
    Column column{tensor.name, Encoding{row->stored}.dtype(), tensor.sizes, name_of(row->stored)};
    if (row->complex) {
      // Pairs of floats: every stride and the offset double. What does not fit is out of reach anyway.
      for (std::int64_t* number : pointers(view)) {
        if (__builtin_mul_overflow(*number, std::int64_t{2}, number)) return fail_reach(tensor, entry);
      }
      view.sizes.push_back(2);
      view.strides.push_back(1);
      column.sizes.push_back(2);
    }
    const Encoding encoding{row->stored, swapped_ && Encoding{row->stored}.bytes() > 1};
    const auto held = static_cast<std::int64_t>(entry.data.size() / encoding.bytes());
    const std::optional<std::int64_t> count = product(view.sizes);
    if (!count) return fail_reach(tensor, entry);
    if (*count > 0) {
      const std::optional<std::int64_t> end = reach(view);
      if (!end || *end > held) return fail_reach(tensor, entry);
      if (*count / kMaxRepeats > held && !fold(view, column, held)) {
        return fail(tensor, entry.data_offset, "its shape shows the elements of its storage too often");
      }
    }
    if (!sink_.begin(column)) return true;
    deliver_strided(sink_, column, encoding, entry.data, view.offset, view.strides);
    return !sink_.stopped();
  }
  const std::optional<Error>& problem() const { return problem_; }

 private:
  static std::vector<std::int64_t*> pointers(PickledTensor& view) {
    std::vector<std::int64_t*> numbers{&view.offset};
    for (std::int64_t& stride : view.strides) numbers.push_back(&stride);
    return numbers;
  }
  // An expanded tensor: a dimension of stride 0 shows the same elements again, so one of them is enough.
  static bool fold(PickledTensor& view, Column& column, std::int64_t held) {
    for (std::size_t d = 0; d < view.sizes.size(); ++d) {
      if (view.strides[d] == 0) view.sizes[d] = column.sizes[d] = 1;
    }
    return product(view.sizes).value_or(0) / kMaxRepeats <= held;
  }
  bool fail(const PickledTensor& tensor, std::uint64_t offset, const std::string& why) {
    problem_ = damaged(source_.path, offset, "the tensor " + in_quotes(tensor.name, 200) + ": " + why);
    return false;
  }
  bool fail_reach(const PickledTensor& tensor, const ZipEntry& entry) {
    return fail(
        tensor, entry.data_offset,
        "its shape reaches behind the end of its storage of " + std::to_string(entry.data.size()) + " bytes");
  }

  const Source& source_;
  Sink& sink_;
  std::string prefix_;
  std::map<std::string, const ZipEntry*> entries_;
  bool swapped_ = false;
  std::optional<Error> problem_;
};

class TorchReader final : public Reader {
 public:
  std::string_view name() const override { return "torch"; }
  bool knows(const Source& source) const override {
    if (source.path.ends_with(".pt") || source.path.ends_with(".pth")) return true;
    if (as_text(source.bytes).starts_with(kLegacyMagic)) return true;
    if (!is_zip(source.bytes)) return false;
    const Result<std::vector<ZipEntry>> entries = read_zip(source.bytes, source.path);
    return entries && find_pickle(*entries) != nullptr;
  }
  Result<bool> read(const Source& source, Sink& sink) const override {
    if (!is_zip(source.bytes)) {
      if (!as_text(source.bytes).starts_with("\x80")) {
        return damaged(source.path, 0, "no checkpoint: neither an archive nor a pickle");
      }
      return unreadable(source.path,
                        "it is a bare pickle, as torch wrote it before 1.6; it is never loaded here",
                        "load it and save it again with a newer torch, or as .safetensors");
    }
    const Result<std::vector<ZipEntry>> entries = read_zip(source.bytes, source.path);
    if (!entries) return entries.error();
    const ZipEntry* pickle = find_pickle(*entries);
    if (pickle == nullptr) return unreadable(source.path, "the archive has no data.pkl");
    if (pickle->deflated)
      return damaged(source.path, pickle->data_offset, "data.pkl is compressed, which torch never does");
    Checkpoint checkpoint(source, *entries, *pickle, sink);
    const std::optional<Error> problem = read_pickled_tensors(
        pickle->data, source.path, pickle->data_offset,
        [&](const PickledTensor& tensor) { return checkpoint.tensor(tensor); },
        [&](const std::string& name, std::string_view type) { sink.object(name, type); });
    if (checkpoint.problem()) return *checkpoint.problem();
    if (problem) return *problem;
    return !sink.stopped();
  }
};

}  // namespace

const Reader& torch_save() {
  static const TorchReader reader;
  return reader;
}

}  // namespace trapline::inputs
