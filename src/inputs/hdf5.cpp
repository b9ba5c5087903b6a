// HDF5: a column per data set of numbers. The reading itself is in libtrapline_hdf5.so (src/inputs/hdf5), and
// runs in a process of its own.
#include <string_view>

#include "inputs/apart.hpp"
#include "inputs/damage.hpp"
#include "inputs/formats.hpp"
#include "inputs/hdf5_plugin.hpp"
#include "inputs/plugin.hpp"

namespace trapline::inputs {
namespace {

// From the format's specification: at the start, or behind a user block of 512 bytes, 1024, 2048, ...
constexpr std::string_view kMagic("\x89HDF\r\n\x1a\n", 8);
constexpr std::size_t kFirstBlock = 512;

bool has_magic(std::string_view text) {
  if (text.starts_with(kMagic)) return true;
  for (std::size_t at = kFirstBlock; at < text.size(); at *= 2) {
    if (text.substr(at).starts_with(kMagic)) return true;
  }
  return false;
}

const Plugin& plugin() {
  static const Plugin loaded = load_plugin("libtrapline_hdf5.so", kHdf5ReadName, "TRAPLINE_HDF5_PLUGIN");
  return loaded;
}

class Hdf5Reader final : public Reader {
 public:
  std::string_view name() const override { return "hdf5"; }
  bool knows(const Source& source) const override {
    return has_magic(as_text(source.bytes)) || source.path.ends_with(".h5") || source.path.ends_with(".hdf5");
  }
  bool is_table(const Source&) const override { return true; }
  Result<bool> read(const Source& source, Sink& sink) const override {
    if (!has_magic(as_text(source.bytes)))
      return unreadable(source.path, source.bytes.empty() ? "the file is empty" : "it is no HDF5 file");
    if (plugin().symbol == nullptr) {
      return unreadable(
          source.path, "HDF5 needs libhdf5 (" + plugin().problem + ")",
          "write each of its arrays as .npy: numpy.save('labels.npy', h5py.File('FILE')['labels'][:])");
    }
    const auto read = reinterpret_cast<Hdf5Read>(plugin().symbol);
    std::optional<Error> problem = read_apart(source.path, "libhdf5", sink, [&](Sink& apart) {
      std::optional<Error> found;
      read(source.path, source.bytes, apart, found);
      return found;
    });
    if (problem) return *problem;
    return !sink.stopped();
  }
};

}  // namespace

const Reader& hdf5() {
  static const Hdf5Reader reader;
  return reader;
}

}  // namespace trapline::inputs
