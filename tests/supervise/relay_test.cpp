#include "supervise/relay.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>

namespace trapline::supervise {
namespace {

class Lines : public LineSink {
 public:
  void line(const Line& line) override {
    const std::scoped_lock lock(mutex_);
    texts_.emplace_back(line.text);
  }
  void end_of_source(std::string_view, const SourceEnd&) override {}
  std::vector<std::string> texts() {
    const std::scoped_lock lock(mutex_);
    return texts_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

constexpr const char* kFault = "RuntimeError: CUDA error: device-side assert triggered";

// Binary noise without the fault, with the fault as a line in its middle.
std::string noise(std::size_t size, bool is_text) {
  std::mt19937 random(7);
  std::string out(size, ' ');
  for (char& c : out)
    c = is_text ? static_cast<char>("abc 123\n"[random() % 8]) : static_cast<char>(random() & 0xffU);
  out.insert(size / 2, std::string("\n") + kFault + "\n");
  return out;
}

void write_all(int fd, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t put = ::write(fd, text.data() + at, text.size() - at);
    ASSERT_GT(put, 0);
    at += static_cast<std::size_t>(put);
  }
}

// What arrives at a file that was opened so.
std::string pass(const std::string& text, int flags, Lines& lines) {
  std::string name = (std::filesystem::temp_directory_path() / "relay-XXXXXX").string();
  const int made = ::mkstemp(name.data());
  ::close(made);
  const int to = ::open(name.c_str(), O_WRONLY | flags);
  {
    auto relay = Relay::open(to, "stdout", lines);
    EXPECT_TRUE(relay);
    write_all(relay.value()->write_end(), text);
    relay.value()->finish(10);
    EXPECT_EQ(relay.value()->bytes(), text.size());
    EXPECT_FALSE(relay.value()->drops());
  }
  ::close(to);
  std::ifstream file(name, std::ios::binary);
  std::string out{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(name);
  return out;
}

bool has_fault(Lines& lines) {
  for (const std::string& text : lines.texts()) {
    if (text == kFault) return true;
  }
  return false;
}

TEST(Relay, ByteForByteIntoAFile) {
  const std::string text = noise(3'000'000, true);
  Lines lines;
  EXPECT_EQ(pass(text, 0, lines), text);
  EXPECT_TRUE(has_fault(lines));
}

TEST(Relay, ByteForByteIntoAFileThatIsAppendedTo) {
  const std::string text = noise(3'000'000, true);
  Lines lines;
  EXPECT_EQ(pass(text, O_APPEND, lines), text);
  EXPECT_TRUE(has_fault(lines));
}

TEST(Relay, BytesThatAreNoText) {
  const std::string text = noise(1'000'000, false);
  Lines lines;
  EXPECT_EQ(pass(text, 0, lines), text);
}

TEST(Relay, ALineWithoutItsEnd) {
  Lines lines;
  EXPECT_EQ(pass(kFault, 0, lines), kFault);
  EXPECT_TRUE(has_fault(lines));
}

TEST(Relay, AFullDiskDropsAndReads) {
  const int full = ::open("/dev/full", O_WRONLY);
  Lines lines;
  auto relay = Relay::open(full, "stdout", lines);
  ASSERT_TRUE(relay);
  write_all(relay.value()->write_end(), noise(500'000, true));
  relay.value()->finish(10);
  EXPECT_TRUE(relay.value()->drops());
  EXPECT_TRUE(has_fault(lines));
  ::close(full);
}

TEST(Relay, WithoutAReaderTheProgramIsTold) {
  ::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Lines lines;
  auto relay = Relay::open(ends[1], "stdout", lines);
  ASSERT_TRUE(relay);
  ::close(ends[0]);
  bool is_told = false;
  for (int i = 0; i < 1000 && !is_told; ++i) {
    is_told = ::write(relay.value()->write_end(), "x\n", 2) < 0 && errno == EPIPE;
    ::usleep(1000);
  }
  EXPECT_TRUE(is_told);
  relay.value()->finish(10);
  ::close(ends[1]);
}

}  // namespace
}  // namespace trapline::supervise
