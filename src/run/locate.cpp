#include "run/locate.hpp"

#include <vector>

namespace trapline {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The first folder in which `marker` exists; empty when there is none.
fs::path first_with(const std::vector<fs::path>& folders, const fs::path& marker) {
  for (const fs::path& folder : folders) {
    if (is_there(folder / marker)) return folder.lexically_normal();
  }
  return {};
}

Error missing(const std::string& what, const fs::path& place) {
  return {"cannot find " + what, "there is nothing at " + place.lexically_normal().string(),
          "install Trapline again, or run `make` in its source tree"};
}

}  // namespace

Result<Installation> locate(const fs::path& executable) {
  const fs::path prefix = executable.parent_path().parent_path();
  const fs::path library_name = "libtrapline.so";
  const fs::path package = fs::path("trapline") / "startup" / "sitecustomize.py";
  const fs::path lib = first_with({prefix / "lib", prefix / TRAPLINE_LIBDIR}, library_name);
  if (lib.empty()) return missing("libtrapline.so", prefix / "lib" / library_name);

  std::vector<fs::path> folders = {prefix / TRAPLINE_DATADIR / "trapline" / "python",
                                   prefix.parent_path() / "python"};
  // A build folder need not lie in the source tree; only such a folder may reach back to that tree.
  if (is_there(prefix / "CMakeCache.txt")) folders.emplace_back(TRAPLINE_SOURCE_PYTHON);
  const fs::path python = first_with(folders, package);
  if (python.empty()) return missing("Trapline's Python package", folders.front() / package);
  return Installation{python, lib / library_name};
}

fs::path this_executable() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

}  // namespace trapline
