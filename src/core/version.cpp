#include "core/version.hpp"

#include "core/commit.hpp"

namespace trapline {

std::string_view commit() { return kCommit; }

std::string_view commit_date() { return kCommitDate; }

std::string version_text() {
  return commit().empty() ? kVersion : std::string(kVersion) + " (" + std::string(commit()) + ")";
}

}  // namespace trapline
