// Any bytes as a file: the reader neither fails nor hands out anything but clean lines in order, and the
// prefilter leaves out no line that holds one of its literals. The first byte says in how large pieces the
// window gets the text.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "log/clean/text.hpp"
#include "log/read/reader.hpp"
#include "log/read/scan.hpp"
#include "log/read/window.hpp"

namespace {

using namespace trapline;

void require(bool holds) {
  if (!holds) std::abort();
}

// What LineSink promises the reasoner.
struct Checked : LineSink {
  void line(const Line& line) override {
    require(count_invalid_utf8(line.text) == 0);
    require(line.text.find_first_of(std::string_view("\n\r\0\x1b", 4)) == line.text.npos);
    require(line.number >= number && line.number >= 1);
    require(line.rank >= -1 && line.pid >= -1);
    number = line.number;
  }
  void end_of_source(std::string_view, const SourceEnd& end) override {
    require(!end.problem || !end.problem->line().empty());
    number = 0;
  }
  std::int64_t number = 0;
};

struct Raw : RawLineSink {
  void raw_line(std::string_view raw, std::int64_t number, bool) override {
    require(raw.size() <= Window::kLongLine);
    hits.clear();
    scan_block(raw, hits);
    const bool matters =
        std::any_of(hits.begin(), hits.end(), [](const Hit& hit) { return hit.kind != HitKind::kWeak; });
    if (matters) numbers.push_back(number);
  }
  std::vector<std::int64_t> numbers;
  std::vector<Hit> hits;
};

std::vector<std::int64_t> through_window(Window& window, Raw& raw, std::string_view text, std::size_t piece) {
  raw.numbers.clear();
  window.reset();
  while (!text.empty()) {
    std::size_t size = 0;
    char* room = window.room(size);
    size = std::min({size, text.size(), piece});
    std::memcpy(room, text.data(), size);
    window.filled(size);
    text.remove_prefix(size);
  }
  window.finish(false);
  return raw.numbers;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);

  // As a file: archives, encodings, prefixes, JSON.
  static Checked checked;
  static LogReader reader(checked);
  static const int file = ::memfd_create("fuzz", MFD_CLOEXEC);
  require(file >= 0 && ::ftruncate(file, 0) == 0);
  require(::pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  ::lseek(file, 0, SEEK_SET);
  checked.number = 0;
  reader.read_stream(file, "rank3.log");

  // The scan against its reference, which is slow.
  static std::vector<Hit> fast;
  static std::vector<Hit> slow;
  fast.clear(), slow.clear();
  const std::string_view block = text.substr(0, 256);
  require(scan_block(block, fast) == scan_block_reference(block, slow));
  require(fast.empty() == slow.empty());

  // With and without the prefilter, in pieces and at once.
  static Raw raw;
  static Window filtered(raw, true);
  static Window whole(raw, false);
  const std::size_t piece = std::size_t{1} + data[0];
  const std::vector<std::int64_t> all = through_window(whole, raw, text, Window::kBlock);
  require(through_window(filtered, raw, text, Window::kBlock) == all);
  require(through_window(filtered, raw, text, piece) == all);
  return 0;
}
