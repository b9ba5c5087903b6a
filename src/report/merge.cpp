#include "report/merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>

#include "core/ranges.hpp"

namespace trapline {
namespace {

struct Group {
  Finding finding;
  std::set<std::int64_t> ranks;  // of the others
  std::size_t others = 0;        // findings of other processes that say the same
  std::size_t repeats = 0;       // further ones of the same process
};

auto place(const Finding& finding) {
  const Frame none;
  const Frame& origin = finding.origin ? *finding.origin : none;
  return std::tuple(finding.cause, finding.role, finding.op, finding.argument, origin.file, origin.line,
                    finding.origin ? std::string() : finding.summary);
}

// Victims stay apart: the writers list them, one line for all that say the same.
bool is_same(const Finding& a, const Finding& b) {
  return a.role == Role::kRoot && b.role == Role::kRoot && place(a) == place(b);
}

// The first digit of the code: 1 contracts, 2 host exceptions, 3 device faults, 4 machine, 9 unknown.
char family(const Finding& finding) { return info(finding.cause).code[2]; }

std::optional<std::int64_t> rank_of(const Finding& finding) {
  return finding.process ? finding.process->rank : std::nullopt;
}

bool same_process(const Finding& a, const Finding& b) {
  return a.process && b.process && a.process->pid && a.process->pid == b.process->pid &&
         a.process->host == b.process->host;
}

bool same_element(const Finding& a, const Finding& b) {
  if (a.element.has_value() != b.element.has_value()) return false;
  if (!a.element) return a.summary == b.summary;
  const auto text = [](const std::optional<Scalar>& value) {
    return value ? to_text(*value) : std::string();
  };
  return a.element->index == b.element->index && text(a.element->value) == text(b.element->value);
}

std::string name_process(const Finding& finding) {
  std::string name;
  const auto add = [&](const std::string& part) { name += (name.empty() ? "" : ", ") + part; };
  if (finding.process) {
    if (finding.process->rank) add(fmt::format("rank {}", *finding.process->rank));
    if (finding.process->pid) add(fmt::format("pid {}", *finding.process->pid));
    if (!finding.process->host.empty()) add("host " + finding.process->host);
  }
  return name.empty() ? "another process" : name;
}

void add(Group& group, const Finding& other) {
  if (same_process(group.finding, other)) {
    ++group.repeats;
    return;
  }
  // A DataLoader worker has its parent's rank, and the parent raises the worker's exception once more.
  if (rank_of(group.finding) == rank_of(other) && same_element(group.finding, other)) return;
  ++group.others;
  if (const auto rank = rank_of(other)) group.ranks.insert(*rank);
  group.finding.evidence.push_back({name_process(other), std::nullopt, other.summary});
}

std::string plural(std::size_t count, std::string_view noun, std::string_view nouns) {
  return fmt::format("{} {}", count, count == 1 ? noun : nouns);
}

void tell(const Group& group, std::vector<std::string>& notes) {
  const std::string_view code = info(group.finding.cause).code;
  if (group.others > 0) {
    std::string note =
        fmt::format("{} came from {} too", code, plural(group.others, "more process", "more processes"));
    if (!group.ranks.empty()) note += fmt::format(" ({})", ranks_text(group.ranks));
    notes.push_back(note);
  }
  if (group.repeats > 0) {
    notes.push_back(fmt::format("{} was raised {} by the same process; this is the first", code,
                                plural(group.repeats + 1, "time", "times")));
  }
}

// What a log says of a fault that a guarded process has seen itself: the same, or less.
bool adds_nothing(const Finding& from_log, const std::vector<Finding>& seen) {
  if (from_log.role == Role::kConsequence) return false;
  switch (from_log.cause) {
    case Cause::kInsufficientEvidence:
    case Cause::kPoisonedContext:
    case Cause::kNotCuda:
      return true;  // the guard's own exception, or the end of the process
    default:
      break;
  }
  return std::ranges::any_of(seen, [&](const Finding& finding) {
    const auto among = [](Cause cause, const Finding& other) {
      return cause == other.cause || std::ranges::find(other.also, cause) != other.also.end();
    };
    return among(finding.cause, from_log) || among(from_log.cause, finding);
  });
}

}  // namespace

Report merge(const Collected& collected) {
  std::vector<Group> groups;
  for (const CollectedFinding& item : collected.findings) {
    const auto same = std::ranges::find_if(
        groups, [&](const Group& group) { return is_same(group.finding, item.finding); });
    if (same == groups.end()) {
      groups.push_back({item.finding, {}, 0, 0});
    } else {
      add(*same, item.finding);
    }
  }
  std::ranges::stable_sort(groups, {}, [](const Group& group) {
    return std::pair(group.finding.role == Role::kConsequence, family(group.finding));
  });

  Report report;
  report.command = Command::kRun;
  report.verdict = groups.empty() ? Verdict::kClean : Verdict::kFault;
  for (Group& group : groups) {
    tell(group, report.notes);
    report.findings.push_back(std::move(group.finding));
  }
  report.notes.insert(report.notes.end(), collected.notes.begin(), collected.notes.end());
  for (const std::string& omission : collected.omissions) leave_open(report, omission);
  return report;
}

Report merge(Report seen, Report from_logs) {
  if (seen.findings.empty()) {
    std::ranges::move(seen.notes, std::back_inserter(from_logs.notes));
    if (seen.verdict != Verdict::kClean) leave_open(from_logs);
    return from_logs;
  }
  std::vector<Finding> more;
  for (Finding& finding : from_logs.findings) {
    if (!adds_nothing(finding, seen.findings)) {
      more.push_back(std::move(finding));
      continue;
    }
    std::vector<Evidence>& evidence = seen.findings.front().evidence;
    std::ranges::move(finding.evidence, std::back_inserter(evidence));
  }
  // Independent roots before all victims.
  std::ranges::move(more, std::back_inserter(seen.findings));
  std::ranges::stable_sort(seen.findings, {},
                           [](const Finding& finding) { return finding.role == Role::kConsequence; });
  std::ranges::move(from_logs.notes, std::back_inserter(seen.notes));
  seen.command = from_logs.command;
  seen.verdict = Verdict::kFault;
  return seen;
}

}  // namespace trapline
