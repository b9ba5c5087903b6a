#include "report/details.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/ranges.hpp"
#include "report/sentences.hpp"

namespace trapline {
namespace {

// Where the error was reported, when that is another place.
void add_surface(const Finding& finding, const DetailOptions& options, std::vector<Detail>& out) {
  const std::string place = finding.surfaced ? place_text(*finding.surfaced, options.directory) : "";
  if (!finding.device_assert.value_or(false)) {
    out.push_back({"seen at", place, 4});
    return;
  }
  // In the log of a job that ran on a GPU it is no news, but the line that the log ends with misleads.
  if (options.command == Command::kExplain && finding.certainty != Certainty::kProven) {
    const bool is_origin = finding.origin && place_text(*finding.origin, options.directory) == place;
    if (!place.empty() && !is_origin) out.push_back({"seen at", place + ", later than it happened", 4});
    return;
  }
  out.push_back({"on GPU",
                 place.empty() ? "a device-side assert, reported later and at another line"
                               : "a device-side assert that surfaces at " + place,
                 4});
}

std::string doubt_text(const Finding& finding) {
  if (finding.certainty == Certainty::kProven || finding.certainty == Certainty::kDetermined) return {};
  std::vector<Cause> fitting;
  const bool is_open = headline_cause(finding) != finding.cause;
  if (is_open) fitting.push_back(finding.cause);
  std::ranges::copy_if(finding.also, std::back_inserter(fitting),
                       [](Cause also) { return also != Cause::kInsufficientEvidence; });
  std::string text = finding.certainty == Certainty::kLikely ? "likely, not certain" : "not certain";
  if (fitting.empty()) return finding.cause == Cause::kInsufficientEvidence ? std::string() : text;
  text += is_open || finding.cause == Cause::kInsufficientEvidence ? "; causes that fit: "
                                                                   : "; other causes that fit: ";
  const char* separator = "";
  for (const Cause cause : fitting) {
    text += fmt::format("{}{} ({})", separator, info(cause).title, info(cause).code);
    separator = ", ";
  }
  return text;
}

std::string text_of(const Other& other, std::string_view directory) {
  const Finding& first = *other.first;
  // What peers did says itself who they are, and there is nothing to look up.
  const bool is_peer = first.cause == Cause::kPeerFailure && !first.summary.empty();
  std::string text = is_peer ? "" : fmt::format("[{}] ", info(headline_cause(first)).code);
  if (!other.ranks.empty() && !is_peer) text += ranks_text(other.ranks) + ": ";
  if (other.count > 1 && other.ranks.size() != other.count) text += fmt::format("{} times: ", other.count);
  text += first.summary.empty() ? info(first.cause).title : std::string_view(first.summary);
  if (first.origin && !other.is_consequence) text += " (" + place_text(*first.origin, directory) + ")";
  return text;
}

}  // namespace

Cause headline_cause(const Finding& finding) {
  return finding.certainty == Certainty::kUnknown ? Cause::kInsufficientEvidence : finding.cause;
}

bool has_several_ranks(const Report& report) {
  std::set<std::int64_t> ranks;
  for (const Finding& finding : report.findings) {
    if (finding.cause == Cause::kPeerFailure) return true;
    if (!finding.process || !finding.process->rank) continue;
    ranks.insert(*finding.process->rank);
    if (*finding.process->rank > 0 || finding.process->world_size.value_or(1) > 1) return true;
  }
  return ranks.size() > 1;
}

Headline headline_of(const Finding& finding, bool several_ranks) {
  const CauseInfo& cause = info(headline_cause(finding));
  std::string sentence(finding.summary.empty() ? cause.title : std::string_view(finding.summary));
  std::string rank;
  if (several_ranks && finding.process && finding.process->rank) {
    rank = fmt::format("rank {}", *finding.process->rank);
    if (sentence.find(rank) != std::string::npos) rank.clear();  // it is said
  }
  return {fmt::format("error[{}]{}{}:", cause.code, rank.empty() ? "" : " ", rank), std::move(sentence)};
}

std::string_view nothing_found(const Report& report) {
  if (report.verdict == Verdict::kClean) return "no fault found";
  return report.command == Command::kRun ? "no cause can be named" : "no fault in what could be read";
}

Frame place_of(const Finding& finding, Command command) {
  if (finding.origin) return *finding.origin;
  if (command != Command::kCheck || finding.evidence.empty()) return {};
  const Evidence& seen = finding.evidence.front();
  return {seen.source, seen.line.value_or(0), "", "", {}, 0, 0};
}

std::vector<Detail> details_of(const Finding& finding, const DetailOptions& options) {
  std::vector<Detail> out;
  out.push_back({"found", found_text(finding), 1});
  if (finding.element) out.push_back({"bad", count_text(*finding.element), 2});
  if (finding.valid) out.push_back({"valid", valid_text(*finding.valid), 1});
  out.push_back({"values", values_text(finding), 3});
  if (finding.classes) out.push_back({"classes", classes_text(*finding.classes), 3});
  if (finding.layer) out.push_back({"layer", layer_text(*finding.layer), 2});
  if (finding.sample) out.push_back({"sample", sample_text(*finding.sample), 2});
  if (finding.kernel) out.push_back({"kernel", kernel_text(*finding.kernel), 3});
  add_surface(finding, options, out);
  out.push_back({"", doubt_text(finding), 3});
  // The rank alone stands in the headline.
  if (const auto& process = finding.process) {
    const bool says_more = !options.several_ranks || !process->host.empty();
    if (options.verbose || (process->rank && says_more))
      out.push_back({"process", process_text(*process), 5});
  }
  std::erase_if(out, [](const Detail& detail) { return detail.text.empty(); });
  return out;
}

std::vector<Other> others_of(const Report& report, std::string_view directory) {
  std::vector<Other> rows;
  for (std::size_t i = 1; i < report.findings.size(); ++i) {
    const Finding& finding = report.findings[i];
    auto row = std::ranges::find_if(rows, [&](const Other& known) {
      return known.first->cause == finding.cause && known.first->role == finding.role &&
             known.first->summary == finding.summary;
    });
    if (row == rows.end()) {
      row = rows.insert(rows.end(), Other{&finding, 0, {}, finding.role == Role::kConsequence, {}});
    }
    ++row->count;
    if (finding.process && finding.process->rank) row->ranks.insert(*finding.process->rank);
  }
  for (Other& row : rows) row.text = text_of(row, directory);
  return rows;
}

}  // namespace trapline
