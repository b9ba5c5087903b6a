#include <array>
#include <cmath>
#include <cstdint>

#include "core/version.hpp"
#include "jsonio/scalar.hpp"
#include "report/details.hpp"
#include "report/json.hpp"
#include "report/names.hpp"
#include "report/utf8.hpp"

namespace trapline {
namespace {

using nlohmann::json;

void put(json& object, const char* key, const std::string& text) {
  if (!text.empty()) object[key] = valid_utf8(text);
}

template <class T>
void put(json& object, const char* key, const std::optional<T>& value) {
  if (!value) return;
  if constexpr (std::is_same_v<T, Scalar>) {
    object[key] = jsonio::to_json(*value);
  } else {
    object[key] = *value;
  }
}

json texts(const std::vector<std::string>& list) {
  json out = json::array();
  for (const std::string& text : list) out.push_back(valid_utf8(text));
  return out;
}

json to_object(const Frame& frame) {
  json out = {{"file", valid_utf8(frame.file)}, {"line", frame.line < 0 ? 0 : frame.line}};
  put(out, "function", frame.function);
  put(out, "code", frame.code);
  put(out, "user", frame.user);
  if (frame.column > 0) out["column"] = frame.column;
  if (frame.end_column > 0) out["end_column"] = frame.end_column;
  if (frame.cell > 0) out["cell"] = frame.cell;
  if (!frame.before.empty()) out["before"] = texts(frame.before);
  if (!frame.after.empty()) out["after"] = texts(frame.after);
  return out;
}

json to_object(const Histogram& histogram) {
  json out = {{"low", jsonio::to_json(Scalar(histogram.low))},
              {"high", jsonio::to_json(Scalar(histogram.high))},
              {"counts", histogram.counts}};
  if (histogram.below > 0) out["below"] = histogram.below;
  if (histogram.above > 0) out["above"] = histogram.above;
  if (histogram.also > 0) out["also"] = histogram.also;
  if (histogram.not_finite > 0) out["not_finite"] = histogram.not_finite;
  return out;
}

json to_object(const Element& element) {
  json out = json::object();
  out["index"] = element.index;
  put(out, "value", element.value);
  put(out, "bad", element.bad);
  put(out, "total", element.total);
  put(out, "min", element.min);
  put(out, "max", element.max);
  if (element.variable) {
    out["variable"] = {{"name", valid_utf8(element.variable->name)}, {"index", element.variable->index}};
  }
  if (!element.strip.empty()) out["strip"] = element.strip;
  if (element.histogram) out["histogram"] = to_object(*element.histogram);
  return out;
}

json to_object(const Valid& valid) {
  json out = json::object();
  put(out, "text", valid.text);
  put(out, "min", valid.min);
  put(out, "max", valid.max);
  json also = json::array();
  for (const double value : valid.also) {
    if (!std::isfinite(value)) continue;  // the schema wants numbers here
    if (value == std::trunc(value) && std::abs(value) <= static_cast<double>(jsonio::kExact)) {
      also.push_back(static_cast<std::int64_t>(value));
    } else {
      also.push_back(value);
    }
  }
  if (!also.empty()) out["also"] = std::move(also);
  return out;
}

json to_object(const TensorInfo& tensor) {
  json out = {{"shape", tensor.shape}};
  put(out, "dtype", tensor.dtype);
  put(out, "device", tensor.device);
  return out;
}

json to_object(const MadeAt& at) {
  json out = {{"text", at.text}, {"file", at.file}, {"line", at.line}};
  if (at.whole) out["whole"] = true;
  return out;
}

json to_object(const Layer& layer) {
  json out = json::object();
  put(out, "name", layer.name);
  put(out, "type", layer.type);
  put(out, "attribute", layer.attribute);
  put(out, "value", layer.value);
  put(out, "needed", layer.needed);
  put(out, "arguments", layer.arguments);
  for (const MadeAt& at : layer.made) out["made"].push_back(to_object(at));
  return out;
}

json to_object(const DataSet& data_set) {
  json out = json::object();
  put(out, "name", data_set.name);
  put(out, "type", data_set.type);
  put(out, "length", data_set.length);
  return out;
}

json to_object(const Sample& sample) {
  json out = json::object();
  put(out, "dataset_index", sample.dataset_index);
  put(out, "batch", sample.batch);
  put(out, "row", sample.row);
  put(out, "request", sample.request);
  put(out, "loader", sample.loader);
  if (sample.dataset) out["dataset"] = to_object(*sample.dataset);
  put(out, "base_index", sample.base_index);
  if (sample.base) out["base"] = to_object(*sample.base);
  put(out, "file", sample.file);
  put(out, "key", sample.key);
  if (!sample.one_of.empty()) out["one_of"] = sample.one_of;
  put(out, "of", sample.of);
  put(out, "by", sample.by);
  if (sample.likely) out["likely"] = true;
  return out;
}

json to_object(const Progress& progress) {
  json out = json::object();
  put(out, "step", progress.step);
  put(out, "epoch", progress.epoch);
  put(out, "phase", progress.phase);
  put(out, "model", progress.model);
  put(out, "trainer", progress.trainer);
  return out;
}

json to_object(const Process& process) {
  json out = json::object();
  put(out, "rank", process.rank);
  put(out, "host", process.host);
  put(out, "pid", process.pid);
  put(out, "device", process.device);
  put(out, "world_size", process.world_size);
  if (!process.ranks.empty()) out["ranks"] = process.ranks;
  return out;
}

json to_object(const Kernel& kernel) {
  json out = json::object();
  put(out, "name", kernel.name);
  put(out, "file", kernel.file);
  if (kernel.line > 0) out["line"] = kernel.line;
  if (!kernel.block.empty()) out["block"] = kernel.block;
  if (!kernel.thread.empty()) out["thread"] = kernel.thread;
  if (kernel.places > 0) out["places"] = kernel.places;
  return out;
}

json to_object(const Evidence& evidence) {
  json out = {{"source", valid_utf8(evidence.source)}};
  put(out, "line", evidence.line);
  put(out, "text", evidence.text);
  return out;
}

json to_object(const std::pair<Scalar, std::int64_t>& value) {
  return {{"value", jsonio::to_json(value.first)}, {"count", value.second}};
}

json to_object(const Classes& classes) {
  json out = {{"seen", classes.seen}, {"expected", classes.expected}};
  if (!classes.missing.empty()) out["missing"] = classes.missing;
  return out;
}

json to_object(const Operation& operation) {
  json out = {{"op", valid_utf8(operation.op)}, {"args", texts(operation.args)}};
  put(out, "where", operation.where);
  return out;
}

json to_object(const TrainingStep& step) {
  json out = {{"step", step.step}};
  put(out, "loss", step.loss);
  put(out, "gradient_norm", step.gradient_norm);
  return out;
}

template <class T>
void put_object(json& object, const char* key, const std::optional<T>& value) {
  if (value) object[key] = to_object(*value);
}

template <class T>
void put_list(json& object, const char* key, const std::vector<T>& list) {
  if (list.empty()) return;
  json& out = object[key] = json::array();
  for (const T& item : list) out.push_back(to_object(item));
}

}  // namespace

json to_json(const Finding& finding) {
  const CauseInfo& cause = info(finding.cause);
  json out = {{"code", info(headline_cause(finding)).code}, {"cause", cause.slug},
              {"certainty", name_of(finding.certainty)},    {"role", name_of(finding.role)},
              {"summary", valid_utf8(finding.summary)},     {"fix", texts(finding.fix)}};
  for (const Cause also : finding.also) out["also"].push_back(info(also).slug);
  put(out, "device_assert", finding.device_assert);
  put(out, "contained", finding.contained);
  put(out, "op", finding.op);
  put(out, "argument", finding.argument);
  put_object(out, "element", finding.element);
  put_object(out, "valid", finding.valid);
  put_object(out, "tensor", finding.tensor);
  put_object(out, "origin", finding.origin);
  put_list(out, "stack", finding.stack);
  put_object(out, "surfaced", finding.surfaced);
  put_object(out, "layer", finding.layer);
  put_object(out, "sample", finding.sample);
  put_object(out, "process", finding.process);
  put_object(out, "progress", finding.progress);
  put_object(out, "kernel", finding.kernel);
  put_list(out, "evidence", finding.evidence);
  put_list(out, "values", finding.values);
  put_object(out, "classes", finding.classes);
  put_list(out, "history", finding.history);
  put_list(out, "last_steps", finding.last_steps);
  return out;
}

json envelope(Command command, Verdict verdict, json findings, json notes) {
  return {{"trapline", {{"version", kVersion}, {"schema", kSchemaVersion}}},
          {"command", name_of(command)},
          {"verdict", name_of(verdict)},
          {"findings", std::move(findings)},
          {"notes", std::move(notes)}};
}

json to_json(const Report& report) {
  json findings = json::array();
  for (const Finding& finding : report.findings) findings.push_back(to_json(finding));
  return envelope(report.command, report.verdict, std::move(findings), texts(report.notes));
}

}  // namespace trapline
