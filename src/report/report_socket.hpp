// The way around the report folder: a process that cannot write there (another user's, as `sudo -u` starts
// it; in another root; on a full disk) hands its files to `trapline run` through an abstract socket, which
// asks for no permission and no path. The whole protocol is here: both ends of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trapline {

// A file as a process would have written it into the folder.
struct HandedFile {
  std::string name;
  std::string text;
  long long written = 0;  // ns of CLOCK_REALTIME
};

// What one message to a socket of this token holds, which any user of the machine may have sent; nothing: it
// is none of ours.
std::optional<HandedFile> read_handed(std::string_view message, std::string_view token);

struct Handed {
  std::vector<HandedFile> files;
  bool is_full = false;  // others have filled the socket, so who knows what did not get through
};

class ReportSocket {
 public:
  ReportSocket() = default;  // nothing can be handed to it
  // Where the kernel gives none, the same.
  static ReportSocket open();
  ~ReportSocket();
  ReportSocket(ReportSocket&& other) noexcept;
  ReportSocket& operator=(ReportSocket&& other) noexcept;
  ReportSocket(const ReportSocket&) = delete;
  ReportSocket& operator=(const ReportSocket&) = delete;

  // What the guarded processes have to know, as their variable kVariable; empty: there is none.
  const std::string& address() const { return address_; }
  static constexpr const char* kVariable = "TRAPLINE_REPORT_SOCKET";

  // Takes what has come until now. Nobody need wait for that: the kernel keeps the files of 1,024.
  Handed take() const;

 private:
  int socket_ = -1;
  std::string address_;
};

// The other end: at most some 200 KiB, for the files of the folder are small. Never waits, takes no memory
// and leaves nothing open. False: it was not handed over.
bool hand_over(std::string_view address, std::string_view name, std::string_view text) noexcept;

}  // namespace trapline
