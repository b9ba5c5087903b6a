#include "run/libtorch.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>

#include "run/environment.hpp"
#include "run/find_program.hpp"

namespace trapline {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxWords = 64;
constexpr std::size_t kMaxHeaders = 256;
constexpr std::size_t kMaxEntries = 4096;

// Reads values at offsets of a file that may be damaged.
class File {
 public:
  explicit File(const fs::path& path) : stream_(path, std::ios::binary) {}

  template <class T>
  std::optional<T> read(std::uint64_t offset) {
    T value;
    if (!seek(offset) || !stream_.read(reinterpret_cast<char*>(&value), sizeof value)) return std::nullopt;
    return value;
  }
  std::string text(std::uint64_t offset) {
    std::string value;
    char next = 0;
    if (!seek(offset)) return value;
    while (value.size() < 256 && stream_.get(next) && next != '\0') value.push_back(next);
    return value;
  }

 private:
  bool seek(std::uint64_t offset) {
    stream_.clear();
    return offset < (std::uint64_t{1} << 40U) && stream_.seekg(static_cast<std::streamoff>(offset));
  }
  std::ifstream stream_;
};

struct Needed {
  std::vector<std::uint64_t> names;  // offsets into the string table
  std::uint64_t strings = 0;         // its address
};

Needed read_dynamic(File& file, const Elf64_Phdr& dynamic) {
  Needed needed;
  const std::size_t count = std::min<std::uint64_t>(dynamic.p_filesz / sizeof(Elf64_Dyn), kMaxEntries);
  for (std::size_t i = 0; i < count; ++i) {
    const auto entry = file.read<Elf64_Dyn>(dynamic.p_offset + i * sizeof(Elf64_Dyn));
    if (!entry || entry->d_tag == DT_NULL) break;
    if (entry->d_tag == DT_NEEDED) needed.names.push_back(entry->d_un.d_val);
    if (entry->d_tag == DT_STRTAB) needed.strings = entry->d_un.d_ptr;
  }
  return needed;
}

bool is_libtorch(const std::string& library) {
  return library.starts_with("libtorch") || library.starts_with("libc10.so");
}

}  // namespace

std::vector<std::string> needed_libraries(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return names;
  File file(path);
  const auto header = file.read<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64)
    return names;
  std::vector<Elf64_Phdr> loads;
  std::optional<Elf64_Phdr> dynamic;
  for (std::size_t i = 0; i < std::min<std::size_t>(header->e_phnum, kMaxHeaders); ++i) {
    const auto part = file.read<Elf64_Phdr>(header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!part) break;
    if (part->p_type == PT_LOAD) loads.push_back(*part);
    if (part->p_type == PT_DYNAMIC) dynamic = *part;
  }
  if (!dynamic) return names;
  const Needed needed = read_dynamic(file, *dynamic);
  for (const Elf64_Phdr& load : loads) {
    if (needed.strings < load.p_vaddr || needed.strings - load.p_vaddr >= load.p_filesz) continue;
    const std::uint64_t start = load.p_offset + (needed.strings - load.p_vaddr);
    for (const std::uint64_t name : needed.names) names.push_back(file.text(start + name));
  }
  return names;
}

bool uses_libtorch(const std::vector<std::string>& arguments, std::span<const std::string> environment) {
  if (find_variable(environment, "TRAPLINE_LIBTORCH") == "1") return true;
  const std::string path = find_variable(environment, "PATH").value_or("/usr/bin:/bin");
  for (std::size_t i = 0; i < std::min(arguments.size(), kMaxWords); ++i) {
    const auto program = i == 0 ? find_program(arguments[i], path) : Result<std::string>(arguments[i]);
    if (program && std::ranges::any_of(needed_libraries(*program), is_libtorch)) return true;
  }
  return false;
}

std::string libtorch_folders(const fs::path& prefix, std::span<const std::string> environment) {
  std::string folders;
  std::error_code error;
  if (fs::exists(prefix / "CMakeCache.txt", error)) folders = (prefix / "adapters").string() + ":";
  // As python/trapline/_library/paths.py has it.
  fs::path cache = find_variable(environment, "XDG_CACHE_HOME").value_or("");
  if (!cache.is_absolute()) cache = fs::path(find_variable(environment, "HOME").value_or("/")) / ".cache";
  return folders + (cache / "trapline" / "adapters").string();
}

}  // namespace trapline
