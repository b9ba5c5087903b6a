// .jsonl and .ndjson: one JSON record per line; numbers and lists of numbers by dotted key.
#include "inputs/damage.hpp"
#include "inputs/formats.hpp"
#include "inputs/json_lines.hpp"

namespace trapline::inputs {
namespace {

// Many data sets call lines of records .json: a whole object in the first line, another in the second.
bool are_lines(std::string_view text) {
  const std::size_t end = text.find('\n');
  if (!text.starts_with('{') || end == text.npos || end + 1 == text.size() || text[end + 1] != '{')
    return false;
  const std::size_t last = text.find_last_not_of(" \t\r", end - 1);
  return last != text.npos && last > 0 && text[last] == '}';
}

class JsonlReader final : public Reader {
 public:
  std::string_view name() const override { return "jsonl"; }
  bool knows(const Source& source) const override {
    return source.path.ends_with(".jsonl") || source.path.ends_with(".ndjson") ||
           (source.path.ends_with(".json") && are_lines(as_text(source.bytes)));
  }

  bool is_table(const Source&) const override { return true; }
  Result<bool> read(const Source& source, Sink& sink) const override { return read_json_lines(source, sink); }
};

}  // namespace

const Reader& jsonl() {
  static const JsonlReader reader;
  return reader;
}

}  // namespace trapline::inputs
