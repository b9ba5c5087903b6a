// What Trapline leaves on a machine: the folders of guards that were built for a torch. The names are those
// of python/trapline/_extension/cache.py and recipe.py; tests hold them together.
#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace trapline::doctor {

struct CacheEntry {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::time_t changed = 0;
};

struct CacheFolder {
  std::filesystem::path path;
  bool is_there = false;
  std::string refused{};              // why nothing of it is read or removed: not a folder, another's
  bool is_busy = false;               // a guard is being built in it
  std::vector<CacheEntry> entries{};  // only files that Trapline makes, oldest first
  std::size_t foreign = 0;            // what else lies in it
  std::uint64_t bytes() const;
};

// The folders where guards are kept, best first: in the user's cache, and in the temporary directory.
std::vector<CacheFolder> cache_folders(std::span<const std::string> environment);

struct Cleaned {
  std::size_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> problems{};
};

// Removes the entries, and the folder where it is empty then. A folder in which something is being built, or
// that is not this user's, is left as it is.
Cleaned clean(const CacheFolder& folder);

}  // namespace trapline::doctor
