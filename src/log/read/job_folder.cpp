#include "log/read/job_folder.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "log/clean/line_maker.hpp"

namespace trapline {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{4} << 20U;

constexpr auto kSources = std::to_array<std::string_view>(
    {".py", ".pyi", ".cu", ".cuh", ".cpp", ".cc", ".c", ".h", ".hpp", ".hip", ".def"});

// What a guarded process leaves; report/collected.hpp reads them.
constexpr std::array<std::string_view, 5> kReports = {"finding-", "guard-", "ended-", "skip-", "lost-"};

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 7 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

Result<std::string> read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{path, std::strerror(errno), "check the permissions"};
  std::string text(kMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxBytes) return Error{path, "larger than any error file", "name the program's log"};
  return text;
}

// {"message": {"message": "...", "extraInfo": {"py_callstack": "...", "timestamp": "..."}}}, or the message
// as plain text, as launchers wrote it for processes that were killed.
std::string text_of(const nlohmann::json& file) {
  if (!file.is_object() || !file.contains("message")) return {};
  const auto& message = file["message"];
  if (message.is_string()) return message.get<std::string>();
  if (!message.is_object()) return {};
  const auto extra = message.find("extraInfo");
  if (extra != message.end() && extra->is_object()) {
    const auto stack = extra->find("py_callstack");
    if (stack != extra->end() && stack->is_string() && !stack->get_ref<const std::string&>().empty()) {
      return stack->get<std::string>();
    }
  }
  const auto words = message.find("message");
  return words != message.end() && words->is_string() ? words->get<std::string>() : std::string();
}

}  // namespace

JobFile kind_of_file(std::string_view path) {
  const std::string_view name = name_of(path);
  const auto is_begin = [&](std::string_view beginning) { return name.starts_with(beginning); };
  if (name.ends_with(".json") && std::ranges::any_of(kReports, is_begin)) return JobFile::kReport;
  // Samples that are to be left out: what they were found with stands in the findings beside them.
  if (name.ends_with(".jsonl") && (name.starts_with("samples-") || name.starts_with("trapline-quarantine")))
    return JobFile::kSource;
  if (name == "error.json") return JobFile::kErrorFile;
  const auto is_end = [&](std::string_view ending) { return name.ends_with(ending); };
  return std::ranges::any_of(kSources, is_end) ? JobFile::kSource : JobFile::kLog;
}

int rank_of_error_file(std::string_view path) {
  std::array<std::string_view, 3> parts;  // error.json, 3, attempt_0
  for (std::string_view& part : parts) {
    if (path.empty()) return -1;
    part = name_of(path);
    path.remove_suffix(std::min(part.size() + 1, path.size()));
  }
  if (!is_number(parts[1]) || !parts[2].starts_with("attempt_")) return -1;
  int rank = -1;
  std::from_chars(parts[1].data(), parts[1].data() + parts[1].size(), rank);
  return rank;
}

Result<bool> read_error_file(const std::string& path, LineSink& sink) {
  const auto content = read_all(path);
  if (!content) return content.error();
  // Invalid bytes make the parser refuse the file: then it is no error file, and may still be a log.
  const auto json = nlohmann::json::parse(*content, nullptr, /*allow_exceptions=*/false);
  const std::string text = text_of(json);
  if (text.empty()) return false;
  LineMaker lines(sink);
  Origin origin;
  origin.rank = rank_of_error_file(path);
  lines.begin(path, origin);
  SourceEnd end;
  end.bytes = content->size();
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t size = std::min(rest.find('\n'), rest.size());
    lines.raw_line(rest.substr(0, size), ++end.lines, false);
    rest.remove_prefix(std::min(size + 1, rest.size()));
  }
  sink.end_of_source(path, end);
  return true;
}

}  // namespace trapline
