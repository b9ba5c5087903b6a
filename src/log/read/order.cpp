#include "log/read/order.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace trapline {
namespace {

namespace fs = std::filesystem;

bool digit(char c) { return c >= '0' && c <= '9'; }

void walk(const fs::path& folder, std::int64_t max_files, int depth, FolderListing& listing) {
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  if (error) {
    listing.problems.push_back({folder.string(), error.message(), "check the permissions"});
    return;
  }
  std::vector<fs::path> folders;
  for (; entry != fs::directory_iterator(); entry.increment(error)) {
    if (error) break;
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.')) continue;
    std::error_code ignored;
    if (entry->is_symlink(ignored) && entry->is_directory(ignored)) continue;
    if (entry->is_directory(ignored)) {
      if (depth > 0) folders.push_back(entry->path());
    } else if (entry->is_regular_file(ignored)) {
      if (static_cast<std::int64_t>(listing.files.size()) < max_files) {
        listing.files.push_back(entry->path().string());
      } else {
        ++listing.left_out;
      }
    }
  }
  for (const fs::path& inner : folders) walk(inner, max_files, depth - 1, listing);
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  // The files of a folder begin alike; what differs starts at a number's first digit.
  auto i = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  while (i > 0 && digit(a[i - 1])) --i;
  std::size_t k = i;
  while (i < a.size() && k < b.size()) {
    if (!digit(a[i]) || !digit(b[k])) {
      if (a[i] != b[k]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[k]);
      ++i, ++k;
      continue;
    }
    const auto number = [](std::string_view text, std::size_t& at) {
      while (at < text.size() && text[at] == '0') ++at;
      const std::size_t start = at;
      while (at < text.size() && digit(text[at])) ++at;
      return text.substr(start, at - start);
    };
    const std::string_view first = number(a, i);
    const std::string_view second = number(b, k);
    if (first.size() != second.size()) return first.size() < second.size();
    if (first != second) return first < second;
  }
  if (a.size() - i != b.size() - k) return a.size() - i < b.size() - k;
  return a < b;  // 01 and 1
}

FolderListing list_folder(const std::string& path, std::int64_t max_files, int max_depth) {
  FolderListing listing;
  walk(path, max_files, max_depth, listing);
  std::sort(listing.files.begin(), listing.files.end(), natural_less);
  return listing;
}

}  // namespace trapline
