// .png segmentation masks: a class per pixel, gray or palette, as it is stored; and folders of them.
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <map>
#include <vector>

#include "inputs/damage.hpp"
#include "inputs/elements.hpp"
#include "inputs/folder.hpp"
#include "inputs/formats.hpp"
#include "inputs/mapped_file.hpp"
#include "inputs/png_colours.hpp"

namespace trapline::inputs {
namespace {

constexpr std::string_view kMagic{"\x89PNG\r\n\x1a\n", 8};
constexpr std::size_t kColorType = 25;  // of the first chunk
constexpr unsigned kMaxSide = 1'000'000;
constexpr std::size_t kMaxChunk = std::size_t{8} << 20U;
// An interlaced picture is only there when all of it is.
constexpr std::size_t kMaxInterlaced = std::size_t{256} << 20U;

bool is_png(std::span<const std::byte> bytes) { return as_text(bytes).starts_with(kMagic); }
// One channel: gray or palette. Pictures in colour or with transparency per pixel are no masks.
bool is_mask(std::span<const std::byte> bytes) {
  return is_png(bytes) && bytes.size() > kColorType &&
         (bytes[kColorType] == std::byte{PNG_COLOR_TYPE_GRAY} ||
          bytes[kColorType] == std::byte{PNG_COLOR_TYPE_PALETTE});
}

struct Input {
  std::span<const std::byte> bytes;
  std::size_t next = 0;
  std::array<char, 128> problem{};
};

// libpng reports an error by leaving through longjmp, so nothing with a destructor may live in a function
// that calls it behind a setjmp. The buffers belong to the caller.
extern "C" {
static void read_bytes(png_structp png, png_bytep to, std::size_t size) {
  auto* input = static_cast<Input*>(png_get_io_ptr(png));
  if (input->bytes.size() - input->next < size) {
    input->next = input->bytes.size();
    png_error(png, "the picture ends too early");
  }
  std::memcpy(to, input->bytes.data() + input->next, size);
  input->next += size;
}
static void on_error(png_structp png, png_const_charp text) {
  auto* input = static_cast<Input*>(png_get_error_ptr(png));
  std::strncpy(input->problem.data(), text, input->problem.size() - 1);
  png_longjmp(png, 1);
}
static void on_warning(png_structp, png_const_charp) {}
}

struct Png {
  explicit Png(Input& input)
      : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &input, on_error, on_warning)) {
    if (png == nullptr) return;
    info = png_create_info_struct(png);
    png_set_read_fn(png, &input, read_bytes);
    png_set_user_limits(png, kMaxSide, kMaxSide);
    png_set_chunk_malloc_max(png, kMaxChunk);
  }
  ~Png() { png_destroy_read_struct(&png, &info, nullptr); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;
  png_structp png = nullptr;
  png_infop info = nullptr;
};

struct Shape {
  unsigned width = 0, height = 0;
  int depth = 0, color = 0, passes = 0;
  std::size_t row_bytes = 0;
};

bool read_header(Png& png, Shape& shape) {
  if (setjmp(png_jmpbuf(png.png)) != 0) return false;
  png_read_info(png.png, png.info);
  shape.width = png_get_image_width(png.png, png.info);
  shape.height = png_get_image_height(png.png, png.info);
  shape.depth = png_get_bit_depth(png.png, png.info);
  shape.color = png_get_color_type(png.png, png.info);
  png_set_packing(png.png);  // 1, 2 and 4 bits to a byte each; the values stay
  shape.passes = png_set_interlace_handling(png.png);
  png_read_update_info(png.png, png.info);
  shape.row_bytes = png_get_rowbytes(png.png, png.info);
  return true;
}

bool read_row(Png& png, std::byte* row) {
  if (setjmp(png_jmpbuf(png.png)) != 0) return false;
  png_read_row(png.png, reinterpret_cast<png_bytep>(row), nullptr);
  return true;
}

std::optional<Error> read_png(const std::string& path, std::span<const std::byte> bytes,
                              std::string_view file, Sink& sink) {
  Input input{bytes, 0, {}};
  Png png(input);
  if (png.png == nullptr || png.info == nullptr) return unreadable(path, "no memory for the picture");
  const auto broken = [&] { return damaged(path, input.next, input.problem.data()); };
  Shape shape;
  if (!read_header(png, shape)) return broken();
  if (shape.color != PNG_COLOR_TYPE_GRAY && shape.color != PNG_COLOR_TYPE_PALETTE) {
    return unreadable(path, "the picture has colours or transparency: a mask has one channel",
                      "save the class of each pixel as gray or palette");
  }
  const Encoding encoding{shape.depth == 16 ? Stored::kUInt16 : Stored::kUInt8, shape.depth == 16};
  const Column column{"", encoding.dtype(), {shape.height, shape.width}, name_of(encoding.stored)};
  if (!sink.begin(column)) return std::nullopt;
  if (!file.empty()) sink.file(column, file, 0);
  DenseDelivery delivery(sink, column, encoding);
  const bool interlaced = shape.passes > 1;
  if (interlaced && shape.row_bytes * shape.height > kMaxInterlaced) {
    return unreadable(path, "an interlaced picture of more than 256 MiB", "save it without interlacing");
  }
  std::vector<std::byte> pixels(interlaced ? shape.row_bytes * shape.height : shape.row_bytes);
  for (int pass = 0; pass < shape.passes; ++pass) {
    for (unsigned y = 0; y < shape.height; ++y) {
      if (!read_row(png, pixels.data() + (interlaced ? y * shape.row_bytes : 0))) {
        delivery.finish();  // what came before the damage
        return broken();
      }
      if (!interlaced && !delivery.put(pixels)) return std::nullopt;
    }
  }
  if (!interlaced || delivery.put(pixels)) delivery.finish();
  return std::nullopt;
}

// Colours as 0xRRGGBB, how many pixels have each, and of how many pictures.
struct Colours {
  std::map<std::uint32_t, std::int64_t> pixels;
  int pictures = 0;
};
constexpr std::size_t kFewColours = 256;  // as many classes as a gray mask can have
constexpr int kPicturesLookedAt = 8;
constexpr unsigned kRowsLookedAt = 4096;
constexpr std::int64_t kPixelsPerColour = 16;

// False: it is not in colour, has too many of them or is damaged.
bool add_colours(std::span<const std::byte> bytes, Colours& colours) {
  if (!is_png(bytes)) return false;
  Input input{bytes, 0, {}};
  Png png(input);
  Shape shape;
  if (png.png == nullptr || png.info == nullptr || !read_header(png, shape)) return false;
  const std::size_t channels = shape.color == PNG_COLOR_TYPE_RGB ? 3 : 4;
  if ((shape.color != PNG_COLOR_TYPE_RGB && shape.color != PNG_COLOR_TYPE_RGBA) || shape.depth != 8 ||
      shape.passes != 1) {
    return false;
  }
  std::vector<std::byte> row(shape.row_bytes);
  for (unsigned y = 0; y < std::min(shape.height, kRowsLookedAt); ++y) {
    if (!read_row(png, row.data())) return false;
    for (std::size_t at = 0; at + channels <= row.size(); at += channels) {
      const auto level = [&](std::size_t channel) { return static_cast<std::uint32_t>(row[at + channel]); };
      ++colours.pixels[level(0) << 16U | level(1) << 8U | level(2)];
      if (colours.pixels.size() > kFewColours) return false;
    }
  }
  ++colours.pictures;
  return true;
}

std::string in_hex(std::uint32_t colour) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "#%06x", colour & 0xFFFFFFU);
  return text.data();
}

