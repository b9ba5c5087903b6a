#include "log/reason/words.hpp"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "log/reason/memory.hpp"

namespace trapline {
namespace {

using enum Cause;

constexpr std::size_t kMaxPositions = 8;
constexpr std::size_t kMaxText = 200;  // of a message in a summary

std::string place(const Event& event) {
  std::string text = event.file;
  if (event.file_line > 0) text += fmt::format(":{}", event.file_line);
  return text;
}

std::string list(const std::vector<std::int64_t>& values) {
  std::string text;
  for (const std::int64_t value : values) text += fmt::format("{}{}", text.empty() ? "" : ", ", value);
  return text;
}

std::string_view message_of(const Event& event) {
  return event.message.empty() ? std::string_view(event.text) : std::string_view(event.message);
}

// Where each vendor's machines tell what happened.
struct Vendor {
  std::array<std::string_view, 8> words;
  std::string_view find_kernel, look_at_device;
};

constexpr Vendor kVendors[] = {
    {{"HIP", "hip", "ROCm", "rocm", "HSA_", "amdgpu", "rocdevice", "GPU node"},
     "HIP_LAUNCH_BLOCKING=1 (and AMD_SERIALIZE_KERNEL=3) makes the traceback end at the kernel",
     "look for amdgpu lines in `dmesg`, and run `rocm-smi`"},
    {{"UR_RESULT", "PI_ERROR", "level_zero", "XPU", "SYCL", "sycl", "i915", "UR backend"},
     "SYCL_UR_TRACE=1 names the call, and oneAPI's `onetrace` the kernel",
     "look for i915 or xe lines in `dmesg`, and run `xpu-smi discovery`"},
    {{"MPS", "Metal", "METAL", "MTL", "kIOGPU"},
     "Metal's API validation (MTL_DEBUG_LAYER=1) names the call",
     "run the operation on the CPU (device='cpu'); if that is right, it is Metal's"},
    {{"asahi "},
     "shrink the program until the fault stays away: the log does not name the kernel",
     "look for asahi lines in `dmesg` of that time: the fault's reason and address stand there"},
    {{},
     "run it under `compute-sanitizer --tool memcheck`, or with CUDA_LAUNCH_BLOCKING=1, to find the kernel",
     "look for Xid lines in `dmesg`, and run `nvidia-smi -q`"},
};

const Vendor& vendor_of(const Event& event) {
  const auto is_named = [&](std::string_view word) {
    return !word.empty() && event.text.find(word) != std::string::npos;
  };
  const auto* const last = std::end(kVendors) - 1;  // NVIDIA: whatever names no other
  return *std::find_if(std::begin(kVendors), last,
                       [&](const Vendor& vendor) { return std::ranges::any_of(vendor.words, is_named); });
}

void fix_of_cause(Cause cause, const Event& event, Finding& f) {
  auto& fix = f.fix;
  switch (cause) {
    case kLabelOutOfRange:
    case kNumClassesMismatch:
      fix.push_back(
          "print labels.min(), labels.max() and the number of outputs of the last layer: labels must be 0 to "
          "outputs - 1");
      fix.push_back(
          "give the last layer (and num_labels) as many outputs as there are classes, or map the labels to "
          "0..N-1; mark what is "
          "not to count with ignore_index (-100)");
      break;
    case kEmbeddingIndexOutOfRange:
      fix.push_back(
          "compare ids.max() with the table's rows; after tokens were added call "
          "model.resize_token_embeddings(len(tokenizer))");
      break;
    case kPositionIndexOutOfRange:
      fix.push_back(
          "compare the sequence length with max_position_embeddings; truncate (truncation=True, "
          "max_length=...) or split the input");
      break;
    case kIndexOutOfRange:
      fix.push_back("print the index's min and max next to the size of the dimension that it indexes");
      break;
    case kCompiledIndexAssert:
      if (event.bound > 0)
        fix.push_back(fmt::format(
            "look for the dimension of size {} (a vocabulary, a number of classes) and for ids that reach it",
            event.bound));
      fix.push_back("run once without torch.compile: the eager operation names itself");
      break;
    case kLossInputOutOfRange:
      fix.push_back(
          "print the input's min and max: where raw scores go in, put torch.sigmoid before BCELoss, or use "
          "BCEWithLogitsLoss without it; where it is NaN, which fails the same check, find what makes it so");
      break;
    case kInvalidProbability:
      fix.push_back(
          "check the logits with torch.isfinite(logits).all() before sampling; half precision that overflows "
          "is the usual reason: try bfloat16 or float32");
      break;
    case kNanToIndex:
      fix.push_back(
          "find the first NaN (torch.autograd.set_detect_anomaly(True)): an index made from it is garbage");
      break;
    case kCustomKernelAssert:
      if (!event.file.empty())
        fix.push_back(fmt::format(
            "{} is not PyTorch's: the condition at that line of its source is what its author demands of the "
            "arguments; print their shapes and values before the call",
            event.file));
      else
        fix.emplace_back(
            "the condition is what the kernel's author demands of the arguments, and `0` stands for a branch "
            "that "
            "must not be reached (a type or a GPU that the kernel was not built for): look for that line in "
            "its "
            "source");
      break;
    case kIllegalMemoryAccess:
      fix.emplace_back(vendor_of(event).find_kernel);
      break;
    case kOutOfMemory:
      if (const auto numbers = memory_numbers(message_of(event))) {
        std::ranges::move(memory_help(*numbers), std::back_inserter(fix));
        break;
      }
      fix.emplace_back(
          "lower the batch size or the sequence length (in training, gradient checkpointing also helps), and "
          "see "
          "with `nvidia-smi` whether another process holds the GPU");
      break;
    case kArchMismatch:
      fix.push_back(
          "install a build for this GPU's architecture and this driver, or update the driver: `nvidia-smi` "
          "names both");
      fix.emplace_back("`python -m torch.utils.collect_env` names what this PyTorch was built for");
      break;
    case kPeerFailure:
    case kHardwareOrDriver:
      if (event.wording != nullptr && event.wording->kind == WordingKind::kPeer) {
        fix.emplace_back(
            "look at the rank that is silent, or that failed first: the others only waited for it or lost "
            "it");
        fix.emplace_back("NCCL_DEBUG=INFO tells the network and the call that failed");
        break;
      }
      fix.emplace_back(vendor_of(event).look_at_device);
      break;
    case kInsufficientEvidence:
      if (event.wording != nullptr && event.wording->effect.by_launcher)
        fix.emplace_back(
            "look at the log of the process that is gone: its own last words name the cause; without "
            "any, host memory is the first suspect (`dmesg | grep -i oom`)");
      break;
    case kNotCuda:
      fix.push_back("this is a fault of the host program: the message and its frame are where to look");
      break;
    case kNonFiniteValue:
      fix.push_back(
          "print what goes into that call, and into the one before it, until it is finite: data first, "
          "then a division by 0, log(0), a learning rate that is too large");
      break;
    case kShapeMismatch:
      fix.push_back("print the shapes of what goes into that call: the line names those that do not fit");
      break;
    case kDeviceMismatch:
      fix.push_back(
          "print the .device of each tensor and of the model's parameters before that call, and move "
          "what is elsewhere: x = x.to(device), model.to(device)");
      break;
    case kDtypeMismatch:
      fix.push_back("print the .dtype of what goes into that call, and cast one of the two");
      break;
    case kIncompleteCheckpoint:
      fix.push_back("compare the file's size with its source, and its names with those of the model");
      break;
    case kPoisonedContext:
      fix.push_back(
          "look for the first error of the process, above this line or in its log: what follows it "
          "tells nothing");
      break;
  }
}

// The operation as the program calls it: cross_entropy ends in PyTorch's nll_loss kernels, and few programs
// call those themselves.
std::string who(const Finding& f) {
  if (f.op.empty()) return "a kernel";
  if (!f.op.starts_with("nll_loss")) return f.op;
  bool itself = false;
  for (const Frame& frame : f.stack) {
    if (frame.function.starts_with("cross_entropy") || frame.code.find("cross_entropy") != std::string::npos)
      return "cross_entropy";
    itself = itself || frame.code.find("nll_loss(") != std::string::npos;
  }
  return itself ? f.op : "cross_entropy";
}

// TensorFlow's ": E " is what its time stamp leaves.
std::string_view without_level(std::string_view text) {
  const bool is_level = text.size() > 4 && text.starts_with(": ") && text[3] == ' ' &&
                        std::string_view("IWEF").find(text[2]) != std::string_view::npos;
  return is_level ? text.substr(4) : text;
}

// The program's own words: an exception with its type, else the line.
std::string words_of(const Event& event) {
  const std::string text = event.message.empty()     ? event.text
                           : event.exception.empty() ? event.message
                                                     : event.exception + ": " + event.message;
  return std::string(without_level(text).substr(0, kMaxText));
}

// What can be said when it is not known which cause it was.
std::string unknown_subject(const Event& event, const Decision& d) {
  if (event.kind == EventKind::kWording && d.device_assert.value_or(false))
    return "a device-side assertion failed, but its own line is not in this log";
  return words_of(event);
}

std::string subject(const Event& event, const Decision& d, const Finding& f) {
  const std::string where = event.kind == EventKind::kAssert ? place(event) : std::string();
  const std::string at = where.empty() ? "" : fmt::format(" ({})", where);
  // A check of another library's names neither a kernel nor an operation of PyTorch's.
  const bool is_foreign = event.wording != nullptr && event.wording->effect.meaning == Meaning::kIndexRefused;
  switch (is_foreign ? kNotCuda : d.cause) {
    case kLabelOutOfRange:
      return fmt::format("a class label is outside the range of classes in {}{}", who(f), at);
    case kNumClassesMismatch:
      return fmt::format("the number of classes does not fit the labels in {}{}", who(f), at);
    case kEmbeddingIndexOutOfRange:
      return fmt::format("an id is outside the table that {} looks it up in{}", who(f), at);
    case kPositionIndexOutOfRange:
      return fmt::format("a position is beyond the position table in {}{}", who(f), at);
    case kIndexOutOfRange:
      return fmt::format("an index is outside the tensor in {}{}", who(f), at);
    case kLossInputOutOfRange:
      return fmt::format("the {} of {} is not in [0, 1]{}", f.argument.empty() ? "input" : f.argument, who(f),
                         at);
    case kInvalidProbability:
      return fmt::format("{} was given probabilities that are NaN, infinite, negative or all zero{}", who(f),
                         at);
    case kNanToIndex:
      return fmt::format("NaN or Inf was turned into an index in {}{}", who(f), at);
    case kCompiledIndexAssert:
      return fmt::format("an index in a compiled kernel is out of bounds{}",
                         event.bound > 0 ? fmt::format(" [0, {})", event.bound) : "");
    case kOutOfMemory:
      if (const auto numbers = memory_numbers(message_of(event)))
        return fmt::format("{}: {}", info(d.cause).title, memory_summary(*numbers));
      break;
    case kCustomKernelAssert:
      return fmt::format("an assertion of a custom kernel failed: {}{}",
                         event.condition.empty() ? event.text : event.condition, at);
    case kPoisonedContext:
      if (f.role == Role::kConsequence) return "the CUDA context was lost by then: " + words_of(event);
      return "the CUDA context was already lost to an earlier device-side assert, whose own line is not in "
             "this log";
    case kInsufficientEvidence:
      if (event.kind == EventKind::kAssert)
        return fmt::format("a device-side assertion failed{}: {}", at, event.condition);
      if (event.wording != nullptr && event.wording->effect.meaning != Meaning::kOwn) return words_of(event);
      if (event.kind == EventKind::kException) return words_of(event);
      if (event.wording != nullptr && event.wording->kind == WordingKind::kFollower)
        return "a CUDA library failed, as it does in a context that is already lost; nothing tells what came "
               "first";
      if (d.device_assert.value_or(true))
        return "a device-side assertion failed, but its own line is not in this log";
      return words_of(event);
    default:
      break;
  }
  std::string text = event.message.empty() ? event.text : event.message;
  if (event.kind == EventKind::kException && !event.exception.empty())
    text = event.message.empty() ? event.exception : event.exception + ": " + event.message;
  text = without_level(text);
  // Of what followed from the root the message is enough.
  if (f.role == Role::kConsequence && d.cause == kNotCuda) return text.substr(0, kMaxText);
  return fmt::format("{}: {}", info(d.cause).title, text.substr(0, kMaxText));
}

// TensorFlow's gathers: "indices[468,75] = -1 is not in [0, 400001)".
bool words_of_gather(const Event& event, const Decision& d, Finding& f) {
  static const RE2* const line =
      new RE2(R"re(\bindices\[([\d,]+)\] = (-?\d{1,18}) is not in \[0, (\d{1,18})\))re", RE2::Latin1);
  std::string places;
  std::int64_t value = 0, size = 0;
  if (!RE2::PartialMatch(event.text, *line, &places, &value, &size)) return false;
  f.summary = fmt::format("{}: indices[{}] is {}, outside [0, {})", d.op.empty() ? "gather" : d.op, places,
                          value, size);
  f.element = Element{{}, Scalar{value}, std::nullopt, std::nullopt, std::nullopt, std::nullopt};
  f.valid = Valid{fmt::format("[0, {})", size), Scalar{std::int64_t{0}}, Scalar{size - 1}, {}};
  if (value < 0)
    f.fix.emplace_back(
        "a negative number has no row: look for what gives it: a look-up that found nothing, a mark "
        "for what is missing, arithmetic");
  else if (d.cause == kPositionIndexOutOfRange)
    f.fix.push_back(
        fmt::format("cut or split what is longer than {}, or make the position table larger", size));
  else
    f.fix.push_back(
        fmt::format("it has {} rows, for 0 to {}: compare the highest index of the data with that: it "
                    "has to be made with one row more than the highest{}",
                    size, size - 1, value == size ? "; or they are counted from 1" : ""));
  return true;
}

// What the table of host messages says of a live exception, it says of its line in a log.
bool words_of_live(const Decision& d, Finding& f) {
  if (!d.live || d.live->cause != d.cause || d.live->summary.empty()) return false;
  f.summary = d.live->summary;
  f.fix = d.live->fix;
  f.element = d.live->element;
  f.valid = d.live->valid;
  f.tensor = d.live->tensor;
  f.layer = d.live->layer;
  if (f.argument.empty()) f.argument = d.live->argument;
  if (f.op.empty()) f.op = d.live->op;
  return true;
}

}  // namespace

std::vector<std::int64_t> positions_of(const Event& event, std::size_t most) {
  std::vector<std::int64_t> found;
  if (event.assert_row == nullptr) return found;
  std::set<std::int64_t> all;
  for (const auto& [block, thread] : event.places) {
    switch (event.assert_row->mapping) {
      case Mapping::kOnly:
        all.insert(0);
        break;
      case Mapping::kBlock:
        all.insert(block.x);
        break;
      case Mapping::kThread:
        all.insert(thread.x);
        break;
      case Mapping::kBlockOf1024:
        all.insert(std::int64_t{block.x} * 1024 + thread.x);
        break;
      default:
        return found;
    }
  }
  for (const std::int64_t position : all) {
    if (found.size() >= most) break;
    found.push_back(position);
  }
  return found;
}

void write_words(const Event& event, const Decision& decision, Finding& f) {
  std::string text = event.text;
  if (event.count > 1) text += fmt::format("  (and {} more such lines)", event.count - 1);
  f.evidence.push_back({event.source, event.number, std::move(text)});

  if (!words_of_live(decision, f) && !words_of_gather(event, decision, f)) {
    const bool is_guess =
        decision.certainty == Certainty::kUnknown && decision.cause != kInsufficientEvidence;
    f.summary = is_guess ? unknown_subject(event, decision) : subject(event, decision, f);
    const MeaningRow* const meaning =
        event.wording == nullptr ? nullptr : find_meaning(event.wording->effect.meaning);
    if (meaning != nullptr && meaning->cause == decision.cause && !meaning->help.front().empty()) {
      for (const std::string_view line : meaning->help) {
        if (!line.empty()) f.fix.emplace_back(line);
      }
    } else {
      fix_of_cause(decision.cause, event, f);
    }
    if (is_guess) {
      // One place to look at, and said to be no more than that.
      const std::string first = f.fix.empty() ? std::string() : ": " + f.fix.front();
      f.fix = {
          fmt::format("{} ({}) is the likeliest{}", info(decision.cause).code, info(decision.cause).title,
                      decision.because.empty() ? first : fmt::format(" ({}){}", decision.because, first))};
    }
  }
  if (f.fix.empty()) fix_of_cause(decision.cause, event, f);
  if (event.assert_row != nullptr && !event.assert_row->valid.empty() && event.kind == EventKind::kAssert) {
    Valid valid;
    valid.text = event.assert_row->valid;
    f.valid = valid;
  }
  if (event.kind == EventKind::kAssert) {
    Kernel kernel;
    kernel.name = event.kernel;
    kernel.file = event.file;
    kernel.line = event.file_line;
    kernel.places = static_cast<std::int64_t>(event.places.size());
    if (!event.places.empty()) {
      const auto& [block, thread] = *event.places.begin();
      kernel.block = {block.x, block.y, block.z};
      kernel.thread = {thread.x, thread.y, thread.z};
    }
    f.kernel = std::move(kernel);
    if (const auto positions = positions_of(event, kMaxPositions); !positions.empty()) {
      Element element;
      element.index = {positions.front()};
      f.element = element;
      f.evidence.push_back(
          {event.source, event.number, fmt::format("elements by block and thread: {}", list(positions))});
    } else if (event.assert_row != nullptr && !event.assert_row->mapping_text.empty() &&
               !event.places.empty()) {
      const auto& [block, thread] = *event.places.begin();
      f.evidence.push_back(
          {event.source, event.number,
           fmt::format("{} place{}, the first block [{},{},{}] thread [{},{},{}]; {}", event.places.size(),
                       event.places.size() == 1 ? "" : "s", block.x, block.y, block.z, thread.x, thread.y,
                       thread.z, event.assert_row->mapping_text)});
    }
  }
  // Rivals that are PyTorch's own: said, not assumed.
  if (event.kind == EventKind::kAssert && event.file == "IndexKernel.cu" && event.file_line == 142)
    f.fix.push_back(
        "line 142 is that of PyTorch 1.8 and 1.9: 1.8.1 for CUDA 11 computed wrong indices itself (randperm, "
        "then sort); if the "
        "indices are right on the CPU, upgrade");
  if (!decision.because.empty()) f.evidence.push_back({event.source, {}, decision.because});
}

namespace {

// The script that was started: the file of the outermost frame, where that is the program's own. Below runpy
// (python -m) it is a module, and below a launcher's frames nothing is known.
std::string_view script_of(const Finding& root) {
  if (root.stack.empty()) return {};
  const Frame& outermost = root.stack.front();
  const bool is_program =
      outermost.function == "<module>" && outermost.user.value_or(true) && outermost.cell == 0;
  return is_program && outermost.file.find("runpy") == std::string::npos ? std::string_view(outermost.file)
                                                                         : std::string_view();
}

// A program of another framework, as its lines and frames say.
bool is_foreign(const Finding& root) {
  static const RE2* const others = new RE2(
      R"re((?i)\b(?:tensorflow|keras|jax(?:lib)?|xla|caffe|mxnet|paddle|theano|darknet|xgboost|sycl|oneapi|level_zero|opencl|gromacs)\b|\.(?:jl|lua):)re",
      RE2::Latin1);
  std::string text = root.summary;
  for (const Evidence& evidence : root.evidence) text += "\n" + evidence.text;
  for (const Frame& frame : root.stack) text += "\n" + frame.file;
  return text.find("torch") == std::string::npos && RE2::PartialMatch(text, *others);
}

}  // namespace

void leave_out_guard(Finding& root) {
  if (!is_foreign(root)) return;
  std::erase_if(root.fix, [](const std::string& line) {
    return line.find("`trapline run") != std::string::npos || line.find("torch.") != std::string::npos;
  });
}

void add_rerun(const CommandFinder& commands, Finding& root) {
  // The guard knows no kernel but PyTorch's.
  if (is_foreign(root)) return;
  if (root.cause == kCustomKernelAssert || (root.element && root.element->value)) return;
  const bool is_open = root.certainty == Certainty::kUnknown || root.certainty == Certainty::kLikely;
  if (!root.device_assert.value_or(false) && !(is_open && root.cause == kInsufficientEvidence)) return;
  const std::string_view script = script_of(root);
  auto command = commands.command_of(script);
  // Of several ranks each was started by a launcher that the traceback does not show.
  if (!command && !(root.process && root.process->rank)) command = command_from_script(script);
  if (!command) {
    root.fix.emplace_back("run it again under `trapline run -- ...`: it stops at the bad value and names it");
    return;
  }
  root.fix.push_back(fmt::format("run it again: `{}`{}: it stops at the bad value and names it",
                                 guarded(*command),
                                 command->ends_with("...") ? ", with your own arguments" : ""));
}

}  // namespace trapline
