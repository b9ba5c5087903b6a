#include <cmath>
#include <cstdint>
#include <utility>

#include "core/version.hpp"
#include "jsonio/access.hpp"
#include "jsonio/scalar.hpp"
#include "report/json.hpp"
#include "report/names.hpp"
#include "report/utf8.hpp"

namespace trapline {
namespace {

using jsonio::member;
using nlohmann::json;

// Reads the fields of one object; the first thing that is wrong is kept with its path.
class Reader {
 public:
  explicit Reader(const ReadLimits& limits) : limits_(limits) {}

  const std::string& problem() const { return problem_; }
  void fail(const std::string& where, const std::string& what) {
    if (problem_.empty()) problem_ = where + " " + what;
  }

  const json* required(const json& object, const char* key) {
    const json* found = member(object, key);
    if (found == nullptr) fail(key, "is missing");
    return found;
  }

  std::string text_of(const json& value, const char* key) {
    if (!value.is_string()) {
      fail(key, "is not a string");
      return {};
    }
    return std::string(cut_utf8(value.get_ref<const std::string&>(), limits_.text));
  }
  void read(const json& object, const char* key, std::string& out) {
    if (const json* value = member(object, key)) out = text_of(*value, key);
  }
  void read(const json& object, const char* key, std::optional<bool>& out) {
    const json* value = member(object, key);
    if (value == nullptr) return;
    if (!value->is_boolean()) return fail(key, "is not true or false");
    out = value->get<bool>();
  }
  void read(const json& object, const char* key, std::optional<std::int64_t>& out) {
    const json* value = member(object, key);
    if (value == nullptr) return;
    out = jsonio::integer(*value);
    if (!out) fail(key, "is not an integer");
  }
  void read(const json& object, const char* key, std::int64_t& out) {
    std::optional<std::int64_t> value;
    read(object, key, value);
    out = value.value_or(out);
  }
  void read(const json& object, const char* key, std::optional<Scalar>& out) {
    const json* value = member(object, key);
    if (value == nullptr) return;
    out = jsonio::to_scalar(*value);
    if (!out) fail(key, "is neither a number nor its text");
  }

  // Calls each(item) for the items of a list, as far as the limit goes.
  template <class Each>
  void list(const json& object, const char* key, Each each) {
    const json* value = member(object, key);
    if (value == nullptr) return;
    if (!value->is_array()) return fail(key, "is not a list");
    std::size_t count = 0;
    for (const json& item : *value) {
      if (count++ == limits_.items) return;
      each(item);
    }
  }
  void read(const json& object, const char* key, std::vector<std::string>& out) {
    list(object, key, [&](const json& item) { out.push_back(text_of(item, key)); });
  }
  void read(const json& object, const char* key, std::vector<std::int64_t>& out) {
    list(object, key, [&](const json& item) {
      const auto value = jsonio::integer(item);
      if (!value) return fail(key, "holds something that is not an integer");
      out.push_back(*value);
    });
  }
  template <class T>
  void read_list(const json& object, const char* key, std::vector<T>& out) {
    list(object, key, [&](const json& item) {
      if (!item.is_object()) return fail(key, "holds something that is not an object");
      read_fields(item, out.emplace_back());
    });
  }
  template <class T>
  void read_object(const json& object, const char* key, std::optional<T>& out) {
    const json* value = member(object, key);
    if (value == nullptr) return;
    if (!value->is_object()) return fail(key, "is not an object");
    read_fields(*value, out.emplace());
  }
  template <class E>
  void read_word(const json& object, const char* key, E& out) {
    const json* value = required(object, key);
    if (value == nullptr) return;
    const auto found = find_name<E>(text_of(*value, key));
    if (!found) return fail(key, "has a value that this version does not know");
    out = *found;
  }

  void read_fields(const json& object, Finding& out);

