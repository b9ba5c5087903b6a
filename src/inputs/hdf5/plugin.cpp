// libtrapline_hdf5.so: reads the data sets of an HDF5 file through libhdf5. Only what lies in the file itself
// is read, and only by the filters that libhdf5 has built in.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "inputs/damage.hpp"
#include "inputs/hdf5/dataset.hpp"
#include "inputs/hdf5/library.hpp"
#include "inputs/hdf5/memory_file.hpp"
#include "inputs/hdf5_plugin.hpp"

namespace trapline::inputs {

std::string library_says() {
  std::string words = "nothing";
  // From where it was noticed first: the outermost only says that something failed.
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned number, const H5E_error2_t* error, void* out) -> herr_t {
        if (number == 0 && error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
        return 0;
      },
      &words);
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);  // of a file that is newer than it, that says it all
  const std::string version =
      std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
  return "libhdf5 " + version + " says: " + in_quotes(words, 120);
}

namespace {

constexpr std::size_t kMaxObjects = 65536;
constexpr std::size_t kMaxDepth = 64;
constexpr std::uint64_t kChunkCache = std::uint64_t{64} << 20U;
constexpr std::string_view kOneFile =
    "write what is missing into this file: h5repack, or numpy.save of the array";

class Walk {
 public:
  Walk(const std::string& path, std::uint64_t bytes, Sink& sink) : path_(path), bytes_(bytes), sink_(sink) {}

  std::optional<Error> all(hid_t file) {
    const Id root(H5Gopen2(file, "/", H5P_DEFAULT));
    if (!root) return unreadable(path_, library_says());
    enter(root.get());
    group(root.get(), "", 0);
    if (others_ > 0 && problem_) {
      problem_->why += " (and so " + std::to_string(others_) + " more of its objects)";
    }
    return problem_;
  }

 private:
  void note(const std::string& name, const std::string& why, std::string_view fix = kOneFile) {
    if (problem_) {
      ++others_;
    } else {
      problem_ = unreadable(path_, in_quotes(name, 120) + ": " + why, fix);
    }
  }
  void note_library(const std::string& name) { note(name, library_says(), kCopyAgain); }

  // False: it was seen already, under this name or another. Links may lead in a circle.
  bool enter(hid_t object) {
    H5O_info_t info{};
    if (H5Oget_info(object, &info) < 0) return true;
    return seen_.insert(info.addr).second;
  }

  void group(hid_t id, const std::string& prefix, std::size_t depth) {
    if (depth == kMaxDepth) return note(prefix, "groups nested more than 64 deep", kCopyAgain);
    struct Links {
      std::vector<std::pair<std::string, H5L_type_t>> all;
    } links;
    const auto take = [](hid_t, const char* name, const H5L_info_t* info, void* out) -> herr_t {
      auto& found = *static_cast<Links*>(out);
      if (found.all.size() == kMaxObjects) return -1;
      found.all.emplace_back(name, info->type);
      return 0;
    };
    H5Eclear2(H5E_DEFAULT);
    if (H5Literate(id, H5_INDEX_NAME, H5_ITER_INC, nullptr, take, &links) < 0)
      note_library(prefix.empty() ? "/" : prefix);
    for (const auto& [name, type] : links.all) {
      const std::string path = prefix + "/" + name;
      if (type == H5L_TYPE_HARD) {
        object(id, name, path, depth);
      } else if (type != H5L_TYPE_SOFT) {  // a soft link is another name for what lies in this file
        if (sink_.begin({path, DType::kInt64, {-1}}))
          note(path, "a link to another file, which is not followed");
      }
    }
  }

  void object(hid_t parent, const std::string& name, const std::string& path, std::size_t depth) {
    H5Eclear2(H5E_DEFAULT);
    Id id(H5Oopen(parent, name.c_str(), H5P_DEFAULT));
    if (!id) return note_library(path);
    if (!enter(id.get())) return;
    if (seen_.size() > kMaxObjects) return note(path, "more than 65536 objects", "split the file");
    const H5I_type_t kind = H5Iget_type(id.get());
    if (kind == H5I_GROUP) return group(id.get(), path, depth + 1);
    if (kind != H5I_DATASET) return;
    // Again, with room for the chunks that one reading touches.
    const Id access(H5Pcreate(H5P_DATASET_ACCESS));
    constexpr std::size_t kSlots = 12421;
    H5Pset_chunk_cache(access.get(), kSlots, kChunkCache, 1.0);
    id = Id();
    const Id data_set(H5Dopen2(parent, name.c_str(), access.get()));
    if (!data_set) return note_library(path);
    if (const auto why = read_data_set(data_set.get(), path, bytes_, sink_)) note(path, *why);
  }

  const std::string& path_;
  std::uint64_t bytes_;
  Sink& sink_;
  std::set<haddr_t> seen_;
  std::optional<Error> problem_;
  std::size_t others_ = 0;
};

}  // namespace
}  // namespace trapline::inputs

extern "C" __attribute__((visibility("default"))) void trapline_hdf5_read(
    const std::string& path, std::span<const std::byte> bytes, trapline::inputs::Sink& sink,
    std::optional<trapline::Error>& problem) {
  using namespace trapline::inputs;
  H5dont_atexit();
  H5open();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5PLset_loading_state(0);  // a file may not choose a library to load
  const Id file = open_memory_file(bytes);
  if (!file) {
    problem = unreadable(path, library_says());
    return;
  }
  Walk walk(path, bytes.size(), sink);
  problem = walk.all(file.get());
}
