#include "log/reason/context.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "log/reason/topics.hpp"

namespace trapline {
namespace {

enum class Does : std::uint8_t { kLaunches, kReadsBack, kCannotFail };

struct Call {
  std::string_view text;
  Does does;
  std::string_view op, argument;
};

using enum Does;
constexpr Call kCalls[] = {
#define TRAPLINE_CALL(...) Call{__VA_ARGS__},
#include "log/reason/calls.def"
#undef TRAPLINE_CALL
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

const Call* find_call(std::string_view code, Does does) {
  const auto* const found = std::ranges::find_if(
      kCalls, [&](const Call& call) { return call.does == does && contains(code, call.text); });
  return found == std::end(kCalls) ? nullptr : found;
}

// x[rows], frame[v.long(), u.long()]: a tensor is used as an index. x[0], x[:, 1], d["k"], x[i], x[mask] = 0
// are not.
bool indexes_by_tensor(std::string_view code) {
  static const RE2* const assigned = new RE2(R"re(^[\w.]+\[[\w.]+\]\s*=\s*[-\d.]+\s*$)re");
  static const RE2* const integer = new RE2(R"re([\w)\]]\[[^\]]*\.long\(\))re");
  static const RE2* const call = new RE2(R"re([\w)]\[\w+\.\w+\()re");
  static const RE2* const name = new RE2(R"re([a-z_]\w+\[(?:[:,\s]|\.\.\.)*([A-Za-z_]\w{2,})[\],])re");
  const re2::StringPiece text(code.data(), code.size());
  if (RE2::PartialMatch(text, *assigned)) return false;
  if (RE2::PartialMatch(text, *integer) || RE2::PartialMatch(text, *call)) return true;
  re2::StringPiece index;
  if (!RE2::PartialMatch(text, *name, &index)) return false;
  const std::string_view word(index.data(), index.size());
  return word != "None" && !contains(word, "mask") && word != "step" && word != "key" && word != "name" &&
         word != "epoch";
}

std::string without_class_counts(std::string code) {
  static const RE2* const count = new RE2(R"re(\b\w*n(?:um)?_(?:class(?:es)?|cls)\b)re");
  RE2::GlobalReplace(&code, *count, "");
  return code;
}

}  // namespace

std::string op_of_frames(const Traceback& traceback) {
  constexpr std::array<std::string_view, 16> kFunctions = {"linear",
                                                           "nll_loss",
                                                           "nll_loss_nd",
                                                           "cross_entropy",
                                                           "binary_cross_entropy",
                                                           "binary_cross_entropy_with_logits",
                                                           "embedding",
                                                           "embedding_bag",
                                                           "conv1d",
                                                           "conv2d",
                                                           "conv3d",
                                                           "layer_norm",
                                                           "batch_norm",
                                                           "mse_loss",
                                                           "l1_loss",
                                                           "one_hot"};
  for (auto at = traceback.frames.rbegin(); at != traceback.frames.rend(); ++at) {
    const std::string_view code = at->frame.code;
    if (contains(code, "torch.mm(") || contains(code, "torch.matmul(") || contains(code, ".matmul(") ||
        contains(code, " @ "))
      return "matmul";
    if (contains(code, "F.linear(")) return "linear";
    for (const std::string_view function : kFunctions) {
      if (at->frame.function == function)
        return std::string(function == "nll_loss_nd" ? "nll_loss" : function);
    }
  }
  return {};
}

SurfaceStatement surface_of(const Traceback* traceback, std::string_view lone_code) {
  SurfaceStatement surface;
  const LogFrame* const deepest = traceback != nullptr ? traceback->deepest() : nullptr;
  const std::string_view code = deepest != nullptr ? std::string_view(deepest->frame.code) : lone_code;
  const std::string_view function =
      deepest != nullptr ? std::string_view(deepest->frame.function) : std::string_view();
  if (code.empty() && function.empty()) return surface;
  if (code.starts_with("raise ")) return surface;  // it only words what was found
  const std::string low = lower(code);
  surface.labels = speaks_of(code, Topic::kLabels);
  surface.only_classes = surface.labels && !speaks_of(without_class_counts(low), Topic::kLabels);
  const bool cannot_fail = find_call(code, kCannotFail) != nullptr;
  surface.reads_back = cannot_fail || find_call(code, kReadsBack) != nullptr || function == "backward";

  if (const Call* const call = find_call(code, kLaunches)) {
    surface.statement = Statement::kLaunches;
    surface.op = call->op;
    surface.argument = call->argument;
    surface.reads_back = false;
    return surface;
  }
  const bool reads = contains(code, ".item()") || contains(code, ".backward(") ||
                     contains(code, "run_backward") || function == "backward" ||
                     contains(code, "allow_unreachable") || contains(code, "float(");
  bool backward = false;
  if (traceback != nullptr) {
    backward = std::any_of(traceback->frames.begin(), traceback->frames.end(),
                           [](const LogFrame& f) { return contains(f.frame.code, ".backward("); });
  }
  if (backward || (reads && (contains(low, "loss") || contains(low, "cost") || has_word(low, "total") ||
                             has_word(low, "obj")))) {
    surface.statement = Statement::kReadsLoss;
    surface.reads_back = true;
    return surface;
  }
  if (cannot_fail || contains(function, "flash_attn") || contains(function, "synchronize")) {
    surface.statement = Statement::kCannotFail;
    return surface;
  }
  if (indexes_by_tensor(code)) {
    surface.statement = Statement::kLaunches;
    surface.op = surface.argument = "index";
    surface.reads_back = false;
    return surface;
  }
  if (contains(low, "embed") || contains(low, "tok_e") || contains(low, "wte(") || contains(low, "_emb(")) {
    surface.statement = Statement::kEmbeds;
  } else if (traceback != nullptr && traceback->deepest_user() != nullptr &&
             speaks_of(*traceback->deepest_user(), Topic::kLoss)) {
    surface.statement = Statement::kInLoss;
  } else if (has_word(low, "idx") || has_word(low, "index") || contains(low, "indices")) {
    surface.statement = Statement::kIndexes;
  }
  return surface;
}

}  // namespace trapline
