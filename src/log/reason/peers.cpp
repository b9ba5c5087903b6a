#include "log/reason/peers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/ranges.hpp"

namespace trapline {
namespace {

constexpr std::size_t kMostEvidence = 4;

// How a message of the catalogue complains about a peer. `who` says it where no rank is known.
struct Complaint {
  std::string_view id, did, how, who;
};

constexpr std::string_view kLauncher = "the launcher";

constexpr auto kComplaints = std::to_array<Complaint>({
    {"nccl.timeout", "waited for", "NCCL time-out", ""},
    {"nccl.detected", "lost", "NCCL error", ""},
    {"nccl.remote", "lost", "NCCL remote error", ""},
    {"nccl.remote_error", "lost", "NCCL remote error", ""},
    {"nccl.unhandled_system", "lost", "NCCL system error", ""},
    {"nccl.system", "lost", "NCCL system error", ""},
    {"nccl.internal", "lost", "NCCL internal error", ""},
    {"nccl.closed", "lost", "connection closed", ""},
    {"net.reset", "lost", "connection reset", ""},
    {"nccl.abort", "stopped after losing", "NCCL abort", ""},
    {"gloo.timeout", "waited for", "Gloo time-out", ""},
    {"store.timeout", "waited for", "time-out of the store", ""},
    {"deepep.timeout", "waited for", "DeepEP time-out", ""},
    {"deepep.error", "lost", "DeepEP error", ""},
    {"mp.exited", "lost", "its process ended", kLauncher},
    {"ray.died", "lost", "its actor died", kLauncher},
    {"ds.exit", "lost", "its process ended", kLauncher},
    {"vllm.dead", "lost", "its engine died", kLauncher},
    {"tis.unhealthy", "lost", "its model is unhealthy", kLauncher},
});

Complaint complaint_of(const Event& event) {
  const auto row = std::ranges::find(kComplaints, event.wording->id, &Complaint::id);
  return row != kComplaints.end() ? *row : Complaint{"", "lost", "an error of the connection", ""};
}

}  // namespace

void Peers::add(const Event& event, int rank) {
  if (rank >= 0 && !ranks_.insert(rank).second) return;
  const Complaint row = complaint_of(event);
  auto group = std::ranges::find_if(
      groups_, [&](const Group& known) { return known.did == row.did && known.how == row.how; });
  if (group == groups_.end()) {
    group = groups_.insert(groups_.end(), Group{row.did, row.how, row.who, event.op, {}, {}});
  }
  if (rank >= 0) group->ranks.insert(rank);
  if (group->evidence.size() < kMostEvidence)
    group->evidence.push_back({event.source, event.number, event.text});
}

std::string Peers::sentence(const Group& group, int whom, bool with_op) const {
  const std::string who = !group.ranks.empty() ? ranks_text(group.ranks)
                          : group.who.empty()  ? std::string("a rank")
                                               : std::string(group.who);
  const std::string other = whom >= 0 ? fmt::format("rank {}", whom) : std::string("another rank");
  const std::string op = with_op && !group.op.empty() ? " in " + group.op : std::string();
  return fmt::format("{} {} {} ({}{})", who, group.did, other, group.how, op);
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
