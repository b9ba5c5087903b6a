#include "doctor/self_test.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "doctor/bounded.hpp"
#include "run/session.hpp"

namespace trapline::doctor {
namespace {

using enum Level;

constexpr std::string_view kProgram = R"(import torch
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
logits = torch.zeros(4, 3, device=device)
labels = torch.tensor([0, 2, 3, 1], device=device)
loss = F.cross_entropy(logits, labels)
print("unguarded:", loss.item())
)";
constexpr std::int64_t kBadLine = 7, kBadValue = 3;

std::string last_line(std::string text) {
  text.erase(text.find_last_not_of(" \r\n") + 1);
  return text.substr(text.find_last_of('\n') + 1);
}

// What the finding lacks of what is known of the bad call; empty: nothing.
std::string mistake_in(const Finding& finding) {
  if (finding.cause != Cause::kLabelOutOfRange && finding.cause != Cause::kNumClassesMismatch)
    return fmt::format("another cause was reported: {}", info(finding.cause).code);
  if (!finding.element || !finding.element->value || *finding.element->value != Scalar(kBadValue))
    return "another value was reported";
  if (!finding.origin || finding.origin->line != kBadLine) return "another line was reported";
  return {};
}

Line failed(const std::string& fact, const std::string& todo) {
  return {kProblem, "self-test", fact, "a bad call in a program would go unnoticed", todo};
}

}  // namespace

std::optional<Report> self_test(const std::string& python, double seconds, Lines& lines) {
  const std::string see = "see the lines above; `trapline run -v` says which guard ran";
  auto folder = ReportFolder::make_private();
  const std::filesystem::path program = folder ? folder->path() / "self_test.py" : "";
  if (!folder || !(std::ofstream(program) << kProgram).flush()) {
    lines.push_back(failed("its program cannot be written", "set TMPDIR to a folder that can be"));
    return std::nullopt;
  }
  const auto prepared = prepare({{python, program.string()}, {}});
  if (!prepared) {
    lines.push_back(failed(prepared.error().what + ": " + prepared.error().why, prepared.error().fix));
    return std::nullopt;
  }
  const Answer answer = ask(prepared->arguments, prepared->environment, seconds);
  if (!answer.error.empty() || answer.timed_out) {
    lines.push_back(
        failed(answer.timed_out ? fmt::format("it took longer than {} s", seconds) : answer.error, see));
    return std::nullopt;
  }
  const RunOutcome outcome = conclude(*prepared, answer.ended);
  if (outcome.report.findings.empty()) {
    lines.push_back(failed(
        fmt::format("the bad call was not reported; the program's last line: {}", last_line(answer.output)),
        see));
    return outcome.report;
  }
  const Finding& finding = outcome.report.findings.front();
  if (const std::string mistake = mistake_in(finding); !mistake.empty()) {
    lines.push_back(failed(mistake, "please report it, with the report below"));
    return outcome.report;
  }
  const std::string device = finding.tensor ? finding.tensor->device : "";
  const bool on_gpu = device.starts_with("cuda");
  lines.push_back({kOk, "self-test",
                   fmt::format("one bad label was caught on {}, before the operation ran, and reported as {}",
                               on_gpu ? device : "the CPU", info(finding.cause).code),
                   on_gpu ? "the guard works on this GPU: the context was not lost"
                          : "the guard works for tensors on the CPU; nothing was shown for a GPU",
                   ""});
  return outcome.report;
}

}  // namespace trapline::doctor
