#include "inputs/folder.hpp"

#include <algorithm>
#include <filesystem>

namespace trapline::inputs {
namespace {

namespace fs = std::filesystem;

template <class Wanted>
std::vector<std::string> entries(const std::string& folder, bool hidden, Wanted&& wanted) {
  std::vector<std::string> found;
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    if (!hidden && entry->path().filename().string().starts_with('.')) continue;
    if (wanted(*entry)) found.push_back(entry->path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

bool is_folder(const std::string& path) {
  std::error_code problem;
  return fs::is_directory(path, problem);
}

std::vector<std::string> files_in(const std::string& folder, std::string_view end) {
  return entries(folder, false, [&](const fs::directory_entry& entry) {
    std::error_code problem;
    return entry.path().string().ends_with(end) && entry.is_regular_file(problem);
  });
}

std::vector<std::string> folders_in(const std::string& folder, bool hidden) {
  return entries(folder, hidden, [](const fs::directory_entry& entry) {
    std::error_code problem;
    return entry.is_directory(problem);
  });
}

void each_file_below(const std::string& folder, const std::function<bool(const std::string&)>& visit) {
  std::error_code problem;
  for (fs::recursive_directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored) && !visit(entry->path().string())) return;
  }
}

std::string name_of_path(const std::string& path) {
  std::string name = path;
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  return name.substr(name.rfind('/') + 1);
}

}  // namespace trapline::inputs
