#include "catalogue/asserts.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string>
#include <unordered_map>

#include "catalogue/fold.hpp"

namespace trapline {
namespace {

using enum Cause;
using enum Certainty;
using enum Reach;
using enum Mapping;

constexpr AssertRow kRows[] = {
#define TRAPLINE_ASSERT(...) AssertRow{__VA_ARGS__},
#include "catalogue/asserts_other.def"
#include "catalogue/asserts_torch.def"
#include "catalogue/asserts_xpu.def"
#undef TRAPLINE_ASSERT
};

// A condition that was cut is still taken when so many folded letters of it are left and all rows that begin
// so agree.
constexpr std::size_t kMinCut = 8;
// So many are enough without a file, and so many in a file that the table does not know.
constexpr std::size_t kMinAlone = 7, kMinElsewhere = 11;

struct Keys {
  std::string file, kernel, condition;
};

std::string stem_key(std::string_view file) {
  // .cu, .cuh, .hip and .h name one source under CUDA, HIP and SYCL.
  const std::size_t dot = file.find('.');
  return fold(file.substr(0, dot));
}

struct Index {
  std::vector<Keys> keys;
  std::unordered_map<std::string, std::vector<std::size_t>> by_condition, by_file, by_kernel;
  std::vector<std::pair<std::string, std::size_t>> sorted;  // conditions, for beginnings
};

const Index& index() {
  static const auto* const built = [] {
    auto* index = new Index;
    for (std::size_t i = 0; i < std::size(kRows); ++i) {
      const AssertRow& row = kRows[i];
      Keys keys{stem_key(row.file), row.kernel == "operator()" ? std::string() : fold(row.kernel),
                fold(row.condition)};
      if (!keys.condition.empty()) {
        index->by_condition[keys.condition].push_back(i);
        index->sorted.emplace_back(keys.condition, i);
      }
      if (!keys.file.empty()) index->by_file[keys.file].push_back(i);
      if (!keys.kernel.empty()) index->by_kernel[keys.kernel].push_back(i);
      index->keys.push_back(std::move(keys));
    }
    std::sort(index->sorted.begin(), index->sorted.end());
    return index;
  }();
  return *built;
}

bool has_line(std::string_view lines, std::int64_t line) {
  while (!lines.empty()) {
    const std::size_t bar = lines.find('|');
    if (lines.substr(0, bar) == std::to_string(line)) return true;
    if (bar == std::string_view::npos) return false;
    lines.remove_prefix(bar + 1);
  }
  return false;
}

// The last name in "void at::native::<unnamed>::sampleMultinomialOnce(long *, ...) [with ...]".
std::string_view plain_kernel(std::string_view kernel) {
  if (const std::size_t end = kernel.find_first_of("(["); end != std::string_view::npos && end != 0) {
    if (!kernel.starts_with("operator()")) kernel = kernel.substr(0, end);
  }
  if (const std::size_t angle = kernel.find('<'); angle != std::string_view::npos && angle != 0) {
    if (kernel.find("<unnamed>") == std::string_view::npos) kernel = kernel.substr(0, angle);
  }
  if (const std::size_t colon = kernel.rfind("::"); colon != std::string_view::npos)
    kernel = kernel.substr(colon + 2);
  if (const std::size_t blank = kernel.rfind(' '); blank != std::string_view::npos)
    kernel = kernel.substr(blank + 1);
  return kernel;
}

struct Wanted {
  std::string file, kernel;
  std::int64_t line;
};

int fit(std::size_t i, const Wanted& wanted) {
  const Keys& keys = index().keys[i];
  int points = 0;
  if (!wanted.file.empty() && keys.file == wanted.file) points += 16;
  if (wanted.line > 0 && has_line(kRows[i].lines, wanted.line)) points += 8;
  if (!wanted.kernel.empty() && keys.kernel == wanted.kernel) points += 4;
  if (kRows[i].reach == kUser) points += 2;
  if (kRows[i].reach == kRare) points += 1;
  return points;
}

// Releases move a line by a little: of rows that fit alike, the one with the nearest line.
std::int64_t distance(std::string_view lines, std::int64_t line) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  while (line > 0 && !lines.empty()) {
    const std::size_t bar = lines.find('|');
    std::int64_t listed = 0;
    std::from_chars(lines.data(), lines.data() + std::min(bar, lines.size()), listed);
    least = std::min(least, std::abs(listed - line));
    if (bar == std::string_view::npos) break;
    lines.remove_prefix(bar + 1);
  }
  return least;
}

const AssertRow* best(const std::vector<std::size_t>& candidates, const Wanted& wanted) {
  const AssertRow* chosen = nullptr;
  std::pair<int, std::int64_t> most{-1, 0};
  for (const std::size_t i : candidates) {
    const std::pair<int, std::int64_t> points{fit(i, wanted), -distance(kRows[i].lines, wanted.line)};
    if (points > most) {
      most = points;
      chosen = &kRows[i];
    }
  }
  return chosen;
}

// "false" and "end >= begin" say nothing without their file, and a known file has its own rows. A longer
// condition is also taken from a file that is not in the table: releases move kernels.
bool may_be(std::size_t i, const Wanted& wanted) {
  const Keys& keys = index().keys[i];
  if (keys.file.empty() || (!wanted.file.empty() && keys.file == wanted.file)) return true;
  if (wanted.file.empty()) return keys.condition.size() >= kMinAlone;
  return keys.condition.size() >= kMinElsewhere && !index().by_file.contains(wanted.file);
}

// All rows of one place must mean the same, else the place alone says nothing. Invariants that cannot fail in
// a user's hands do not count.
std::vector<std::size_t> agreeing(const std::vector<std::size_t>& candidates, const Wanted& wanted) {
  std::vector<std::size_t> left;
  bool line_known = false, kernel_known = false;
  for (const std::size_t i : candidates) {
    line_known = line_known || (wanted.line > 0 && has_line(kRows[i].lines, wanted.line));
    kernel_known = kernel_known || (!wanted.kernel.empty() && index().keys[i].kernel == wanted.kernel);
  }
  for (const std::size_t i : candidates) {
    if (kRows[i].reach == kInternal || kRows[i].cause == kInsufficientEvidence) continue;
    if (kernel_known && index().keys[i].kernel != wanted.kernel) continue;
    if (!kernel_known && line_known && !has_line(kRows[i].lines, wanted.line)) continue;
    left.push_back(i);
  }
  for (const std::size_t i : left) {
    if (kRows[i].cause != kRows[left.front()].cause) return {};
  }
  return left;
}

}  // namespace

