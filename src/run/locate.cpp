#include "run/locate.hpp"

#include <sys/auxv.h>

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
  if (executable.empty()) {
    return Error{"cannot find Trapline's own files",
                 "/proc/self/exe cannot be read: /proc is not mounted here",
                 "mount it, or start trapline by its full path"};
  }
  const fs::path prefix = executable.parent_path().parent_path();
  const fs::path library_name = "libtrapline.so";
  const fs::path package = fs::path("trapline") / "startup" / "sitecustomize.py";
  // A wheel: everything lies inside the package.
  if (executable.parent_path().filename() == "_bin" && is_there(prefix.parent_path() / package)) {
    const fs::path inside = prefix / "_lib" / library_name;
    if (!is_there(inside)) return missing("libtrapline.so", inside);
    return Installation{prefix.parent_path(), inside};
  }
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
  fs::path path = fs::read_symlink("/proc/self/exe", error);
  if (!error) return path;
  // No /proc, as in a bare chroot: the path that the kernel was given, which may be a link or relative.
  const auto* given = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  if (given == nullptr) return {};
  path = fs::canonical(given, error);
  return error ? fs::path() : path;
}

}  // namespace trapline
