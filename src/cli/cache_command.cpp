#include "cli/cache_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <ctime>

#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "doctor/cache.hpp"
#include "doctor/places.hpp"
#include "report/utf8.hpp"
#include "run/environment.hpp"

namespace trapline::cli {
namespace {

std::string count_text(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string age_text(std::time_t changed) {
  constexpr std::time_t kHour = 3600, kDay = 24 * kHour;
  const std::time_t age = std::max<std::time_t>(0, std::time(nullptr) - changed);
  if (age < kHour) return count_text(static_cast<std::size_t>(age / 60), "minute");
  return age < kDay ? count_text(static_cast<std::size_t>(age / kHour), "hour")
                    : count_text(static_cast<std::size_t>(age / kDay), "day");
}

Result<int> list() {
  std::string text;
  for (const doctor::CacheFolder& folder : doctor::cache_folders(current_environment())) {
    const std::string path = printable(folder.path.string());
    if (!folder.is_there) {
      text += fmt::format("{}: not there\n", path);
      continue;
    }
    if (!folder.refused.empty()) {
      text += fmt::format("{}: not read: {}\n", path, printable(folder.refused));
      continue;
    }
    text += fmt::format("{}: {} in {}{}\n", path, doctor::size_text(folder.bytes()),
                        count_text(folder.entries.size(), "file"),
                        folder.is_busy ? "; a guard is being built in it" : "");
    for (const doctor::CacheEntry& entry : folder.entries) {
      text += fmt::format("  {:>9}  {:>10}  {}\n", doctor::size_text(entry.bytes), age_text(entry.changed),
                          printable(entry.path.filename().string()));
    }
    if (folder.foreign > 0) text += fmt::format("  and {} that Trapline did not make\n", folder.foreign);
  }
  write_all(STDOUT_FILENO, text);
  return 0;
}

Result<int> remove_all() {
  std::size_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> problems;
  for (const doctor::CacheFolder& folder : doctor::cache_folders(current_environment())) {
    const doctor::Cleaned done = doctor::clean(folder);
    files += done.files;
    bytes += done.bytes;
    problems.insert(problems.end(), done.problems.begin(), done.problems.end());
  }
  for (const std::string& problem : problems) say(problem);
  write_all(STDOUT_FILENO,
            fmt::format("removed {}, {}\n", count_text(files, "file"), doctor::size_text(bytes)));
  return problems.empty() ? 0 : 1;
}

}  // namespace

Action declare_cache_list(FlagSet& flags, const std::vector<std::string>&) {
  flags.set_footer("`trapline cache clean` removes them; they are built again where they are wanted.");
  return list;
}
Action declare_cache_clean(FlagSet&, const std::vector<std::string>&) { return remove_all; }

}  // namespace trapline::cli
