// What a server's processes were working on when they ended, and which requests are refused from now on.
// python/trapline/_supervise writes and reads the same files; docs/requests.md has their form.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trapline::supervise {

struct RequestInFlight {
  std::string fingerprint;  // hexadecimal digits
  double since = 0;         // unix time
  std::string id;           // as the request was called; printable
  pid_t pid = 0;            // of the process that worked on it
};

// What `inflight-PID` files in `folder` hold, oldest first; at most 4096. Files that make no sense hold
// nothing.
std::vector<RequestInFlight> requests_in_flight(const std::filesystem::path& folder);

// Removes these files: the processes that wrote them are gone.
void forget_requests_in_flight(const std::filesystem::path& folder, const std::vector<pid_t>& alive);

// Adds a line to `refused.jsonl`. False when it could not be written.
bool refuse(const std::filesystem::path& folder, const RequestInFlight& request, std::string_view code,
            std::string_view summary);

// How many lines it has.
std::size_t count_refused(const std::filesystem::path& folder);

}  // namespace trapline::supervise
