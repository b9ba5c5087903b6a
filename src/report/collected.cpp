#include "report/collected.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "jsonio/access.hpp"
#include "report/json.hpp"
#include "report/utf8.hpp"

namespace trapline {
namespace {

namespace fs = std::filesystem;

struct File {
  std::string text;
  long long written = 0;
  uid_t owner = 0;
};

// Regular files only, and in a folder not through links: others may be able to write to it. An error's `why`
// is all that is used of it.
Result<File> read_file(const fs::path& path, std::size_t limit, int links = O_NOFOLLOW) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | links);
  if (descriptor < 0) return Error{"", errno == ELOOP ? "it is a link" : std::strerror(errno), ""};
  struct stat state {};
  File file;
  std::string why;
  if (::fstat(descriptor, &state) != 0) why = std::strerror(errno);
  if (why.empty() && !S_ISREG(state.st_mode)) why = "it is no regular file";
  std::array<char, 65536> buffer{};
  while (why.empty() && file.text.size() <= limit) {
    const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) why = std::strerror(errno);
    if (got <= 0) break;
    file.text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(descriptor);
  if (!why.empty()) return Error{"", why, ""};
  file.written = static_cast<long long>(state.st_mtim.tv_sec) * 1'000'000'000LL + state.st_mtim.tv_nsec;
  file.owner = state.st_uid;
  return file;
}

void add_note(std::vector<std::string>& notes, const std::string& note) {
  if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
}

void add_findings(const Report& report, long long written, const std::string& file, Collected& out) {
  for (const Finding& finding : report.findings) out.findings.push_back({finding, written, file});
  for (const std::string& note : report.notes) add_note(out.notes, note);
}

void read_finding(const File& file, const std::string& name, Collected& out) {
  const auto report = parse_report(file.text, ReadLimits{});
  if (!report) return add_note(out.omissions, name + " was skipped: " + report.error().why);
  add_findings(*report, file.written, name, out);
}

// "guard-HOST-PID.TAG.json" and the like: "HOST-PID".
std::string process_of(std::string_view name) {
  name.remove_prefix(name.find('-') + 1);
  name.remove_suffix(std::string_view(".json").size());
  return std::string(name.substr(0, name.find('.', name.rfind('-') + 1)));
}

void note_lost(const std::string& name, Collected& out) {
  add_note(out.omissions,
           "process " + process_of(name) + ": findings could not be written: its own output tells them");
}

void read_marker(const File& file, const std::string& name, Collected& out) {
  ++out.guarded_processes;
  const auto marker = nlohmann::json::parse(valid_utf8(file.text), nullptr, /*allow_exceptions=*/false);
  if (jsonio::integer(marker, "lost").value_or(0) > 0) note_lost(name, out);
  for (const std::string& note : jsonio::texts(marker, "notes")) add_note(out.notes, note);
  for (const std::string& guard : jsonio::texts(marker, "guard")) add_note(out.guards, guard);
}

void read_skips(const File& file, const std::string& name, Collected& out) {
  const auto counts = nlohmann::json::parse(valid_utf8(file.text), nullptr, /*allow_exceptions=*/false);
  const auto number = [&](const char* key) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, jsonio::integer(counts, key).value_or(0)));
  };
  const std::uint64_t steps = number("steps");
  const std::uint64_t skipped = number("skipped");
  if (skipped > steps) return add_note(out.omissions, name + " was skipped: it makes no sense");
  out.skip.steps += steps;
  out.skip.skipped += skipped;
  out.skip.samples += number("samples");
  if (std::string file_name = jsonio::text(counts, "quarantine"); !file_name.empty())
    out.skip.quarantine = std::move(file_name);
}

void read_end(const File& file, const std::string& file_name, Collected& out) {
  const auto json = nlohmann::json::parse(valid_utf8(file.text), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return;
  using jsonio::text;
  using jsonio::texts;
  const auto yes = [&](const char* name) { return jsonio::boolean(json, name).value_or(false); };
  ProcessEnd end{file.written,
                 yes("over"),
                 yes("went_on"),
                 texts(json, "unhandled"),
                 texts(json, "left_with"),
                 text(json, "elsewhere"),
                 text(json, "other"),
                 {},
                 jsonio::boolean(json, "checked"),
                 jsonio::integer(json, "lost").value_or(0) > 0};
  if (const nlohmann::json* raised = jsonio::object_member(json, "raised")) {
    for (const auto& [code, count] : raised->items()) {
      const auto times = jsonio::integer(count).value_or(-1);
      if (times >= 0) end.raised[code] = static_cast<std::uint64_t>(times);
    }
  }
  if (end.lost) note_lost(file_name, out);
  out.ends.push_back(std::move(end));
}

bool is_named(std::string_view name, std::string_view start) {
  return name.starts_with(start) && name.ends_with(".json");
}

void read_text_of(const File& file, const std::string& name, Collected& out) {
  if (name.starts_with("finding-")) return read_finding(file, name, out);
  if (name.starts_with("ended-")) return read_end(file, name, out);
  if (name.starts_with("lost-")) return note_lost(name, out);
  name.starts_with("guard-") ? read_marker(file, name, out) : read_skips(file, name, out);
}

}  // namespace

bool is_report_file(std::string_view name) {
  return is_named(name, "finding-") || is_named(name, "guard-") || is_named(name, "ended-") ||
         is_named(name, "skip-") || is_named(name, "lost-");
}

void read_report_file(const fs::path& path, Collected& out, std::optional<uid_t> owner) {
  const std::string name = path.filename().string();
  const auto file =
      read_file(path, name.starts_with("finding-") ? ReadLimits{}.bytes : std::size_t{1} << 16U);
  if (!file) return add_note(out.omissions, name + " could not be read: " + file.error().why);
  if (owner && file->owner != *owner && file->owner != 0)
    return add_note(out.omissions, name + " was left out: it belongs to another user, with the number " +
                                       std::to_string(file->owner));
  read_text_of(*file, name, out);
}

void read_handed_file(const HandedFile& handed, Collected& out) {
  read_text_of({handed.text, handed.written, 0}, handed.name, out);
}

bool add_report(const fs::path& path, Collected& out) {
  const ReadLimits limits;
  const auto file = read_file(path, limits.bytes, /*links=*/0);  // the user named it
  if (!file) return false;
  const auto report = parse_report(file->text, limits);
  if (!report) return false;
  add_findings(*report, file->written, "", out);
  return true;
}

}  // namespace trapline
