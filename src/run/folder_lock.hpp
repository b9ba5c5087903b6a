// What tells a private folder that is in use from one that a killed Trapline left behind.
#pragma once

#include <filesystem>

namespace trapline {

// A lock on a file in the folder. The kernel lets go of it when its holder dies, however it dies: so it needs
// no pid, which another container would take for one of its own.
class FolderLock {
 public:
  FolderLock() = default;
  // Locks a private folder. Where that cannot be done the folder is never taken for abandoned.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_ = -1;
};

// Removes the private folders of this user in `parent` whose Trapline is gone. Looks at no more than 100,000
// entries; what cannot be looked at, is no folder, is another user's or has no lock file stays.
void remove_abandoned(const std::filesystem::path& parent);

}  // namespace trapline
