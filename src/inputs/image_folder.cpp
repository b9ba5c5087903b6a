// Trees of pictures, a folder per class, as torchvision's ImageFolder and datasets' imagefolder take them.
// The pictures are counted, not opened: what is read are the labels that a loader makes of the folders.
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <vector>

#include "inputs/folder.hpp"
#include "inputs/formats.hpp"

namespace trapline::inputs {
namespace {

constexpr std::string_view kPictures[] = {".jpg", ".jpeg", ".png",  ".ppm", ".bmp",
                                          ".pgm", ".tif",  ".tiff", ".webp"};
constexpr std::string_view kSplits[] = {"train", "training", "val", "valid", "validation", "test", "testing"};
constexpr std::int64_t kLabelsPerPiece = std::int64_t{1} << 16U;

bool is_picture(const std::string& path) {
  std::string end = std::filesystem::path(path).extension().string();
  std::transform(end.begin(), end.end(), end.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(std::begin(kPictures), std::end(kPictures), end) != std::end(kPictures);
}

bool has_picture(const std::string& folder) {
  bool found = false;
  each_file_below(folder, [&](const std::string& path) { return !(found = is_picture(path)); });
  return found;
}

// "train" and "val" are splits, each with a folder per class, not two classes.
bool are_splits(const std::vector<std::string>& folders) {
  return !folders.empty() && std::all_of(folders.begin(), folders.end(), [](const std::string& folder) {
    const bool split =
        std::find(std::begin(kSplits), std::end(kSplits), name_of_path(folder)) != std::end(kSplits);
    return split && !folders_in(folder).empty();
  });
}

// The classes as torchvision's find_classes has them: every folder, also a hidden one that some program left.
std::vector<std::string> class_folders(const std::string& folder) { return folders_in(folder, true); }

void read_tree(const std::vector<std::string>& folders, Sink& sink) {
  std::vector<std::int64_t> pictures;
  std::vector<ClassName> names;
  std::int64_t total = 0;
  for (const std::string& folder : folders) {
    std::int64_t count = 0;
    each_file_below(folder, [&](const std::string& path) {
      count += is_picture(path) ? 1 : 0;
      return !sink.stopped();
    });
    pictures.push_back(count);
    total += count;
    names.push_back({static_cast<std::int64_t>(names.size()), name_of_path(folder), count == 0});
  }
  const Column column{"label", DType::kInt64, {total}};
  if (!sink.begin(column)) return;
  sink.class_names(column, names);
  std::int64_t row = 0;
  for (std::size_t label = 0; label < folders.size(); ++label) {
    if (pictures[label] == 0) sink.skipped(folders[label], "a class without pictures");
    sink.file(column, folders[label], row);
    std::vector<std::int64_t> labels(static_cast<std::size_t>(std::min(pictures[label], kLabelsPerPiece)),
                                     static_cast<std::int64_t>(label));
    for (std::int64_t left = pictures[label]; left > 0;) {
      const std::array<std::int64_t, 1> sizes{std::min(left, kLabelsPerPiece)};
      constexpr std::array<std::int64_t, 1> kStrides{1};
      Piece piece;
      piece.column = &column;
      piece.view = {labels.data(), DType::kInt64, sizes, kStrides};
      piece.first_row = row;
      if (!sink.piece(piece) || sink.stopped()) return;
      row += sizes[0];
      left -= sizes[0];
    }
  }
}

class ImageFolderReader final : public Reader {
 public:
  std::string_view name() const override { return "image folder"; }
  bool knows(const Source& source) const override {
    if (!source.bytes.empty() || !is_folder(source.path)) return false;
    std::vector<std::string> folders = folders_in(source.path);
    // A folder for pictures beside one for labels or masks has no class per folder.
    if (std::any_of(folders.begin(), folders.end(), [](const std::string& folder) {
          const std::string name = name_of_path(folder);
          return name == "images" || name == "labels" || name == "masks" || name == "annotations";
        })) {
      return false;
    }
    if (are_splits(folders)) folders = folders_in(folders[0]);
    return folders.size() > 1 && has_picture(folders[0]);
  }
  Result<bool> read(const Source& source, Sink& sink) const override {
    const std::vector<std::string> folders = folders_in(source.path);
    if (!are_splits(folders)) {
      read_tree(class_folders(source.path), sink);
      return !sink.stopped();
    }
    for (const std::string& split : folders) {
      if (!sink.stopped()) read_tree(class_folders(split), sink);
    }
    return !sink.stopped();
  }
};

}  // namespace

const Reader& image_folder() {
  static const ImageFolderReader reader;
  return reader;
}

}  // namespace trapline::inputs