std::span<const AssertRow> assert_rows() { return kRows; }

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.find_last_of("/\\");
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool is_known_assert_file(std::string_view base_name) {
  return !base_name.empty() && index().by_file.contains(stem_key(base_name));
}

AssertMatch find_assert(const AssertSite& site) {
  const Wanted wanted{stem_key(site.file), fold(plain_kernel(site.kernel)), site.line};
  const std::string condition = fold(site.condition);
  if (!condition.empty()) {
    if (const auto exact = index().by_condition.find(condition); exact != index().by_condition.end()) {
      std::vector<std::size_t> fitting;
      for (const std::size_t i : exact->second) {
        if (may_be(i, wanted)) fitting.push_back(i);
      }
      if (!fitting.empty()) return {best(fitting, wanted), true};
    }
    // Inductor: the bound is part of the condition. Messages: text may follow.
    std::vector<std::size_t> candidates;
    for (std::size_t i = 0; i < std::size(kRows); ++i) {
      const std::string& key = index().keys[i].condition;
      if (key.size() >= kMinCut && condition.starts_with(key) && may_be(i, wanted)) candidates.push_back(i);
    }
    if (candidates.empty() && condition.size() >= kMinCut) {
      auto at = std::lower_bound(index().sorted.begin(), index().sorted.end(),
                                 std::make_pair(condition, std::size_t{0}));
      for (; at != index().sorted.end() && at->first.starts_with(condition); ++at)
        if (may_be(at->second, wanted)) candidates.push_back(at->second);
    }
    if (!candidates.empty()) {
      const auto left = agreeing(candidates, wanted);
      if (!left.empty()) return {best(left, wanted), true};
    }
  }
  if (const auto kernel = index().by_kernel.find(wanted.kernel); kernel != index().by_kernel.end()) {
    const auto left = agreeing(kernel->second, wanted);
    if (!left.empty()) return {best(left, wanted), false};
    if (!kernel->second.empty() && wanted.kernel.find("assertasync") != std::string::npos)
      return {best(kernel->second, wanted), false};
  }
  if (const auto file = index().by_file.find(wanted.file);
      file != index().by_file.end() && !wanted.file.empty()) {
    const auto left = agreeing(file->second, wanted);
    if (!left.empty()) return {best(left, wanted), false};
  }
  return {};
}

}  // namespace trapline
