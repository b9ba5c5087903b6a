// .jsonl and .ndjson: one JSON record per line; numbers and lists of numbers by dotted key.
#include <algorithm>
#include <cstring>

#include "inputs/damage.hpp"
#include "inputs/formats.hpp"
#include "inputs/json_records.hpp"
#include "inputs/json_text.hpp"
#include "inputs/mapped_file.hpp"

namespace trapline::inputs {
namespace {

// A line is copied, and the parser keeps an index of up to four times its size.
constexpr std::size_t kMaxLine = std::size_t{64} << 20U;
constexpr std::int64_t kRowsBetweenAsking = 4096;
constexpr std::size_t kBytesBetweenReleases = std::size_t{8} << 20U;

// Many data sets call lines of records .json: a whole object in the first line, another in the second.
bool are_lines(std::string_view text) {
  const std::size_t end = text.find('\n');
  if (!text.starts_with('{') || end == text.npos || end + 1 == text.size() || text[end + 1] != '{')
    return false;
  const std::size_t last = text.find_last_not_of(" \t\r", end - 1);
  return last != text.npos && last > 0 && text[last] == '}';
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == line.npos; }

class JsonlReader final : public Reader {
 public:
  std::string_view name() const override { return "jsonl"; }
  bool knows(const Source& source) const override {
    return source.path.ends_with(".jsonl") || source.path.ends_with(".ndjson") ||
           (source.path.ends_with(".json") && are_lines(as_text(source.bytes)));
  }

  bool is_table(const Source&) const override { return true; }
  Result<bool> read(const Source& source, Sink& sink) const override {
    std::string_view text = as_text(source.bytes);
    std::size_t next = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
    JsonText copy;
    ondemand::parser parser;
    JsonRecords records(sink);
    std::int64_t row = 0;
    std::size_t released = 0;  // the pages before were given back
    for (std::int64_t line = 1; next < text.size(); ++line) {
      const std::size_t start = next;
      const std::size_t newline = text.find('\n', start);
      const std::size_t end = newline == text.npos ? text.size() : newline;
      next = newline == text.npos ? text.size() : newline + 1;
      const std::string_view record = text.substr(start, end - start);
      if (record.size() > kMaxLine) return problem_of(records, source, start, line, "longer than 64 MiB");
      if (is_blank(record)) continue;
      ondemand::document document;
      if (const auto problem = parser.iterate(copy.of(record)).get(document); problem != simdjson::SUCCESS) {
        return problem_of(records, source, start, line, json_problem(problem));
      }
      const std::string problem = records.record(document, row, line);
      if (!problem.empty()) return problem_of(records, source, start + copy.offset(document), line, problem);
      ++row;
      if (next - released >= kBytesBetweenReleases) {
        release_pages(source.bytes.subspan(released, next - released));
        released = next;
      }
      if (row % kRowsBetweenAsking == 0 && (sink.stopped() || !records.wanted())) break;
    }
    records.finish();
    return !sink.stopped();
  }

 private:
  // What stands before the damage is handed over all the same.
  static Error problem_of(JsonRecords& records, const Source& source, std::size_t offset, std::int64_t line,
                          const std::string& why) {
    records.flush();
    return damaged(source.path, offset, "line " + std::to_string(line) + ": " + why,
                   "mend or remove the line");
  }
};

}  // namespace

const Reader& jsonl() {
  static const JsonlReader reader;
  return reader;
}

}  // namespace trapline::inputs