 private:
  void read_fields(const json& object, Frame& out) {
    required(object, "file");
    required(object, "line");
    read(object, "file", out.file);
    read(object, "line", out.line);
    read(object, "function", out.function);
    read(object, "code", out.code);
    read(object, "user", out.user);
    read(object, "column", out.column);
    read(object, "end_column", out.end_column);
    read(object, "cell", out.cell);
    read(object, "before", out.before);
    read(object, "after", out.after);
  }
  void read_fields(const json& object, Variable& out) {
    read(object, "name", out.name);
    read(object, "index", out.index);
  }
  void read_fields(const json& object, Histogram& out) {
    std::optional<Scalar> low, high;
    read(object, "low", low);
    read(object, "high", high);
    out.low = low ? as_double(*low) : 0;
    out.high = high ? as_double(*high) : 0;
    read(object, "counts", out.counts);
    read(object, "below", out.below);
    read(object, "above", out.above);
    read(object, "also", out.also);
    read(object, "not_finite", out.not_finite);
  }
  void read_fields(const json& object, Element& out) {
    read(object, "index", out.index);
    read(object, "value", out.value);
    read(object, "bad", out.bad);
    read(object, "total", out.total);
    read(object, "min", out.min);
    read(object, "max", out.max);
    read_object(object, "variable", out.variable);
    read(object, "strip", out.strip);
    read_object(object, "histogram", out.histogram);
  }
  void read_fields(const json& object, Valid& out) {
    read(object, "text", out.text);
    read(object, "min", out.min);
    read(object, "max", out.max);
    list(object, "also", [&](const json& item) {
      if (!item.is_number()) return fail("also", "holds something that is not a number");
      out.also.push_back(item.get<double>());
    });
  }
  void read_fields(const json& object, TensorInfo& out) {
    read(object, "shape", out.shape);
    read(object, "dtype", out.dtype);
    read(object, "device", out.device);
  }
  void read_fields(const json& object, Layer& out) {
    read(object, "name", out.name);
    read(object, "type", out.type);
    read(object, "attribute", out.attribute);
    read(object, "value", out.value);
    read(object, "needed", out.needed);
    read(object, "arguments", out.arguments);
    read_list(object, "made", out.made);
  }
  void read_fields(const json& object, MadeAt& out) {
    read(object, "text", out.text);
    read(object, "file", out.file);
    read(object, "line", out.line);
    std::optional<bool> whole;
    read(object, "whole", whole);
    out.whole = whole.value_or(false);
  }
  void read_fields(const json& object, DataSet& out) {
    read(object, "name", out.name);
    read(object, "type", out.type);
    read(object, "length", out.length);
  }
  void read_fields(const json& object, Sample& out) {
    read(object, "dataset_index", out.dataset_index);
    read(object, "batch", out.batch);
    read(object, "row", out.row);
    read(object, "request", out.request);
    read(object, "loader", out.loader);
    read_object(object, "dataset", out.dataset);
    read(object, "base_index", out.base_index);
    read_object(object, "base", out.base);
    read(object, "file", out.file);
    read(object, "key", out.key);
    read(object, "one_of", out.one_of);
    read(object, "of", out.of);
    read(object, "by", out.by);
    std::optional<bool> likely;
    read(object, "likely", likely);
    out.likely = likely.value_or(false);
  }
  void read_fields(const json& object, Process& out) {
    read(object, "rank", out.rank);
    read(object, "host", out.host);
    read(object, "pid", out.pid);
    read(object, "device", out.device);
    read(object, "world_size", out.world_size);
    read(object, "ranks", out.ranks);
  }
  void read_fields(const json& object, Progress& out) {
    read(object, "step", out.step);
    read(object, "epoch", out.epoch);
    read(object, "phase", out.phase);
    read(object, "model", out.model);
    read(object, "trainer", out.trainer);
  }
  void read_fields(const json& object, Kernel& out) {
    read(object, "name", out.name);
    read(object, "file", out.file);
    read(object, "line", out.line);
    read(object, "block", out.block);
    read(object, "thread", out.thread);
    read(object, "places", out.places);
  }
  void read_fields(const json& object, Evidence& out) {
    required(object, "source");
    read(object, "source", out.source);
    read(object, "line", out.line);
    read(object, "text", out.text);
  }
  void read_fields(const json& object, std::pair<Scalar, std::int64_t>& out) {
    std::optional<Scalar> value;
    required(object, "value");
    read(object, "value", value);
    out.first = value.value_or(std::int64_t{0});
    read(object, "count", out.second);
  }
  void read_fields(const json& object, Classes& out) {
    read(object, "seen", out.seen);
    read(object, "expected", out.expected);
    read(object, "missing", out.missing);
  }
  void read_fields(const json& object, Operation& out) {
    required(object, "op");
    read(object, "op", out.op);
    read(object, "args", out.args);
    read(object, "where", out.where);
  }
  void read_fields(const json& object, TrainingStep& out) {
    required(object, "step");
    read(object, "step", out.step);
    read(object, "loss", out.loss);
    read(object, "gradient_norm", out.gradient_norm);
  }