class PngReader final : public Reader {
 public:
  std::string_view name() const override { return "png"; }
  bool knows(const Source& source) const override {
    if (!source.bytes.empty()) return is_mask(source.bytes);
    const std::vector<std::string> files = files_in(source.path, ".png");
    if (files.empty()) return false;
    const Result<MappedFile> first = MappedFile::open(files[0]);
    return first && is_mask(first->bytes());
  }
  // The masks of a folder are tables of their own: they need not have one size.
  Result<bool> read(const Source& source, Sink& sink) const override {
    if (!source.bytes.empty()) {
      if (std::optional<Error> problem = read_png(source.path, source.bytes, {}, sink))
        return *std::move(problem);
      return !sink.stopped();
    }
    for (const std::string& path : files_in(source.path, ".png")) {
      if (sink.stopped()) return false;
      const Result<MappedFile> file = MappedFile::open(path);
      if (!file) return file.error();
      if (std::optional<Error> problem = read_png(path, file->bytes(), path, sink))
        return *std::move(problem);
    }
    return !sink.stopped();
  }
};

}  // namespace

std::optional<std::string> few_colours(std::span<const std::string> paths) {
  Colours colours;
  for (const std::string& path : paths) {
    if (!path.ends_with(".png") || colours.pictures == kPicturesLookedAt) continue;
    const Result<MappedFile> file = MappedFile::open(path);
    if (!file || !add_colours(file->bytes(), colours)) return std::nullopt;
  }
  const auto count = static_cast<std::int64_t>(colours.pixels.size());
  std::int64_t pixels = 0;
  std::string names;
  constexpr std::size_t kNamed = 4;
  std::size_t named = 0;
  for (const auto& [colour, many] : colours.pixels) {
    pixels += many;
    if (++named <= kNamed) names += (named == 1 ? "" : ", ") + in_hex(colour);
  }
  // Shades of gray that were saved in colour: a picture, or the numbers themselves three times.
  const bool gray = std::ranges::all_of(colours.pixels, [](const auto& one) {
    return (one.first & 0xFFU) == (one.first >> 8U & 0xFFU) && (one.first & 0xFFU) == one.first >> 16U;
  });
  if (gray || count < 2 || pixels < count * kPixelsPerColour) return std::nullopt;
  return std::to_string(count) + " colours (" + names + (named > kNamed ? ", ..." : "") + ") in " +
         (colours.pictures == 1 ? "the picture" : std::to_string(colours.pictures) + " pictures");
}

const Reader& png_mask() {
  static const PngReader reader;
  return reader;
}

}  // namespace trapline::inputs
