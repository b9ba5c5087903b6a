// Any bytes as the files of a report folder, which anybody may have written: whatever they hold, they are
// read, and become a report that can be shown, written and read again. What could not be used is never clean.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "folder.hpp"
#include "report/collected.hpp"
#include "report/ends.hpp"
#include "report/lines.hpp"
#include "report_checks.hpp"

namespace {

using namespace trapline;
using fuzz::require;

bool is_accepted(std::string_view name) {
  return name.size() < 100 && is_report_file(name) && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::Folder folder;
  fuzz::unpack({reinterpret_cast<const char*>(data), size}, folder, is_accepted);
  for (const bool failed : {false, true}) {
    Collected collected;
    for (const std::string& file : folder.files()) read_report_file(file, collected);
    for (const std::string& omission : collected.omissions) require(!omission.empty());
    const Settled settled = settle(collected, failed);
    require(lines_about(collected.findings, settled.caught, "/").size() <= 6);
    fuzz::check_report(collected);
  }
  folder.clear();
  return 0;
}
