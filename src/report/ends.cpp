#include "report/ends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <ranges>

#include "report/sentences.hpp"

namespace trapline {
namespace {

// What `--watch` saw was never raised, so nobody can have caught it.
bool was_raised(const CollectedFinding& item) { return item.finding.cause != Cause::kNonFiniteValue; }

bool holds(const std::vector<std::string>& names, const CollectedFinding& item) {
  return !item.file.empty() && std::ranges::find(names, item.file) != names.end();
}

bool was_uncaught(const CollectedFinding& item, const std::vector<ProcessEnd>& ends) {
  return std::ranges::any_of(ends, [&](const ProcessEnd& end) {
    const bool told =
        !item.finding.summary.empty() && end.elsewhere.find(item.finding.summary) != std::string::npos;
    return told || holds(end.unhandled, item);
  });
}

using Test = std::function<bool(const CollectedFinding&)>;

bool keep_those(const Test& test, Collected& collected) {
  if (std::ranges::none_of(collected.findings, test)) return false;
  std::erase_if(collected.findings,
                [&](const CollectedFinding& item) { return was_raised(item) && !test(item); });
  return true;
}

// All that was raised; of processes that wrote no count, what they wrote.
std::map<std::string, std::uint64_t> count(const Collected& collected) {
  std::map<std::string, std::uint64_t> written, counted;
  for (const CollectedFinding& item : collected.findings) {
    if (was_raised(item)) ++written[std::string(info(item.finding.cause).code)];
  }
  for (const ProcessEnd& end : collected.ends) {
    // What could not be written may have been what ended the process.
    if (end.lost) continue;
    for (const auto& [code, times] : end.raised) counted[code] += times;
  }
  for (const auto& [code, times] : written) counted[code] = std::max(counted[code], times);
  return counted;
}

}  // namespace

Settled settle(Collected& collected, bool failed) {
  Settled out;
  const auto& ends = collected.ends;
  const auto uncaught = [&](const CollectedFinding& item) { return was_uncaught(item, ends); };
  const auto left_with = [&](const CollectedFinding& item) {
    return std::ranges::any_of(ends, [&](const ProcessEnd& end) { return holds(end.left_with, item); });
  };
  out.caught = count(collected);
  if (!failed) {
    const bool in_cells =
        std::ranges::all_of(ends, [](const ProcessEnd& end) { return end.unhandled.empty() || end.went_on; });
    out.uncaught = !in_cells && std::ranges::any_of(collected.findings, uncaught);
    return out;
  }
  out.uncaught = keep_those(uncaught, collected);
  if (!out.uncaught && !keep_those(left_with, collected)) {
    const bool elsewhere =
        std::ranges::any_of(ends, [](const ProcessEnd& end) { return !end.elsewhere.empty(); });
    const auto by_time = [](const ProcessEnd& a, const ProcessEnd& b) {
      return std::pair(a.other.empty(), a.written) < std::pair(b.other.empty(), b.written);
    };
    const auto first = std::ranges::min_element(ends, by_time);
    if (!elsewhere && first != ends.end() && !first->other.empty()) {
      if (std::ranges::any_of(collected.findings, was_raised)) out.other = first->other;
      std::ranges::copy_if(collected.findings, std::back_inserter(out.taken), was_raised);
      std::erase_if(collected.findings, was_raised);
    } else {
      // The end of every process is known, and no fault was it.
      out.caught_before = !elsewhere && !ends.empty() &&
                          std::ranges::all_of(ends, [](const ProcessEnd& end) { return end.over; });
    }
  }
  for (const CollectedFinding& item : collected.findings) {
    auto& times = out.caught[std::string(info(item.finding.cause).code)];
    times -= std::min<std::uint64_t>(times, was_raised(item) ? 1 : 0);
  }
  std::erase_if(out.caught, [](const auto& cause) { return cause.second == 0; });
  return out;
}

std::string sentence_about(const std::map<std::string, std::uint64_t>& caught) {
  std::uint64_t all = 0;
  for (const auto& [code, times] : caught) all += times;
  if (all == 0) return {};
  std::string codes;
  for (const auto& [code, times] : caught) codes += (codes.empty() ? "" : ", ") + code;
  return fmt::format("the program caught {} fault{} ({})", all, all == 1 ? "" : "s", codes);
}

std::vector<std::string> lines_about(const std::vector<CollectedFinding>& findings,
                                     const std::map<std::string, std::uint64_t>& caught,
                                     std::string_view directory) {
  struct Group {
    std::string code, place, summary;
    std::uint64_t times = 0;
  };
  constexpr std::size_t kMaxLines = 5;
  std::vector<Group> groups;
  std::map<std::string, std::uint64_t> written;
  for (const CollectedFinding& item : findings) {
    if (!was_raised(item)) continue;
    const Finding& finding = item.finding;
    const std::string code(info(finding.cause).code);
    const std::string place = finding.origin ? place_text(*finding.origin, directory) : "";
    ++written[code];
    auto group = std::ranges::find_if(
        groups, [&](const Group& one) { return one.code == code && one.place == place; });
    if (group == groups.end()) group = groups.insert(groups.end(), {code, place, finding.summary, 0});
    ++group->times;
  }
  std::vector<std::string> lines;
  for (const Group& group : groups) {
    if (lines.size() == kMaxLines) break;
    std::string line = fmt::format("caught: [{}] {}", group.code, group.summary);
    if (!group.place.empty()) line += fmt::format(" ({})", group.place);
    // Beyond a number of faults none is written: then the total is all that is known.
    const auto all = caught.find(group.code);
    if (group.times > 1 && all != caught.end() && all->second == written[group.code])
      line += fmt::format(", {} times", group.times);
    lines.push_back(std::move(line));
  }
  if (groups.size() > lines.size()) {
    const std::size_t more = groups.size() - lines.size();
    lines.push_back(fmt::format("caught: {} more at {}", more, more == 1 ? "another line" : "other lines"));
  }
  return lines;
}

}  // namespace trapline
