#include "inputs/plugin.hpp"

#include <dlfcn.h>
#include <sys/auxv.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace trapline::inputs {

namespace fs = std::filesystem;

fs::path own_folder() {
  Dl_info self{};
  if (::dladdr(reinterpret_cast<const void*>(&own_folder), &self) == 0 || self.dli_fname == nullptr)
    return {};
  // A program's name is as it was called: one that was found on PATH has no folder, and the current one
  // must not do.
  fs::path file = self.dli_fname;
  const auto* given = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  if (!file.has_parent_path() && given != nullptr) file = given;
  std::error_code problem;
  return fs::canonical(file, problem).parent_path();
}

Plugin load_plugin(const std::string& library, const char* symbol, const char* folder_variable) {
  // Next to the program or library this code is part of, as built or as installed.
  std::vector<fs::path> folders;
  if (const char* folder = std::getenv(folder_variable)) folders.emplace_back(folder);
  if (const fs::path folder = own_folder(); !folder.empty()) {
    for (const char* below : {".", "../lib", "../_lib", "../" TRAPLINE_LIBDIR})
      folders.push_back(folder / below);
  }
  Plugin plugin;
  plugin.problem = "there is no " + library;
  for (const fs::path& folder : folders) {
    std::error_code problem;
    const fs::path path = folder / library;
    if (!fs::exists(path, problem)) continue;
    void* loaded = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    plugin.symbol = loaded == nullptr ? nullptr : ::dlsym(loaded, symbol);
    if (plugin.symbol != nullptr) break;
    const char* text = ::dlerror();
    plugin.problem = text == nullptr ? "it cannot be loaded" : text;
  }
  return plugin;
}

}  // namespace trapline::inputs
