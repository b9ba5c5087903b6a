#include "log/reason/peers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/ranges.hpp"

namespace trapline {
namespace {

constexpr std::size_t kMaxEvidence = 4;

std::string_view text_of(Complaint complaint) {
  switch (complaint) {
    case Complaint::kWaitedFor:
      return "waited for";
    case Complaint::kStoppedAfterLosing:
      return "stopped after losing";
    case Complaint::kLost:
    case Complaint::kNone:
      break;
  }
  return "lost";
}

}  // namespace

void Peers::add(const Event& event, int rank) {
  if (rank >= 0 && !ranks_.insert(rank).second) return;
  const RowEffect& row = event.wording->effect;
  auto group = std::ranges::find_if(groups_, [&](const Group& known) {
    return known.complaint == row.complaint && known.failure == row.failure;
  });
  if (group == groups_.end()) {
    group =
        groups_.insert(groups_.end(), Group{row.complaint, row.failure, row.by_launcher, event.op, {}, {}});
  }
  if (rank >= 0) group->ranks.insert(rank);
  if (group->evidence.size() < kMaxEvidence)
    group->evidence.push_back({event.source, event.number, event.text});
}

std::string Peers::sentence(const Group& group, int whom, bool with_op) const {
  const std::string who = !group.ranks.empty() ? ranks_text(group.ranks)
                          : group.by_launcher  ? std::string("the launcher")
                                               : std::string("a rank");
  const std::string other = whom >= 0 ? fmt::format("rank {}", whom) : std::string("another rank");
  const std::string op = with_op && !group.op.empty() ? " in " + group.op : std::string();
  return fmt::format("{} {} {} ({}{})", who, text_of(group.complaint), other, group.failure, op);
}

const Peers::Group* Peers::first() const {
  const auto named = std::ranges::find_if(groups_, [](const Group& group) { return !group.ranks.empty(); });
  if (named != groups_.end()) return &*named;
  return groups_.empty() ? nullptr : &groups_.front();
}

std::vector<Finding> Peers::consequences(int root, bool but_first) const {
  std::vector<Finding> out;
  for (const Group& group : groups_) {
    if (but_first && &group == first()) continue;
    // A line without a rank belongs to one of those that are known.
    if (group.ranks.empty() && !ranks_.empty()) continue;
    Finding finding;
    finding.cause = Cause::kPeerFailure;
    finding.certainty = Certainty::kLikely;
    finding.role = Role::kConsequence;
    finding.device_assert = false;
    finding.op = group.op;
    finding.summary = sentence(group, root, false);
    finding.evidence = group.evidence;
    finding.fix.emplace_back("nothing to mend here: the root's own log has the cause");
    if (group.ranks.size() == 1) finding.process = Process{*group.ranks.begin(), {}, {}, {}};
    if (group.ranks.size() > 1) {
      finding.process.emplace().ranks.assign(group.ranks.begin(), group.ranks.end());
    }
    out.push_back(std::move(finding));
  }
  return out;
}

std::string Peers::summary(int silent) const {
  if (groups_.empty()) return {};
  const std::string text = sentence(*first(), silent, true);
  return silent >= 0 ? text + ", whose own log shows no error" : text + "; nothing in the log tells why";
}

}  // namespace trapline
