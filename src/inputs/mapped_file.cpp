#include "inputs/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <system_error>

#include "inputs/mappings.hpp"
#include "inputs/stand_in.hpp"

namespace trapline::inputs {
namespace {

Error cannot_read(const std::string& path, const std::string& why, const std::string& fix) {
  return {"cannot read " + path, why, fix};
}

Error system_problem(const std::string& path, int number) {
  return cannot_read(path, std::generic_category().message(number),
                     number == ENOENT ? "check the path" : "check the file and its permissions");
}

thread_local std::optional<Error> t_changed;

// Whole pages only: what lies beside them on their first or last page may be needed yet.
void release_whole_pages(std::uintptr_t begin, std::uintptr_t end) {
  const std::uintptr_t page = page_size();
  begin = (begin + page - 1) / page * page;
  end = end / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  if (!t_changed) t_changed = changed();
  remove_mapping(*mapping_);
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

std::optional<Error> MappedFile::changed() const {
  if (bytes_.empty()) return std::nullopt;
  struct stat status {};
  bool same = true;
  if (!path_.empty() && ::stat(path_.c_str(), &status) == 0) {
    const State now{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                    status.st_mtim.tv_nsec};
    same = now == opened_ || now.device != opened_.device || now.inode != opened_.inode;
  }
  if (same && !mapping_->cut.load()) return std::nullopt;
  return cannot_read(path_, "it was changed while it was read, so nothing said of it counts",
                     "check it again when nobody writes to it");
}

std::optional<Error> take_changed_file() { return std::exchange(t_changed, std::nullopt); }

void release_pages(std::span<const std::byte> bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  for_each_mapping(begin, begin + bytes.size(), release_whole_pages);
}

void release_all_pages() {
  for_each_mapping(0, std::numeric_limits<std::uintptr_t>::max(), release_whole_pages);
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return system_problem(path, errno);
  MappedFile mapped;
  struct stat status {};
  int problem = ::fstat(file, &status) == 0 ? 0 : errno;
  const bool regular = problem == 0 && S_ISREG(status.st_mode);
  mapped.folder_ = problem == 0 && S_ISDIR(status.st_mode);
  if (regular && status.st_size > 0) {
    const auto size = static_cast<std::size_t>(status.st_size);
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (address == MAP_FAILED) {
      problem = errno;
    } else {
      ::madvise(address, size, MADV_SEQUENTIAL);
      mapped.bytes_ = {static_cast<const std::byte*>(address), size};
      mapped.mapping_ = add_mapping(mapped.bytes_);
      mapped.path_ = path;
      mapped.opened_ = {status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                        status.st_mtim.tv_nsec};
    }
  }
  ::close(file);
  if (problem != 0) return system_problem(path, problem);
  if (!regular && !mapped.folder_) {
    return cannot_read(path, "it is neither a file nor a folder", "write its contents to a file first");
  }
  if (std::optional<Error> other = stand_in(path, mapped.bytes_)) return *std::move(other);
  return mapped;
}

Result<MappedFile> MappedFile::of(int file, std::uint64_t size) {
  MappedFile mapped;
  if (size == 0) return mapped;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (address == MAP_FAILED) return system_problem("the unpacked file", errno);
  ::madvise(address, size, MADV_SEQUENTIAL);
  mapped.bytes_ = {static_cast<const std::byte*>(address), size};
  mapped.mapping_ = add_mapping(mapped.bytes_);
  return mapped;
}

}  // namespace trapline::inputs
