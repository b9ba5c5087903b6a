// Temporary files without a name: nobody else can open them, and they are gone with the process, however it
// ends.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace trapline::inputs {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

std::string temporary_folder();  // TMPDIR, else /tmp
// Closed in programs that this one starts; -1 and errno on failure.
int open_unnamed(const std::string& folder);
// How large it may become: half of the room that is left stays to others. Empty, with errno, on failure.
std::optional<std::uint64_t> room_for(int file);

}  // namespace trapline::inputs
