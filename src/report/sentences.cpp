#include "report/sentences.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace trapline {
namespace {

// How often each element that was looked at stands in the tensor; 1 where nothing was expanded.
std::int64_t expanded(const Element& element, const std::vector<std::int64_t>& shape) {
  const std::int64_t total = element.total.value_or(0);
  if (total < 1 || element.index.size() != shape.size()) return 1;
  std::int64_t all = 1;
  for (const std::int64_t size : shape) {
    if (size < 1 || __builtin_mul_overflow(all, size, &all)) return 1;
  }
  return all % total == 0 ? all / total : 1;
}

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

std::string set_text(const DataSet& data_set) {
  return data_set.length ? fmt::format("{} of {}", data_set.type, *data_set.length) : data_set.type;
}

// train_set[5]; where the program has no name for the data set, its class and length.
std::string entry_text(std::int64_t index, const std::optional<DataSet>& data_set,
                       const std::string& loader) {
  if (data_set && !data_set->name.empty()) return fmt::format("{}[{}]", data_set->name, index);
  if (!loader.empty()) return fmt::format("{}.dataset[{}]", loader, index);
  if (data_set && !data_set->type.empty())
    return fmt::format("sample {} of the {}", index, set_text(*data_set));
  return fmt::format("data set index {}", index);
}

std::string candidates_text(const Sample& sample, std::string_view before = "one of ") {
  std::string text = fmt::format("{}sample{} {}", before, sample.one_of.size() > 1 ? "s" : "",
                                 fmt::join(sample.one_of, ", "));
  const auto shown = static_cast<std::int64_t>(sample.one_of.size());
  if (sample.of && *sample.of > shown) text += fmt::format(" and {} more", *sample.of - shown);
  if (sample.dataset && !sample.dataset->name.empty()) {
    text += " of " + sample.dataset->name;
  } else if (!sample.loader.empty()) {
    text += fmt::format(" of {}.dataset", sample.loader);
  } else if (sample.dataset && !sample.dataset->type.empty()) {
    text += " of the " + set_text(*sample.dataset);
  }
  return text;
}

// The batch that was worked on, of which no sample is special: "batch 3 of val_loader (samples 12, 40, 7)".
std::string batch_in_hand_text(const Sample& sample) {
  std::string text = sample.batch ? fmt::format("batch {}", *sample.batch) : "a batch";
  if (!sample.loader.empty()) text += " of " + sample.loader;
  if (!sample.one_of.empty()) text += " (" + candidates_text(sample, "") + ")";
  return text + ", in hand at the error";
}

// How the sample was found, where it was not by equality. docs/facts.md lists the words.
std::string how_text(const Sample& sample) {
  std::string_view how;
  if (sample.by == "length") how = "the longest of its batch";
  if (sample.by == "nan") how = "NaN or Inf in the batch";
  if (sample.by == "rows") how = "the row of the batch with NaN or Inf";
  if (sample.by == "shape") how = "its shape alone differs from the others of its batch";
  if (sample.by == "row") how = "its row alone is bad";
  if (sample.by == "place") how = "computed of it, among others";
  if (sample.by == "function") how = "computed from the numbers of the batch";
  if (sample.by == "replaced") how = "the program put another number in place of the sample's";
  if (sample.by == "value") how = "the only one of its batch with this value";
  if (sample.by == "inside") how = "while the data set makes it";
  if (sample.by == "padding") how = "filled in by the collate function: the sample itself has no such value";
  if (sample.by == "collate") how = "put there by the collate function: the sample itself has no such value";
  if (sample.by == "drawn") how = "drawn anew each time that the data set makes it";
  if (sample.by == "alone") how = "its row alone is bad, in what was made of it";
  if (sample.by == "rounded") how = "its own number was rounded";
  if (sample.by == "loop") how = "what the loop is at";
  if (sample.by == "record") how = "the only record with this value";
  if (sample.by == "made") how = "its place in what the numbers were computed from";
  if (sample.by == "column") how = "as column 0 of the targets counts the images";
  if (how.empty()) return sample.likely ? "likely" : "";
  return sample.likely ? fmt::format("likely: {}", how) : std::string(how);
}

}  // namespace

std::string place_text(const Frame& frame, std::string_view directory) {
  if (frame.cell > 0) {  // its file has a name that no user has ever seen
    std::string text = fmt::format("Cell In[{}]", frame.cell);
    if (frame.line > 0) text += fmt::format(", line {}", frame.line);
    if (!frame.function.empty() && frame.function.front() != '<') text += " in " + frame.function;
    return text;
  }
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
  if (element.variable) text += "; it is " + to_text(*element.variable);
  return text;
}

std::string count_text(const Element& element, const std::vector<std::int64_t>& shape) {
  std::string text;
  const std::int64_t times = expanded(element, shape);
  if (element.bad && element.total) {
    text = *element.bad == *element.total && *element.bad > 1
               ? fmt::format("all {}", *element.total)
               : fmt::format("{} of {}", *element.bad, *element.total);
  } else if (element.bad) {
    text = std::to_string(*element.bad);
  }
  if (times > 1 && !text.empty()) text += fmt::format(", each {} times in the expanded tensor", times);
  // Of nothing but NaN there is no smallest and no largest.
  const bool has_range = element.min && element.max && !std::isnan(as_double(*element.min));
  if (has_range && element.total.value_or(2) > 1) {
    add(text, "; ", fmt::format("min {}, max {}", to_text(*element.min), to_text(*element.max)));
  }
  return text;
}

