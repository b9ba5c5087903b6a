#include "report/details.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "core/ranges.hpp"
#include "report/sentences.hpp"

namespace trapline {
namespace {

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

Detail surface_of(const Finding& finding, const Reading& reading) {
  const std::string place =
      finding.surfaced ? place_text(*finding.surfaced, reading.directory) : std::string();
  const bool in_library = finding.origin && finding.origin->user == false;
  if (!finding.device_assert.value_or(false)) return {in_library ? "called" : "seen at", place, 4};
  // In the log of a job that ran on a GPU it is no news, but the line that the log ends with misleads.
  if (reading.command == Command::kExplain && finding.certainty != Certainty::kProven) {
    const bool is_origin = finding.origin && place_text(*finding.origin, reading.directory) == place;
    const bool misleads = !place.empty() && !is_origin;
    return {"seen at", misleads ? place + ", later than it happened" : "", 4};
  }
  return {"on GPU",
          place.empty() ? "a device-side assert, reported later and at another line"
                        : "a device-side assert that surfaces at " + place,
          place.empty() ? 6 : 4};  // the first to go: it is the same in every report
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

Reading reading_of(const Report& report, std::string_view directory, bool verbose) {
  return {report.command, has_several_ranks(report), directory, verbose};
}

std::vector<Detail> details_of(const Finding& finding, const Reading& reading) {
  std::vector<Detail> all;
  all.push_back({"found", found_text(finding), 1});
  if (finding.element) {
    const std::vector<std::int64_t> shape =
        finding.tensor ? finding.tensor->shape : std::vector<std::int64_t>{};
    all.push_back({"bad", count_text(*finding.element, shape), 2});
  }
  if (finding.valid) all.push_back({"valid", valid_text(*finding.valid), 1});
  all.push_back({"values", values_text(finding), 3});
  if (finding.classes) all.push_back({"classes", classes_text(*finding.classes), 3});
  if (finding.layer) all.push_back({"layer", layer_text(*finding.layer), 2});
  if (finding.sample) all.push_back({"sample", sample_text(*finding.sample), 2});
  if (finding.progress)
    all.push_back({progress_label(*finding.progress), progress_text(*finding.progress), 3});
  if (finding.kernel) all.push_back({"kernel", kernel_text(*finding.kernel), 3});
  all.push_back(surface_of(finding, reading));
  all.push_back({"", doubt_text(finding), 3});
  // The rank alone stands in the headline.
  const bool says_more = finding.process && (!reading.several_ranks || !finding.process->host.empty());
  if (finding.process && (reading.verbose || (finding.process->rank && says_more))) {
    all.push_back({"process", process_text(*finding.process), 5});
  }
  std::erase_if(all, [](const Detail& detail) { return detail.text.empty(); });
  return all;
}

std::string_view sentence_of(const Finding& finding) {
  return finding.summary.empty() ? info(headline_cause(finding)).title : std::string_view(finding.summary);
}

std::string rank_of(const Finding& finding, const Reading& reading) {
  if (!reading.several_ranks || !finding.process || !finding.process->rank) return {};
  std::string rank = fmt::format("rank {}", *finding.process->rank);
  return sentence_of(finding).find(rank) == std::string_view::npos ? rank : std::string();
}

std::string label_of(const Finding& finding, const Reading& reading) {
  const std::string rank = rank_of(finding, reading);
  return fmt::format("error[{}]{}{}:", info(headline_cause(finding)).code, rank.empty() ? "" : " ", rank);
}

std::optional<Frame> place_of(const Finding& finding, Command command) {
  if (finding.origin) return finding.origin;
  if (command != Command::kCheck || finding.evidence.empty()) return std::nullopt;
  // Of data at rest the place is the first piece of evidence.
  const Evidence& seen = finding.evidence.front();
  return Frame{seen.source, seen.line.value_or(0), "", "", {}, 0, 0};
}

std::string_view sentence_without_findings(const Report& report) {
  if (report.verdict == Verdict::kClean) return "no fault found";
  return report.command == Command::kRun ? "no cause can be named" : "no fault in what could be read";
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
