// A file of another format behind gzip, zstd, bzip2 or xz: "train.csv.gz". It is unpacked into a file without
// a name in TMPDIR, so that its reader sees what it always sees, and memory stays flat; the file is gone with
// the process.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "bytes/decompress.hpp"
#include "inputs/damage.hpp"
#include "inputs/formats.hpp"
#include "inputs/mapped_file.hpp"
#include "inputs/unnamed_file.hpp"

namespace trapline::inputs {
namespace {

struct Ending {
  std::string_view end, inner;
};
constexpr Ending kEndings[] = {{".gz", ""},  {".gzip", ""}, {".zst", ""},    {".zstd", ""},
                               {".bz2", ""}, {".xz", ""},   {".tgz", ".tar"}};
constexpr std::size_t kBlock = std::size_t{1} << 20U;

// "train.csv" of "train.csv.gz"; empty when the name does not say what is inside.
std::string inner_name(std::string_view path) {
  for (const auto& [end, inner] : kEndings) {
    if (path.ends_with(end))
      return std::string(path.substr(0, path.size() - end.size())) + std::string(inner);
  }
  return "";
}

// By its name alone, and not another archive.
const Reader* inner_reader(const std::string& path) {
  const std::string name = inner_name(path);
  if (name.empty() || !inner_name(name).empty()) return nullptr;
  return find_reader(Source{name, {}});
}

// The bytes of a mapped file as a stream; its pages are given back behind the reading.
class MappedSource final : public ByteSource {
 public:
  explicit MappedSource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::size_t read(char* data, std::size_t size) override {
    const std::size_t count = std::min(size, bytes_.size() - next_);
    if (count > 0) std::memcpy(data, bytes_.data() + next_, count);
    next_ += count;
    if (next_ - released_ >= kBlock) {
      release_pages(bytes_.subspan(released_, next_ - released_));
      released_ = next_;
    }
    return count;
  }
  const std::optional<SourceProblem>& problem() const override { return none_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t next_ = 0, released_ = 0;
  std::optional<SourceProblem> none_;
};

bool write_whole(int file, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t wrote = ::write(file, data, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    data += wrote;
    size -= static_cast<std::size_t>(wrote);
  }
  return true;
}

class CompressedReader final : public Reader {
 public:
  std::string_view name() const override { return "compressed"; }
  bool knows(const Source& source) const override {
    return compression_of(as_text(source.bytes).substr(0, kMagicSize)) != Compression::kNone &&
           inner_reader(source.path) != nullptr;
  }

  bool is_table(const Source& source) const override {
    const Reader* inner = inner_reader(source.path);
    return inner != nullptr && inner->is_table({inner_name(source.path), {}});
  }

  Result<bool> read(const Source& source, Sink& sink) const override {
    const std::string folder = temporary_folder();
    const auto no_room = [&](const std::string& why) {
      return unreadable(source.path, "it cannot be unpacked in " + folder + ": " + why,
                        "set TMPDIR to a folder with room, or unpack the file yourself");
    };
    const Descriptor file(open_unnamed(folder));
    if (file.number() < 0) return no_room(std::generic_category().message(errno));
    const std::optional<std::uint64_t> most = room_for(file.number());
    if (!most) return no_room(std::generic_category().message(errno));

    MappedSource packed(source.bytes);
    const std::unique_ptr<ByteSource> text =
        decompress(compression_of(as_text(source.bytes).substr(0, kMagicSize)), packed);
    std::vector<char> block(kBlock);
    std::uint64_t size = 0;
    while (const std::size_t got = text->read(block.data(), block.size())) {
      if (sink.stopped()) return false;
      size += got;
      if (size > *most) return no_room("more than half of the room that is left there");
      if (!write_whole(file.number(), block.data(), got)) {
        return no_room(std::generic_category().message(errno));
      }
    }
    Result<bool> whole = read_unpacked(source, file.number(), size, sink);
    if (text->problem()) {  // and what came before it was checked
      return unreadable(source.path, text->problem()->why, text->problem()->fix);
    }
    return whole;
  }

 private:
  static Result<bool> read_unpacked(const Source& source, int file, std::uint64_t size, Sink& sink) {
    const Result<MappedFile> unpacked = MappedFile::of(file, size);
    if (!unpacked) return unreadable(source.path, unpacked.error().why, unpacked.error().fix);
    const Source inner{inner_name(source.path), unpacked->bytes()};
    const Reader* reader = find_reader(inner);
    // A name says .csv, but the contents are another archive: once is enough.
    if (reader == nullptr || reader->name() == "compressed") {
      return unreadable(source.path, "what is packed in it is not what its name says", "unpack it first");
    }
    Result<bool> whole = reader->read(inner, sink);
    if (whole) return whole;
    Error problem = whole.error();
    problem.what = "cannot read " + source.path + ", unpacked";
    return problem;
  }
};

}  // namespace

const Reader& compressed() {
  static const CompressedReader reader;
  return reader;
}

}  // namespace trapline::inputs
