// The files of a folder in the order a person would list them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace trapline {

struct FolderListing {
  std::vector<std::string> files;  // regular files only, with the folder's path
  std::vector<Error> problems;     // folders that could not be opened
  std::int64_t left_out = 0;       // files beyond the limit
};

// Recursive; hidden entries and links to folders are left out (no loops); at most `max_files`.
FolderListing list_folder(const std::string& path, std::int64_t max_files, int max_depth);

// Numbers by value: rank2.log before rank10.log.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace trapline