  const ReadLimits& limits_;
  std::string problem_;
};

void Reader::read_fields(const json& object, Finding& out) {
  if (const json* slug = required(object, "cause")) {
    const auto cause = find_cause(text_of(*slug, "cause"));
    if (!cause) return fail("cause", "is one that this version does not know");
    out.cause = *cause;
  }
  list(object, "also", [&](const json& item) {
    if (const auto cause = find_cause(text_of(item, "also"))) out.also.push_back(*cause);
  });
  read_word(object, "certainty", out.certainty);
  read_word(object, "role", out.role);
  required(object, "summary");
  required(object, "fix");
  read(object, "device_assert", out.device_assert);
  read(object, "contained", out.contained);
  read(object, "summary", out.summary);
  read(object, "op", out.op);
  read(object, "argument", out.argument);
  read_object(object, "element", out.element);
  read_object(object, "valid", out.valid);
  read_object(object, "tensor", out.tensor);
  read_object(object, "origin", out.origin);
  read_list(object, "stack", out.stack);
  read_object(object, "surfaced", out.surfaced);
  read_object(object, "layer", out.layer);
  read_object(object, "sample", out.sample);
  read_object(object, "process", out.process);
  read_object(object, "progress", out.progress);
  read_object(object, "kernel", out.kernel);
  read_list(object, "evidence", out.evidence);
  read_list(object, "values", out.values);
  read_object(object, "classes", out.classes);
  read(object, "fix", out.fix);
  read_list(object, "history", out.history);
  read_list(object, "last_steps", out.last_steps);
}

Error damaged(std::string why) {
  return {"cannot read the report", std::move(why), "run the program again to get a whole one"};
}

// Nesting is bounded before the parser sees the text, because a tree that deep is also copied and destroyed.
bool too_deep(std::string_view text, std::size_t limit) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > limit) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

Result<Report> report_from_json(const json& root, const ReadLimits& limits) {
  if (!root.is_object()) return damaged("it is not a JSON object");
  Reader reader(limits);
  const json* header = reader.required(root, "trapline");
  if (header == nullptr || !header->is_object()) return damaged("it was not written by Trapline");
  std::int64_t schema = 0;
  std::string version;
  reader.required(*header, "schema");
  reader.read(*header, "schema", schema);
  reader.read(*header, "version", version);
  if (!reader.problem().empty()) return damaged(reader.problem());
  if (schema != kSchemaVersion) {
    return Error{"cannot read the report",
                 "Trapline " + printable(version) + " wrote it with schema " + std::to_string(schema) +
                     ", this is " + kVersion + " with schema " + std::to_string(kSchemaVersion),
                 "use one version of Trapline for all processes"};
  }
  Report report;
  reader.read_word(root, "command", report.command);
  reader.read_word(root, "verdict", report.verdict);
  reader.required(root, "findings");
  reader.read_list(root, "findings", report.findings);
  reader.read(root, "notes", report.notes);
  if (!reader.problem().empty()) return damaged(reader.problem());
  return report;
}

}  // namespace

Result<Finding> finding_from_json(const json& object, const ReadLimits& limits) try {
  if (!object.is_object()) return damaged("a finding is not a JSON object");
  Reader reader(limits);
  Finding finding;
  reader.read_fields(object, finding);
  if (!reader.problem().empty()) return damaged(reader.problem());
  return finding;
} catch (const std::exception& error) {  // memory is exhausted
  return damaged(error.what());
}

Result<Report> parse_report(std::string_view text, const ReadLimits& limits) try {
  if (text.size() > limits.bytes) {
    return damaged("it is larger than " + std::to_string(limits.bytes) + " bytes");
  }
  if (too_deep(text, limits.depth)) return damaged("it is nested too deeply");
  const json root = json::parse(valid_utf8(text), nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return damaged("it is truncated or not JSON");
  return report_from_json(root, limits);
} catch (const std::exception& error) {  // memory is exhausted
  return damaged(error.what());
}

}  // namespace trapline
