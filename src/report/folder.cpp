#include "report/folder.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

#include "report/letters.hpp"
#include "report/report_socket.hpp"

namespace trapline {
namespace {

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  std::string host = name[0] == '\0' ? "localhost" : name;
  std::ranges::replace_if(
      host, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_' && c != '.'; }, '_');
  return host;
}

// A file that grows beyond RLIMIT_FSIZE would end the process by SIGXFSZ; with the signal blocked the write
// fails instead, and the signal, which is this thread's own, is taken back.
class WithoutSizeSignal {
 public:
  WithoutSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~WithoutSizeSignal() {
    const timespec at_once{};
    if (sigismember(&before_, SIGXFSZ) == 0) ::sigtimedwait(&signal_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSizeSignal(const WithoutSizeSignal&) = delete;
  WithoutSizeSignal& operator=(const WithoutSizeSignal&) = delete;

 private:
  sigset_t signal_{};
  sigset_t before_{};
};

// 0, or errno.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

std::string letters(std::uint64_t number, int count) {
  std::string out;
  for (int i = 0; i < count; ++i, number /= kNameLetters.size()) out += name_letter(number);
  return out;
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof number)) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    number = static_cast<std::uint64_t>(now.tv_nsec) ^ static_cast<std::uint64_t>(::syscall(SYS_gettid))
                                                           << 32U;
  }
  return number;
}

// Made anew in a forked child. Without a lock: a child may have inherited it held.
std::string process_tag() {
  static std::atomic<std::uint64_t> g_tag{0};  // the pid, and random bits
  const auto pid = static_cast<std::uint64_t>(static_cast<std::uint32_t>(::getpid())) << 32U;
  std::uint64_t tag = g_tag.load();
  while (tag >> 32U != pid >> 32U) {
    const std::uint64_t mine = pid | (random_number() & 0xFFFF'FFFFU);
    if (g_tag.compare_exchange_strong(tag, mine)) tag = mine;
  }
  return letters(tag, 4);
}

// 0, or errno.
int write_new(const std::string& path, std::string_view text, char** bytes) {
  // Others may be able to write to the folder, and have put a link in the way.
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor < 0) return errno;
  const int problem = write_all(descriptor, text);
  if (problem == 0 && bytes != nullptr) {
    void* const start = ::mmap(nullptr, text.size(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (start != MAP_FAILED) *bytes = static_cast<char*>(start);
  }
  // A file system on the network says only now that it is full.
  const int at_close = ::close(descriptor) == 0 ? 0 : errno;
  return problem != 0 ? problem : at_close;
}

// Read when the library is loaded: the program may empty its environment.
const auto g_socket = [] {
  std::array<char, 128> address{};
  const char* const given = std::getenv(ReportSocket::kVariable);
  if (given != nullptr && std::strlen(given) < address.size())
    std::memcpy(address.data(), given, std::strlen(given));
  return address;
}();

}  // namespace

std::string folder_file_name(std::string_view kind, int number) {
  std::string name =
      std::string(kind) + "-" + host_name() + "-" + std::to_string(::getpid()) + "." + process_tag();
  if (number >= 0) name += "-" + std::to_string(number);
  return name + ".json";
}

Result<std::string> write_into_folder(const std::string& folder, const std::string& name,
                                      std::string_view text, char** bytes) {
  const WithoutSizeSignal blocked;
  if (bytes != nullptr) *bytes = nullptr;
  std::string path = folder + "/" + name;
  // Nobody can tell its name before, and two threads may write the same file.
  std::string temporary;
  int problem = EEXIST;
  for (int attempt = 0; problem == EEXIST && attempt < 16; ++attempt) {
    temporary = path + ".tmp" + letters(random_number(), 12);
    problem = write_new(temporary, text, bytes);
  }
  if (problem == EEXIST) temporary.clear();  // not ours
  if (problem == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) problem = errno;
  if (problem == 0) return path;
  if (bytes != nullptr && *bytes != nullptr) ::munmap(std::exchange(*bytes, nullptr), text.size());
  if (!temporary.empty()) ::unlink(temporary.c_str());
  return Error{"cannot write the report into " + folder, std::generic_category().message(problem),
               "give a folder that this process can write to with --report DIR"};
}

Result<std::string> give_to_run(const std::string& folder, const std::string& name, std::string_view text,
                                char** bytes) {
  auto path = write_into_folder(folder, name, text, bytes);
  if (!path && hand_over(g_socket.data(), name, text)) return folder + "/" + name;
  return path;
}

}  // namespace trapline
