#include "report/sentences.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace trapline {
namespace {

// Adds a part to a list in words.
void add(std::string& text, std::string_view separator, const std::string& part) {
  if (part.empty()) return;
  if (!text.empty()) text += separator;
  text += part;
}

std::string range_text(const Valid& valid) {
  if (valid.min && valid.max) return to_text(*valid.min) + " to " + to_text(*valid.max);
  if (valid.min) return "at least " + to_text(*valid.min);
  if (valid.max) return "at most " + to_text(*valid.max);
  return {};
}

}  // namespace

std::string place_text(const Frame& frame, std::string_view directory) {
  std::string text = frame.file;
  const std::size_t below = directory.size();
  if (below > 1 && text.size() > below + 1 && text.starts_with(directory) && text[below] == '/') {
    text.erase(0, below + 1);
  }
  // A notebook's cell is named as IPython does.
  const bool is_cell = frame.file.starts_with("Cell In[") || frame.file.starts_with("Input In [");
  if (frame.line > 0) text += fmt::format("{}{}", is_cell ? ", line " : ":", frame.line);
  if (!frame.function.empty()) text += " in " + frame.function;
  return text;
}

std::string tensor_text(const TensorInfo& tensor) {
  std::string text = tensor.dtype;
  add(text, " ", fmt::format("[{}]", fmt::join(tensor.shape, ", ")));
  if (!tensor.device.empty()) text += " on " + tensor.device;
  return text;
}

std::string found_text(const Finding& finding) {
  // The argument's name alone says nothing.
  if (!finding.tensor && (!finding.element || (finding.element->index.empty() && !finding.element->value)))
    return {};
  std::string text = finding.argument;
  const Element none;
  const Element& element = finding.element ? *finding.element : none;
  if (!element.index.empty()) {
    text = fmt::format("{}[{}]", text.empty() ? "element " : text, fmt::join(element.index, ", "));
  }
  if (element.value) text += (text.empty() ? "" : " is ") + to_text(*element.value);
  if (finding.tensor) add(text, element.value ? ", in " : ": ", tensor_text(*finding.tensor));
  return text;
}

std::string count_text(const Element& element) {
  std::string text;
  if (element.bad && element.total) {
    text = *element.bad == *element.total && *element.bad > 1
               ? fmt::format("all {}", *element.total)
               : fmt::format("{} of {}", *element.bad, *element.total);
  } else if (element.bad) {
    text = std::to_string(*element.bad);
  }
  // Of nothing but NaN there is no smallest and no largest.
  const bool has_range = element.min && element.max && !std::isnan(as_double(*element.min));
  if (has_range && element.total.value_or(2) > 1) {
    add(text, "; ", fmt::format("min {}, max {}", to_text(*element.min), to_text(*element.max)));
  }
  return text;
}

std::string valid_text(const Valid& valid) { return valid.text.empty() ? range_text(valid) : valid.text; }

std::string values_text(const Finding& finding) {
  constexpr std::size_t kMost = 8;
  if (finding.values.empty() || (finding.values.size() == 1 && finding.values.front().second <= 1)) return {};
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, finding.values.size()); ++i) {
    const auto& [value, count] = finding.values[i];
    add(text, ", ", to_text(value) + (count == 1 ? "" : fmt::format(" ({} times)", count)));
  }
  if (finding.values.size() > kMost) text += fmt::format(" and {} more", finding.values.size() - kMost);
  return text;
}

std::string classes_text(const Classes& classes) {
  std::string text = fmt::format("{} different labels, {} expected", classes.seen, classes.expected);
  if (!classes.missing.empty()) text += fmt::format("; never: {}", fmt::join(classes.missing, ", "));
  return text;
}

std::string layer_text(const Layer& layer) {
  std::string text;
  if (!layer.name.empty()) text = '"' + layer.name + '"';
  std::string type = layer.type;
  if (!layer.attribute.empty() && layer.value) {
    type += layer.arguments.empty() ? fmt::format("({}={})", layer.attribute, *layer.value)
                                    : fmt::format("({})", layer.arguments);
  }
  add(text, " ", type);
  if (layer.needed) add(text, ": ", fmt::format("needs {}", *layer.needed));
  return text;
}

std::string sample_text(const Sample& sample) {
  std::string batch;
  if (sample.batch) add(batch, ", ", fmt::format("batch {}", *sample.batch));
  if (sample.row) add(batch, ", ", fmt::format("row {}", *sample.row));
  std::string text;
  if (sample.dataset_index) text = fmt::format("data set index {}", *sample.dataset_index);
  if (!batch.empty()) text += text.empty() ? batch : " (" + batch + ")";
  if (!sample.request.empty()) add(text, ", ", "request " + sample.request);
  return text;
}

std::string kernel_text(const Kernel& kernel) {
  std::string text;
  if (!kernel.block.empty()) add(text, ", ", fmt::format("block [{}]", fmt::join(kernel.block, ",")));
  if (!kernel.thread.empty()) add(text, ", ", fmt::format("thread [{}]", fmt::join(kernel.thread, ",")));
  if (!text.empty() && kernel.places > 1) text += fmt::format(" and {} more", kernel.places - 1);
  return text;
}

std::string process_text(const Process& process) {
  std::string text;
  if (process.rank) add(text, ", ", fmt::format("rank {}", *process.rank));
  add(text, ", ", process.device);
  if (process.pid) add(text, ", ", fmt::format("pid {}", *process.pid));
  if (!process.host.empty()) add(text, " ", "on " + process.host);
  return text;
}

std::string operation_text(const Operation& operation) {
  return fmt::format("{}({})", operation.op, fmt::join(operation.args, ", "));
}

}  // namespace trapline
