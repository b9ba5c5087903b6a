// Any bytes as a message to the socket beside a report folder, which any user of the machine may send: what
// does not have the form is nobody's; what has it is a file with a plain name, the same when it is sent
// again, and becomes a report as one of the folder does.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "folder.hpp"
#include "report/collected.hpp"
#include "report/report_socket.hpp"
#include "report_checks.hpp"

namespace {

using namespace trapline;
using fuzz::require;

constexpr std::string_view kToken = "abcdefghijklmnopqrstuvwx";

void check(std::string_view message) {
  const auto file = read_handed(message, kToken);
  if (!file) return;
  require(message.starts_with(kToken) && message.ends_with(file->text) && file->written >= 0);
  require(file->name.find_first_of(std::string_view("/\n\0", 3)) == std::string::npos);
  const std::string again =
      std::string(kToken) + " " + std::to_string(file->written) + " " + file->name + "\n" + file->text;
  const auto same = read_handed(again, kToken);
  require(same && same->name == file->name && same->text == file->text && same->written == file->written);
  require(!read_handed(again, kToken.substr(1)) && !read_handed(again, ""));
  if (!is_report_file(file->name)) return;
  Collected collected;
  read_handed_file(*file, collected);
  fuzz::check_report(collected);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string message(reinterpret_cast<const char*>(data), size);
  check(message);
  check(std::string(kToken) + message);
  return 0;
}
