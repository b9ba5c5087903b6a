#include "cli/live_sink.hpp"

#include <fmt/format.h>

#include "report/details.hpp"

namespace trapline::cli {
namespace {

constexpr std::size_t kMaxEmpty = 4;

std::string_view certainty_text(Certainty certainty) {
  switch (certainty) {
    case Certainty::kProven:
      return "proven";
    case Certainty::kDetermined:
      return "determined";
    case Certainty::kLikely:
      return "likely";
    case Certainty::kUnknown:
      break;
  }
  return "cause unknown";
}

}  // namespace

std::string first_word(const Report& report) {
  if (report.findings.empty()) return {};
  const Finding& root = report.findings.front();
  const CauseInfo& cause = info(headline_cause(root));
  return fmt::format("so far {}, {}: {}", cause.code, certainty_text(root.certainty),
                     root.summary.empty() ? cause.title : std::string_view(root.summary));
}

void LiveSink::line(const Line& line) {
  changed_ = true;
  reasoner_.line(line);
}

void LiveSink::end_of_source(std::string_view source, const SourceEnd& end) {
  if (end.bytes == 0 && !end.problem && !end.binary && empty_.size() < kMaxEmpty) empty_.emplace_back(source);
  reasoner_.end_of_source(source, end);
}

void LiveSink::quiet() {
  if (!changed_) return;
  changed_ = false;
  const Report report = reasoner_.finish(false);
  if (report.findings.empty()) return;
  grown_(report);
  const Finding& root = report.findings.front();
  const std::string key =
      fmt::format("{} {}", info(headline_cause(root)).code, static_cast<int>(root.certainty));
  if (key == told_) return;
  told_ = key;
  say_(first_word(report));
}

}  // namespace trapline::cli
