// The files of a folder in the order a person would list them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace trapline {

struct FolderListing {
  std::vector<std::string> files;      // regular files only, with the folder's path
  std::vector<Error> problems;         // folders that could not be opened or read to their end, broken links
  std::vector<std::string> omissions;  // what was passed over and can hold logs, a line each; at most 32
  std::int64_t more_omissions = 0;
  std::int64_t hidden = 0;    // entries whose names start with a dot: as with ls, nobody asked for them
  std::int64_t left_out = 0;  // files beyond the limit
};

// Recursive; at most `max_files`. Links to folders are followed behind all real folders, and no folder is
// listed twice: links may run in a ring. One that leads to a folder around `path`, or to the kernel's own
// files, is an omission.
FolderListing list_folder(const std::string& path, std::int64_t max_files, int max_depth);

// Numbers by value: rank2.log before rank10.log.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace trapline
