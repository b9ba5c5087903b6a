// What must hold for any log: less evidence makes no verdict surer. A log is cut behind each of its lines,
// each of its lines is taken out, and each gets the prefix of a time stamp, a rank or a pod; then the first
// finding may not be surer than before, nothing else may be determined, and a fault may only vanish together
// with all lines that spoke for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "catalogue/asserts.hpp"
#include "catalogue/wordings.hpp"
#include "core/cause.hpp"
#include "diagnose/host/errors.hpp"
#include "explain_bytes.hpp"

namespace trapline {
namespace {

namespace fs = std::filesystem;

struct Log {
  std::string name;
  std::string text;
};

// What is left of a log: its text, and which of its lines are gone (1-based).
struct Rest {
  std::string how;
  std::string text;
  std::set<std::int64_t> gone;
  bool echo_gone = false;  // with "device-side assert triggered" in one of them
};

bool all_of_them() { return std::getenv("TRAPLINE_LONG") != nullptr; }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines, std::size_t from, std::size_t to,
                   std::size_t without = std::string::npos, std::string_view prefix = {}) {
  std::string text;
  for (std::size_t i = from; i < to; ++i) {
    if (i != without) text += std::string(prefix) + lines[i] + '\n';
  }
  return text;
}

// At most `most` of the places between 0 and `count`, evenly.
std::vector<std::size_t> some(std::size_t count, std::size_t most) {
  std::vector<std::size_t> places;
  const std::size_t step = std::max<std::size_t>(1, (count + most - 1) / most);
  for (std::size_t i = 0; i < count; i += step) places.push_back(i);
  return places;
}

std::vector<Rest> rests_of(const Log& log) {
  const std::vector<std::string> lines = lines_of(log.text);
  std::vector<Rest> rests;
  const std::size_t most = all_of_them() ? 400 : 40;
  for (const std::size_t i : some(lines.size(), most)) {
    Rest cut{"cut behind line " + std::to_string(i), joined(lines, 0, i), {}, false};
    for (std::size_t k = i; k < lines.size(); ++k) cut.gone.insert(static_cast<std::int64_t>(k) + 1);
    rests.push_back(std::move(cut));
    rests.push_back({"without line " + std::to_string(i + 1) + ", `" + lines[i].substr(0, 160) + "`",
                     joined(lines, 0, lines.size(), i),
                     {static_cast<std::int64_t>(i) + 1},
                     false});
  }
  for (Rest& rest : rests) {
    rest.echo_gone = std::ranges::any_of(rest.gone, [&](std::int64_t number) {
      return lines[static_cast<std::size_t>(number) - 1].find("device-side assert") != std::string::npos;
    });
  }
  for (const std::string_view prefix :
       {"2024-11-21T03:36:55.186800470Z ", "[rank0]: ", "[pod/trainer-0/main] "}) {
    rests.push_back({"with the prefix " + std::string(prefix),
                     joined(lines, 0, lines.size(), std::string::npos, prefix),
                     {},
                     false});
  }
  return rests;
}

std::string words(const Finding& f) {
  return std::string(info(f.cause).slug) + " " + std::to_string(static_cast<int>(f.certainty));
}

// Whether a line that `finding` names is still whole: it is there, and so is the line before it, which it may
// have been wrapped from.
bool is_left(const Finding& finding, const Rest& rest) {
  return std::ranges::any_of(finding.evidence, [&](const Evidence& evidence) {
    return evidence.line && !rest.gone.contains(*evidence.line) && !rest.gone.contains(*evidence.line - 1);
  });
}

// What is wrong with the verdict on what is left; empty: nothing.
std::string wrong(const Report& whole, const Report& left, const Rest& rest) {
  if (whole.findings.empty()) return {};  // a clean log may be one because its lines excuse each other
  const Finding& root = whole.findings.front();
  const bool any_left =
      std::ranges::any_of(whole.findings, [&](const Finding& finding) { return is_left(finding, rest); });
  if (left.findings.empty()) return any_left ? words(root) + " -> clean" : std::string();
  const Finding& now = left.findings.front();
  // The echo of a device assertion says that its own line is missing. Without it what else is there decides.
  const bool lost_echo = root.certainty == Certainty::kUnknown && rest.echo_gone;
  if (now.certainty < root.certainty && !lost_echo) return words(root) + " -> surer: " + words(now);
  // Of two faults the second one is told when what told the first one is gone.
  const bool was_told =
      std::ranges::any_of(whole.findings, [&](const Finding& finding) { return finding.cause == now.cause; });
  // A hint tells which table an index was for: without it the index stays out of range.
  const bool is_coarser =
      now.cause == Cause::kIndexOutOfRange &&
      (root.cause == Cause::kEmbeddingIndexOutOfRange || root.cause == Cause::kPositionIndexOutOfRange ||
       root.cause == Cause::kLabelOutOfRange);
  if (!was_told && !is_coarser && now.certainty <= Certainty::kDetermined)
    return words(root) + " -> another cause, determined: " + words(now);
  return {};
}

void check(const Log& log) {
  const Report whole = explain_bytes(log.text);
  for (const Rest& rest : rests_of(log)) {
    const std::string what = wrong(whole, explain_bytes(rest.text), rest);
    EXPECT_EQ(what, "") << log.name << ", " << rest.how;
  }
}

constexpr std::string_view kTraceback =
    "Traceback (most recent call last):\n"
    "  File \"/home/u/train.py\", line 88, in <module>\n"
    "    main()\n"
    "  File \"/home/u/train.py\", line 61, in main\n"
    "    out = self.model(batch)\n"
    "  File \"/opt/conda/lib/python3.10/site-packages/torch/nn/modules/module.py\", line 1553, in "
    "_call_impl\n"
    "    return forward_call(*args, **kwargs)\n";
constexpr std::string_view kTail =
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below "
    "might be "
    "incorrect.\n"
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n\n";

TEST(ExplainProperties, AssertionsAndWhatFollowsThem) {
  std::size_t row_number = 0;
  for (const AssertRow& row : assert_rows()) {
    if (row.sample.find("block: [") == std::string_view::npos) continue;
    if (++row_number % 8 != 0 && !all_of_them()) continue;
    check({std::string(row.sample.substr(0, 120)),
           "epoch 1 step 10 loss 0.6931\n" + std::string(row.sample) + "\n" + std::string(row.sample) + "\n" +
               std::string(kTraceback) + "RuntimeError: CUDA error: device-side assert triggered\n" +
               std::string(kTail) + "srun: error: node7: task 0: Exited with exit code 1\n"});
  }
}

TEST(ExplainProperties, MessagesAtTheEndOfATraceback) {
  std::size_t row_number = 0;
  for (const WordingRow& row : wording_rows()) {
    if (++row_number % 16 != 0 && !all_of_them()) continue;
    check({std::string(row.id), "epoch 1 step 10 loss 0.6931\n" + std::string(kTraceback) +
                                    std::string(row.sample) + "\nsrun: error: node7: task 0: Killed\n"});
  }
  for (const diagnose::HostErrorRow* row : diagnose::host_error_rows()) {
    if (++row_number % 16 != 0 && !all_of_them()) continue;
    check({std::string(row->id), std::string(kTraceback) +
                                     std::string(row->exceptions.substr(0, row->exceptions.find('|'))) +
                                     ": " + std::string(row->samples.front()) + "\n"});
  }
}

// Files below `folder` that are texts, in order.
void check_folder(const fs::path& folder, std::size_t each) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() != ".md" && entry.path().extension() != ".jsonl")
      files.push_back(entry.path());
  }
  std::ranges::sort(files);
  ASSERT_FALSE(files.empty()) << folder;
  for (std::size_t i = 0; i < files.size(); i += each) {
    std::ifstream in(files[i], std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (text.find('\0') == std::string::npos) check({files[i].filename().string(), text});
  }
}

TEST(ExplainProperties, LogsOfTheFuzzers) {
  check_folder(fs::path(TRAPLINE_SOURCE_DIR) / "tests/fuzz/corpus_reasoner", 1);
}

TEST(ExplainProperties, LogsOfTheCorpus) {
  const char* const named = std::getenv("TRAPLINE_CORPUS");
  const fs::path folder =
      named != nullptr ? fs::path(named) : fs::path(TRAPLINE_SOURCE_DIR) / "../shared/corpus/logs";
  if (!fs::exists(folder)) GTEST_SKIP() << "no corpus in " << folder;
  check_folder(folder, all_of_them() ? 1 : 16);
}

}  // namespace
}  // namespace trapline
