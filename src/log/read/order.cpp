#include "log/read/order.hpp"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

namespace trapline {
namespace {

namespace fs = std::filesystem;

bool digit(char c) { return c >= '0' && c <= '9'; }

constexpr std::size_t kMaxOmissions = 32;

class Walk {
 public:
  Walk(std::int64_t max_files, int max_depth, FolderListing& listing)
      : max_files_(max_files), max_depth_(max_depth), listing_(listing) {}

  void from(const fs::path& root) {
    std::error_code error;
    for (fs::path around = fs::canonical(root, error); around.has_relative_path();) {
      around = around.parent_path();
      if (const auto id = id_of(around)) around_.insert(*id);
    }
    visit(root, max_depth_);
    while (!links_.empty()) {  // a link's folder may hold further links
      const auto [path, depth] = links_.front();
      links_.pop_front();
      follow(path, depth);
    }
  }

 private:
  using Id = std::pair<dev_t, ino_t>;
  struct Folder {
    fs::path path;
    int depth;  // how many levels may follow below it
  };

  static std::optional<Id> id_of(const fs::path& path) {
    struct stat state {};
    if (::stat(path.c_str(), &state) != 0) return std::nullopt;
    return Id(state.st_dev, state.st_ino);
  }

  // Files of /proc and /sys are no files: some block, and some act when they are read.
  static bool is_kernels(const fs::path& path) {
    struct statfs system {};
    return ::statfs(path.c_str(), &system) == 0 &&
           (system.f_type == PROC_SUPER_MAGIC || system.f_type == SYSFS_MAGIC);
  }

  void omit(const fs::path& path, const char* why) {
    if (listing_.omissions.size() < kMaxOmissions) {
      listing_.omissions.push_back(path.string() + ": not read: " + why);
    } else {
      ++listing_.more_omissions;
    }
  }

  void follow(const fs::path& path, int depth) {
    const auto id = id_of(path);
    if (id && around_.contains(*id)) return omit(path, "the link leads to a folder around this one");
    if (is_kernels(path)) return omit(path, "the link leads to files of the kernel");
    visit(path, depth);
  }

  void visit(const fs::path& folder, int depth) {
    if (const auto id = id_of(folder); id && !visited_.insert(*id).second) return;
    std::error_code error;
    fs::directory_iterator entry(folder, error);
    if (error) {
      listing_.problems.push_back({folder.string(), error.message(), "check the permissions"});
      return;
    }
    std::vector<fs::path> folders;
    for (; entry != fs::directory_iterator(); entry.increment(error)) {
      look_at(*entry, depth, folders);
    }
    if (error) listing_.problems.push_back({folder.string(), error.message(), "check the disk"});
    for (const fs::path& inner : folders) visit(inner, depth - 1);
  }

  void look_at(const fs::directory_entry& entry, int depth, std::vector<fs::path>& folders) {
    if (entry.path().filename().string().starts_with('.')) {
      ++listing_.hidden;
      return;
    }
    std::error_code error;
    const bool is_link = entry.is_symlink(error);
    switch (entry.status(error).type()) {
      case fs::file_type::directory:
        if (depth <= 0) return omit(entry.path(), "it lies deeper than folders are read: name it");
        if (is_link) {
          links_.push_back({entry.path(), depth - 1});
        } else {
          folders.push_back(entry.path());
        }
        return;
      case fs::file_type::regular:
        if (static_cast<std::int64_t>(listing_.files.size()) < max_files_) {
          listing_.files.push_back(entry.path().string());
        } else {
          ++listing_.left_out;
        }
        return;
      case fs::file_type::fifo:
        return omit(entry.path(), "it is a pipe: name it, and it is read to its end");
      case fs::file_type::socket:
      case fs::file_type::character:
      case fs::file_type::block:
        return;  // no log lies in them
      default:
        listing_.problems.push_back({entry.path().string(),
                                     error ? error.message() : "the link leads nowhere",
                                     "copy the file that it names, or remove the link"});
    }
  }

  std::int64_t max_files_;
  int max_depth_;
  FolderListing& listing_;
  std::set<Id> visited_;
  std::set<Id> around_;  // the folders in which the root lies
  std::deque<Folder> links_;
};

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
  Walk(max_files, max_depth, listing).from(path);
  std::sort(listing.files.begin(), listing.files.end(), natural_less);
  return listing;
}

}  // namespace trapline
