#include "report/machines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "report/utf8.hpp"

namespace trapline {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxLine = 2000;  // bytes of a line for people

bool is_file(const Frame& frame) {
  return !frame.file.empty() && frame.file.front() != '<' && frame.cell == 0 &&
         !frame.file.starts_with("Cell In[") && !frame.file.starts_with("Input In [");
}

// FNV-1a: not against malice, only to tell findings apart.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) mix(static_cast<unsigned char>(c));
    mix(0x1FU);  // between two fields
  }
  std::string hex() const { return fmt::format("{:016x}", state_); }

 private:
  void mix(unsigned char byte) { state_ = (state_ ^ byte) * 0x100000001B3ULL; }
  std::uint64_t state_ = 0xCBF29CE484222325ULL;
};

std::string without_digits(std::string_view text) {
  std::string out;
  std::ranges::copy_if(text, std::back_inserter(out), [](char c) { return c < '0' || c > '9'; });
  return out;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string fingerprint_of(const Finding& finding, Command command, const Style& style) {
  Hash hash;
  hash.add(info(finding.cause).code);
  hash.add(finding.op);
  hash.add(finding.argument);
  // A log is another file in each run, and only its text counts.
  auto place = finding.origin ? finding.origin : place_of(finding, command);
  if (!place) place = finding.surfaced;
  if (place) {
    const auto spot = spot_of(*place, style);
    hash.add(spot ? std::string_view(spot->path) : std::string_view());
    hash.add(place->function);
    // The text of a line is the same when lines above it come and go.
    const std::string_view code = trimmed(place->code);
    const bool is_data = command == Command::kCheck && !finding.origin;
    if (!is_data) hash.add(code.empty() ? std::to_string(place->line) : code);
  }
  if (finding.kernel) hash.add(finding.kernel->name);
  if (finding.op.empty() || !place) hash.add(without_digits(finding.summary));
  return hash.hex();
}

}  // namespace

std::optional<Spot> spot_of(const Frame& frame, const Style& style) {
  if (!is_file(frame)) return std::nullopt;
  const std::string& root = style.repository.empty() ? style.directory : style.repository;
  Spot spot{frame.file, false, frame.line, frame.column, frame.end_column};
  if (spot.line <= 0 || spot.column <= 0) spot.column = spot.end_column = 0;
  if (spot.line < 0) spot.line = 0;
  fs::path path(frame.file);
  if (path.is_relative() && !style.directory.empty()) path = fs::path(style.directory) / path;
  path = path.lexically_normal();
  if (path.is_relative()) {
    spot.path = path.string();
    spot.inside = !spot.path.starts_with("..");
    return spot;
  }
  spot.path = path.string();
  const std::string below = root + (root.ends_with('/') ? "" : "/");
  if (root.size() > 1 && spot.path.size() > below.size() && spot.path.starts_with(below)) {
    spot.path.erase(0, below.size());
    spot.inside = true;
  }
  return spot;
}

std::optional<Frame> shown_at(const Finding& finding, Command command) {
  for (const auto& frame : {place_of(finding, command), finding.surfaced}) {
    if (frame && is_file(*frame)) return frame;
  }
  // Of a log the first line that tells it; the evidence of other commands is not in files.
  if (command != Command::kExplain) return std::nullopt;
  for (const Evidence& seen : finding.evidence) {
    Frame line{seen.source, seen.line.value_or(0), "", "", {}, 0, 0};
    if (line.line > 0 && is_file(line)) return line;
  }
  return std::nullopt;
}

std::string line_for_people(std::string_view text) {
  const std::string_view shown = cut_utf8(text, kMaxLine);
  return printable(shown) + (shown.size() < text.size() ? "..." : "");
}

std::vector<std::string> lines_for_people(const Finding& finding, const Reading& reading) {
  const std::string rank = rank_of(finding, reading);
  std::vector<std::string> lines = {
      line_for_people((rank.empty() ? "" : rank + ": ") + std::string(sentence_of(finding)))};
  for (const Detail& detail : details_of(finding, reading)) {
    lines.push_back(
        line_for_people((detail.label.empty() ? "" : std::string(detail.label) + ": ") + detail.text));
  }
  for (const std::string& fix : finding.fix) lines.push_back(line_for_people("help: " + fix));
  return lines;
}

std::vector<std::string> fingerprints_of(const Report& report, const Style& style) {
  std::vector<std::string> all;
  std::map<std::string, int> seen;
  for (const Finding& finding : report.findings) {
    std::string one = fingerprint_of(finding, report.command, style);
    if (const int count = ++seen[one]; count > 1) one += fmt::format(":{}", count);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace trapline