std::string valid_text(const Valid& valid) { return valid.text.empty() ? range_text(valid) : valid.text; }

std::string values_text(const Finding& finding) {
  constexpr std::size_t kMax = 8;
  if (finding.values.empty() || (finding.values.size() == 1 && finding.values.front().second <= 1)) return {};
  std::string text;
  for (std::size_t i = 0; i < std::min(kMax, finding.values.size()); ++i) {
    const auto& [value, count] = finding.values[i];
    add(text, ", ", to_text(value) + (count == 1 ? "" : fmt::format(" ({} times)", count)));
  }
  if (finding.values.size() > kMax) text += fmt::format(" and {} more", finding.values.size() - kMax);
  return text;
}

std::string classes_text(const Classes& classes) {
  std::string text = fmt::format("{} different labels, {} expected", classes.seen, classes.expected);
  if (!classes.missing.empty()) text += fmt::format("; never: {}", fmt::join(classes.missing, ", "));
  return text;
}

// "; its size is `n_items` (model.py:14), from `n_items=len(items)` (main.py:52)"
std::string made_text(const Layer& layer) {
  std::string text, before;
  for (const MadeAt& at : layer.made) {
    const char* lead = !text.empty() ? ", from" : at.whole ? "; made by" : "; its size is";
    const std::string place =
        at.file == before ? fmt::format("line {}", at.line)
                          : fmt::format("{}:{}", at.file.substr(at.file.find_last_of("/\\") + 1), at.line);
    text += fmt::format("{} `{}` ({})", lead, at.text, place);
    before = at.file;
  }
  return text;
}

std::string layer_text(const Layer& layer) {
  std::string text = layer_name(layer.name, '"');
  std::string type = layer.type;
  if (!layer.attribute.empty() && layer.value) {
    type += layer.arguments.empty() ? fmt::format("({}={})", layer.attribute, *layer.value)
                                    : fmt::format("({})", layer.arguments);
  }
  add(text, " ", type);
  if (layer.needed) add(text, ": ", fmt::format("needs {}", *layer.needed));
  return text + made_text(layer);
}

std::string sample_text(const Sample& sample) {
  std::string batch;
  if (sample.batch) add(batch, ", ", fmt::format("batch {}", *sample.batch));
  if (sample.row) add(batch, ", ", fmt::format("row {}", *sample.row));
  std::string text;
  if (sample.by == "hand") {
    batch = batch_in_hand_text(sample);
  } else if (sample.dataset_index) {
    text = entry_text(*sample.dataset_index, sample.dataset, sample.loader);
    if (sample.base_index && sample.base) add(text, " = ", entry_text(*sample.base_index, sample.base, ""));
  } else if (!sample.one_of.empty()) {
    text = candidates_text(sample);
  }
  if (!batch.empty()) text += text.empty() ? batch : " (" + batch + ")";
  add(text, ", ", sample.file);
  if (!sample.key.empty()) add(text, ", ", fmt::format("\"{}\"", sample.key));
  if (!sample.request.empty()) add(text, ", ", "request " + sample.request);
  add(text, ", ", how_text(sample));
  return text;
}

std::string_view progress_label(const Progress& progress) {
  if (progress.step) return "step";
  if (progress.epoch) return "epoch";
  return progress.phase.empty() ? "model" : "phase";
}

std::string progress_text(const Progress& progress) {
  std::string text;
  if (progress.step) text = fmt::format("{}", *progress.step);
  if (progress.epoch) add(text, ", ", (progress.step ? "epoch " : "") + to_text(*progress.epoch));
  add(text, ", ", progress.phase);
  std::string who = progress.trainer;
  add(who, ", ", progress.model);
  if (!who.empty()) text += text.empty() ? who : " (" + who + ")";
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

namespace {

// Values are shortened to those from which a course can be read: the first, the last four that are known.
std::string course_text(const Finding& finding, const char* name,
                        std::optional<Scalar> TrainingStep::*number) {
  constexpr std::size_t kLast = 4;
  std::vector<const TrainingStep*> known;
  for (const TrainingStep& step : finding.last_steps)
    if (step.*number) known.push_back(&step);
  if (known.size() < 2) return {};
  std::string text = fmt::format("{}: ", name);
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (i > 0 && i + kLast < known.size()) continue;
    if (i > 0) text += i > 1 && i + kLast == known.size() ? " -> ... -> " : " -> ";
    const Scalar& value = *(known[i]->*number);
    text += fmt::format("{:.3g}", as_double(value));
  }
  return text + fmt::format(" over steps {}-{}", known.front()->step, known.back()->step);
}

}  // namespace

std::vector<std::string> last_steps_texts(const Finding& finding) {
  std::vector<std::string> texts;
  for (std::string text : {course_text(finding, "loss", &TrainingStep::loss),
                           course_text(finding, "gradient norm", &TrainingStep::gradient_norm)}) {
    if (!text.empty()) texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace trapline
