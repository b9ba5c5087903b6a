#include "log/reason/context.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace trapline {
namespace {

struct Call {
  std::string_view text, op, argument;
};

// Calls that launch a kernel with an assertion of its own.
constexpr std::array kLaunching = {
    Call{"torch.embedding(", "embedding", "index"},
    Call{"F.embedding(", "embedding", "index"},
    Call{"embedding_bag(", "embedding_bag", "indices"},
    Call{"nll_loss2d(", "nll_loss2d", "target"},
    Call{"nll_loss_nd(", "nll_loss", "target"},
    Call{"nll_loss(", "nll_loss", "target"},
    Call{"cross_entropy_loss(", "cross_entropy", "target"},
    Call{"cross_entropy(", "cross_entropy", "target"},
    Call{"binary_cross_entropy(", "binary_cross_entropy", "input"},
    Call{"one_hot(", "one_hot", "index"},
    Call{"multinomial(", "multinomial", "probs"},
    Call{"scatter_add_(", "scatter_add", "index"},
    Call{".scatter_(", "scatter", "index"},
    Call{".scatter(", "scatter", "index"},
    Call{".gather(", "gather", "index"},
    Call{"torch.gather(", "gather", "index"},
    Call{"index_select(", "index_select", "index"},
    Call{"index_add_(", "index_add", "index"},
    Call{"index_copy_(", "index_copy", "index"},
    Call{"index_fill_(", "index_fill", "index"},
    Call{"take_along_dim(", "gather", "index"},
    Call{"torch.take(", "take", "index"},
};

constexpr std::array<std::string_view, 22> kReadBacks = {
    ".item()",      ".cpu()",   ".tolist()",   ".numpy()", ".synchronize(", "_cuda_synchronize",
    ".to(",         ".cuda(",   "nonzero(",    ".any()",   ".all()",        "torch.all(",
    "torch.any(",   "int(",     "float(",      "bool(",    "if ",           ".backward(",
    "run_backward", ".unique(", "empty_cache", "print("};

constexpr std::array<std::string_view, 20> kCannotFail = {
    "synchronize(", ".to(",         ".cuda(",       "all_reduce(",     "all_gather(",
    "allreduce(",   "broadcast(",   "barrier(",     "reduce_scatter(", "flash_attn",
    "torch.cat(",   "torch.stack(", "empty_cache(", "torch.tensor(",   "torch.zeros(",
    "torch.ones(",  "torch.empty(", "manual_seed(", ".record(",        "pin_memory("};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

template <class List>
bool contains_any(std::string_view text, const List& list) {
  return std::any_of(list.begin(), list.end(), [&](std::string_view part) { return contains(text, part); });
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
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

bool is_torch_frame(const LogFrame& frame) {
  return contains(frame.frame.file, "/torch/") || contains(frame.frame.file, "\\torch\\");
}

// The deepest frames that are not PyTorch's own plumbing.
std::vector<const LogFrame*> own_frames(const Traceback& traceback, std::size_t most) {
  std::vector<const LogFrame*> frames;
  for (auto at = traceback.frames.rbegin(); at != traceback.frames.rend() && frames.size() < most; ++at) {
    if (!is_torch_frame(*at)) frames.push_back(&*at);
  }
  return frames;
}

bool position_name(std::string_view text) {
  const std::string low = lower(text);
  for (const std::string_view part :
       {"position", "pos_emb", "pos_ids", "rotary", "wpe", "embed_pos", "posemb", "positional"}) {
    if (contains(low, part)) return true;
  }
  return has_word(low, "rope");
}

}  // namespace

bool has_word(std::string_view text, std::string_view word) {
  const auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !letter(text[at - 1])) && (end >= text.size() || !letter(text[end]))) return true;
  }
  return false;
}

bool speaks_of_labels(std::string_view text) {
  const std::string low = lower(text);
  for (const std::string_view part :
       {"label", "target", "one_hot", "onehot", "truth", "gt_mask", "n_classes", "num_classes", "n_cls"}) {
    if (contains(low, part)) return true;
  }
  for (const std::string_view word : {"lab", "gt", "tgt", "cls", "class"}) {
    if (has_word(low, word)) return true;
  }
  return false;
}

bool speaks_of_positions(const Traceback& traceback) {
  for (const LogFrame* frame : own_frames(traceback, 3)) {
    const std::string_view code = frame->frame.code;
    // A sum of several embeddings names them all and tells none.
    if (contains(code, " + ") && !contains(code, "[")) continue;
    if (position_name(code) || position_name(frame->frame.function)) return true;
  }
  return false;
}

bool speaks_of_embeddings(const Traceback& traceback) {
  for (const LogFrame* frame : own_frames(traceback, 3)) {
    const std::string low = lower(frame->frame.code) + " " + lower(frame->frame.function);
    if (contains(low, "emb") || contains(low, "wte") || contains(low, "lookup")) return true;
  }
  return std::any_of(traceback.frames.begin(), traceback.frames.end(), [](const LogFrame& f) {
    return f.frame.function == "embedding" || contains(f.frame.file, "embedding_ops") ||
           contains(f.frame.code, "embedding(");
  });
}

bool speaks_of_sampling(const Traceback& traceback) {
  for (const LogFrame& frame : traceback.frames) {
    const std::string low = lower(frame.frame.code) + " " + lower(frame.frame.function);
    if (contains(low, "generate") || contains(low, "sample") || contains(low, "multinomial") ||
        contains(low, "categorical"))
      return true;
  }
  return false;
}

bool in_segmentation_framework(const Traceback& traceback) {
  constexpr std::array<std::string_view, 9> kNames = {
      "nnunet", "dice", "segmentation", "semseg", "mmseg", "mask_former", "maskformer", "deeplab", "unet"};
  return std::any_of(traceback.frames.begin(), traceback.frames.end(),
                     [&](const LogFrame& f) { return contains_any(lower(f.frame.file), kNames); });
}

bool in_language_model(const Traceback& traceback) {
  constexpr std::array<std::string_view, 7> kNames = {"/transformers/", "megatron", "llama", "gpt",
                                                      "deepspeed",      "/trl/",    "/peft/"};
  return std::any_of(traceback.frames.begin(), traceback.frames.end(),
                     [&](const LogFrame& f) { return contains_any(lower(f.frame.file), kNames); });
}

bool assigns_boxes(const Traceback& traceback) {
  constexpr std::array<std::string_view, 4> kNames = {"bbox/samplers", "bbox/assigners", "_assigner",
                                                      "assigner."};
  return std::any_of(traceback.frames.begin(), traceback.frames.end(),
                     [&](const LogFrame& f) { return contains_any(lower(f.frame.file), kNames); });
}

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
  const std::string low = lower(code);
  surface.labels = speaks_of_labels(code);
  surface.reads_back =
      contains_any(code, kReadBacks) || contains_any(code, kCannotFail) || function == "backward";

  for (const Call& call : kLaunching) {
    if (!contains(code, call.text)) continue;
    surface.statement = Statement::kLaunches;
    surface.op = call.op;
    surface.argument = call.argument;
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
  if (contains_any(code, kCannotFail) || contains(function, "flash_attn") ||
      contains(function, "synchronize")) {
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
             (contains(lower(traceback->deepest_user()->frame.file), "loss") ||
              contains(lower(traceback->deepest_user()->frame.function), "loss"))) {
    surface.statement = Statement::kInLoss;
  } else if (has_word(low, "idx") || has_word(low, "index") || contains(low, "indices")) {
    surface.statement = Statement::kIndexes;
  }
  return surface;
}

}  // namespace trapline
