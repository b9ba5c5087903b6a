// Any lines, cleaned, of any ranks and sources, in any order: the reasoner neither fails nor contradicts
// itself. A line that begins with the byte 1 changes the rank, one with 2 the source, one with 3 ends the
// source.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "log/clean/line_maker.hpp"
#include "log/reason/reasoner.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const trapline::Report& report) {
  require(report.findings.size() <= 17);
  require((report.verdict == trapline::Verdict::kClean) == report.findings.empty());
  for (std::size_t i = 0; i < report.findings.size(); ++i) {
    const trapline::Finding& finding = report.findings[i];
    // The root is the first. Another root is of another process, which failed by itself.
    require(finding.role == trapline::Role::kRoot || i > 0);
    require(finding.role != trapline::Role::kRoot || i == 0 || finding.process);
    require(finding.certainty != trapline::Certainty::kProven);  // a log shows no value
    require(!finding.summary.empty());
    for (const trapline::Cause cause : finding.also) require(cause != finding.cause);
    for (const trapline::Evidence& evidence : finding.evidence) require(evidence.text.size() < 8192);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  trapline::Reasoner reasoner;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::string source = "a";
  trapline::LineMaker lines(reasoner);
  trapline::Origin origin;
  lines.begin(source, origin);
  std::int64_t number = 0;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view text = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (text.starts_with('\1')) {
      origin.rank = text.size() > 1 ? static_cast<int>(static_cast<unsigned char>(text[1])) - 1 : -1;
      lines.begin(source, origin);
      continue;
    }
    if (text.starts_with('\2') || text.starts_with('\3')) {
      if (text[0] == '\3') reasoner.end_of_source(source, {});
      source = std::string(text.substr(1, 4)) + ".log";
      number = 0;
      lines.begin(source, origin);
      continue;
    }
    lines.raw_line(text, ++number, false);
  }
  check(reasoner.finish());
  reasoner.end_of_source(source, {});
  check(reasoner.finish());
  return 0;
}
