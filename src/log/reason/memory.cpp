#include "log/reason/memory.hpp"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

namespace trapline {
namespace {

constexpr double kMuch = 0.5;   // of the GPU: who holds so much is whom to look at
constexpr double kSpare = 0.1;  // of the GPU: reserved, but in pieces that do not fit

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

double in_gib(double number, std::string_view unit) {
  switch (unit.front()) {
    case 'b':
      return number / (1024.0 * 1024 * 1024);
    case 'K':
      return number / (1024.0 * 1024);
    case 'M':
      return number / 1024;
    case 'T':
      return number * 1024;
    default:
      return number;
  }
}

// The size in the pattern's group; 0: the text has none.
double size_in(std::string_view text, const char* around) {
  const RE2 pattern(fmt::format(fmt::runtime(around), R"re((\d+(?:\.\d+)?) ?(bytes|KiB|MiB|GiB|TiB))re"));
  double number = 0;
  std::string unit;
  return RE2::PartialMatch(piece(text), pattern, &number, &unit) ? in_gib(number, unit) : 0;
}

std::string size(double gib) {
  return gib < 1 ? fmt::format("{:.0f} MiB", gib * 1024) : fmt::format("{:.1f} GiB", gib);
}

}  // namespace

std::optional<MemoryNumbers> memory_numbers(std::string_view message) {
  MemoryNumbers n;
  n.asked = size_in(message, "Tried to allocate {}");
  n.total = std::max(size_in(message, "total capacity of {}"), size_in(message, "{} total capacity"));
  if (n.asked <= 0 || n.total <= 0) return std::nullopt;
  n.free = std::max(size_in(message, "of which {} is free"), size_in(message, "{} free"));
  n.own = size_in(message, "this process has {}");
  n.allocated =
      std::max(size_in(message, "{} is allocated by PyTorch"), size_in(message, "{} already allocated"));
  const double kept = size_in(message, "{} is reserved by PyTorch but unallocated");
  n.reserved = kept > 0 ? n.allocated + kept
                        : std::max(size_in(message, "{} reserved in total by PyTorch"), n.allocated);
  static const RE2* const other =
      new RE2(R"re(Process (\d+) has (\d+(?:\.\d+)?) (bytes|KiB|MiB|GiB|TiB) memory in use)re");
  re2::StringPiece rest = piece(message);
  std::string pid, unit;
  double number = 0, largest = 0;
  while (RE2::FindAndConsume(&rest, *other, &pid, &number, &unit)) {
    const double held = in_gib(number, unit);
    n.others += held;
    if (held > largest) largest = held, n.other = pid;
  }
  return n;
}

std::string memory_summary(const MemoryNumbers& n) {
  std::string text = fmt::format("{} were asked of a GPU of {} of which {} were free", size(n.asked),
                                 size(n.total), size(n.free));
  const double own = std::max(n.own, n.reserved);
  if (own > 0) text += fmt::format("; this process held {}", size(own));
  if (!n.other.empty()) text += fmt::format(", other processes {}", size(n.others));
  return text;
}

std::vector<std::string> memory_help(const MemoryNumbers& n) {
  const double own = std::max(n.own, n.reserved);
  // Before 2.1 the message did not name the others: what is neither free nor this process's is theirs.
  const double others = n.others > 0 ? n.others : own > 0 ? n.total - n.free - own : 0;
  if (n.asked > n.total)
    return {
        fmt::format("one tensor of {} is larger than the whole GPU: look at its shape in the line above (a "
                    "product of two lengths, a batch that was not split)",
                    size(n.asked))};
  if (others >= kMuch * n.total)
    return {n.other.empty()
                ? fmt::format(
                      "other processes hold about {} of the GPU (`nvidia-smi` names them): end them, or use "
                      "another GPU (CUDA_VISIBLE_DEVICES)",
                      size(others))
                : fmt::format(
                      "process {} holds most of the GPU (`nvidia-smi`): end it if it is a leftover, or use "
                      "another GPU (CUDA_VISIBLE_DEVICES)",
                      n.other)};
  std::vector<std::string> help;
  const double spare = n.reserved - n.allocated;
  if (spare >= n.asked && spare >= kSpare * n.total)
    help.push_back(
        fmt::format("PyTorch keeps {} that no tensor uses, in pieces that are too small: set "
                    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                    size(spare)));
  help.emplace_back(
      "lower the batch size or the sequence length; in training, gradient checkpointing also helps");
  return help;
}

}  // namespace trapline
