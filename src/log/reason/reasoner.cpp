#include "log/reason/reasoner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <limits>
#include <set>

#include "catalogue/last_words.hpp"
#include "core/ranges.hpp"
#include "log/clean/prefix.hpp"
#include "log/reason/candidates.hpp"
#include "log/reason/cut.hpp"
#include "log/reason/decide.hpp"
#include "log/reason/peers.hpp"
#include "log/reason/words.hpp"

namespace trapline {
namespace {

// Enough for the largest jobs; what comes beyond is read together with the rest of its source.
constexpr std::size_t kMaxStreams = 20'000;
constexpr std::size_t kMaxConsequences = 16;
constexpr std::size_t kMaxEvidence = 8;
// Jobs up to this size keep all of their tracebacks.
constexpr std::size_t kFewStreams = 64;

const Traceback* traceback_of(const EventStream& stream, const Event& event) {
  const auto& all = stream.tracebacks();
  if (event.traceback >= 0 && static_cast<std::size_t>(event.traceback) < all.size()) {
    const Traceback& own = all[static_cast<std::size_t>(event.traceback)];
    if (!own.frames.empty() && event.kind != EventKind::kAssert) return &own;
  }
  // An assertion's own line belongs to no traceback: the one that reports it, else the first one with frames.
  const Traceback* first = nullptr;
  for (const Traceback& traceback : all) {
    if (traceback.frames.empty()) continue;
    if (traceback.message.find("device-side") != std::string::npos) return &traceback;
    if (first == nullptr) first = &traceback;
  }
  return first;
}

struct Job {
  std::vector<const EventStream*> streams;
  bool has_peers = false;

  // The stream's own traceback, else another one's of the same source: assertions are printed by the driver,
  // without the prefix that a launcher gives to the program's lines.
  const Traceback* find_traceback(const EventStream& stream, const Event& event) const {
    if (const Traceback* own = traceback_of(stream, event)) return own;
    for (const EventStream* other : streams) {
      if (other == &stream || other->source != stream.source ||
          (stream.rank >= 0 && other->rank >= 0 && other->rank != stream.rank))
        continue;
      if (const Traceback* found = traceback_of(*other, event)) return found;
    }
    return nullptr;
  }

  Hints hints_of(const std::string& source) const {
    Hints all;
    for (const EventStream* stream : streams) {
      if (stream->source == source) all |= stream->hints();
    }
    return all;
  }

  EventContext scene_of(const EventStream& stream, const Event& event) const {
    EventContext scene;
    scene.traceback = find_traceback(stream, event);
    scene.surface = surface_of(scene.traceback, stream.lone_code());
    scene.hints = hints_of(stream.source);
    scene.beside_peers = has_peers;
    // Since 1.13 a build without DSA adds its advice to every error; the warning about asynchronous reports
    // is left out only when launches were blocking.
    scene.blocking = scene.hints.has(Hint::kBlockingLaunches) ||
                     (scene.hints.has(Hint::kDsaAdvice) && !scene.hints.has(Hint::kAsynchronous));
    if (event.wording != nullptr && event.wording->kind == WordingKind::kDeviceAssert)
      find_other_run(stream, scene);
    return scene;
  }

  static void find_other_run(const EventStream& stream, EventContext& scene) {
    for (const Event& other : stream.events()) {
      if (other.wording == nullptr || other.wording->kind != WordingKind::kHostValue) continue;
      if (other.wording->cause == Cause::kShapeMismatch || other.wording->cause == Cause::kDeviceMismatch ||
          other.wording->cause == Cause::kDtypeMismatch)
        continue;
      scene.other_run = &other;
      scene.other_traceback = nullptr;
      const auto& all = stream.tracebacks();
      if (other.traceback >= 0 && static_cast<std::size_t>(other.traceback) < all.size())
        scene.other_traceback = &all[static_cast<std::size_t>(other.traceback)];
      return;
    }
  }

  int rank_of(const Candidate& candidate) const {
    if (candidate.stream->rank >= 0) return candidate.stream->rank;
    if (candidate.event->rank >= 0) return candidate.event->rank;
    // An unprefixed assertion: the one rank whose watchdog or traceback reports a device-side assert.
    int rank = -1;
    for (const EventStream* stream : streams) {
      for (const Event& event : stream->events()) {
        if (event.wording == nullptr || event.wording->kind != WordingKind::kDeviceAssert) continue;
        const int named = stream->rank >= 0 ? stream->rank : event.rank;
        if (named < 0) continue;
        if (rank >= 0 && rank != named) return launcher_rank();
        rank = named;
      }
    }
    return rank >= 0 ? rank : launcher_rank();
  }

  // By the launcher's clock: the last resort.
  int launcher_rank() const {
    for (const EventStream* stream : streams) {
      if (stream->first_failed_rank() >= 0) return stream->first_failed_rank();
    }
    return -1;
  }

  std::set<std::int64_t> ranks() const {
    std::set<std::int64_t> all;
    for (const EventStream* stream : streams) {
      if (stream->rank >= 0) all.insert(stream->rank);
      for (const Event& event : stream->events()) {
        if (event.rank >= 0) all.insert(event.rank);
      }
    }
    return all;
  }

  // All ranks but one complain about a collective: the silent one is where to look.
  int silent_rank() const {
    std::set<int> present, complaining;
    for (const EventStream* stream : streams) {
      if (stream->rank >= 0) present.insert(stream->rank);
      for (const Event& event : stream->events()) {
        if (precedence(event) != Precedence::kPeer) continue;
        const int rank = stream->rank >= 0 ? stream->rank : event.rank;
        if (rank >= 0) complaining.insert(rank);
      }
    }
    int silent = -1;
    for (const int rank : present) {
      if (complaining.contains(rank)) continue;
      if (silent >= 0) return -1;
      silent = rank;
    }
    return complaining.empty() ? -1 : silent;
  }
};

// Whether nothing but the level of a logger, or the name of an error, says that the line tells of a failure.
bool is_level_only(const Event& event) {
  return event.kind == EventKind::kWording && event.wording->effect.meaning == Meaning::kErrorLine &&
         judge_last(event.text, true) == LastLine::kOpen;
}

Finding make_finding(const Job& job, const Candidate& candidate, bool root) {
  const Event& event = *candidate.event;
  const EventContext scene = job.scene_of(*candidate.stream, event);
  const Decision decision = decide(event, scene);
  Finding finding;
  finding.cause = decision.cause;
  for (const Cause cause : decision.also) {
    // That nothing can be told is no cause.
    if (cause != decision.cause && cause != Cause::kInsufficientEvidence &&
        std::find(finding.also.begin(), finding.also.end(), cause) == finding.also.end())
      finding.also.push_back(cause);
  }
  finding.certainty = decision.certainty;
  finding.role = root ? Role::kRoot : Role::kConsequence;
  finding.device_assert = decision.device_assert;
  finding.op = decision.op;
  finding.argument = decision.argument;
  if (decision.device_assert.value_or(false) || decision.cause == Cause::kIllegalMemoryAccess)
    finding.contained = false;
  if (scene.traceback != nullptr) {
    if (root) {
      for (const LogFrame& frame : scene.traceback->frames) finding.stack.push_back(frame.frame);
    }
    const LogFrame* const user = scene.traceback->deepest_user();
    if (user != nullptr && user->frame.line > 0) {
      const bool sure = decision.synchronous;
      if (!sure) finding.surfaced = user->frame;
      // An asynchronous error in a statement that launches work itself comes from it, or from one just
      // before.
      if (sure || !scene.surface.reads_back) finding.origin = user->frame;
    }
  }
  const int rank = job.rank_of(candidate);
  if (rank >= 0 || candidate.stream->pid >= 0 || !candidate.stream->host.empty()) {
    Process process;
    if (rank >= 0) process.rank = rank;
    if (candidate.stream->pid >= 0) process.pid = candidate.stream->pid;
    process.host = candidate.stream->host;
    finding.process = process;
  }
  write_words(event, decision, finding);
  return finding;
}

int rank_named(const Candidate& candidate) {
  return candidate.stream->rank >= 0 ? candidate.stream->rank : candidate.event->rank;
}

int rank_of(const Finding& finding) {
  return finding.process && finding.process->rank ? static_cast<int>(*finding.process->rank) : -1;
}

// Several ranks only waited: the one that said nothing is where to look; else none is known to be the first.
void name_the_silent_one(const Job& job, const std::vector<Candidate>& candidates, Finding& root) {
  const int silent = job.silent_rank();
  Peers peers;
  std::set<int> waiting;
  for (const Candidate& candidate : candidates) {
    if (candidate.precedence != Precedence::kPeer) continue;
    peers.add(*candidate.event, rank_named(candidate));
    if (candidate.event->wording->effect.complaint == Complaint::kWaitedFor && rank_named(candidate) >= 0 &&
        !candidate.event->op.empty())
      waiting.insert(rank_named(candidate));
  }
  // One rank waited for its peer. Where several did in a collective that the line names, it did not end for
  // the group: then the link is as near as a rank that is gone. The store and the rendezvous are no
  // collective: who waits there waits for somebody who did not come.
  if (waiting.size() > 1 && !root.op.empty() && root.cause == Cause::kPeerFailure) {
    root.cause = Cause::kHardwareOrDriver;
    std::ranges::replace(root.also, Cause::kHardwareOrDriver, Cause::kPeerFailure);
  }
  root.summary = peers.summary(silent);
  if (silent >= 0) {
    root.process = Process{silent, {}, {}, {}};
    root.fix.insert(root.fix.begin(),
                    fmt::format("look at what rank {} did last: it ended without a word, it hung, or it took "
                                "another path through the program than the others",
                                silent));
  } else if (job.streams.size() > 1 || root.process) {
    root.process.reset();
  }
}

// May both be of one process? What the driver prints has no prefix.
bool may_share_process(const Candidate& a, int rank_a, const Candidate& b, int rank_b) {
  if (a.stream == b.stream) return true;
  if (rank_a >= 0 && rank_b >= 0) return rank_a == rank_b;
  if (a.stream->pid >= 0 && b.stream->pid >= 0) return a.stream->pid == b.stream->pid;
  return a.event->source == b.event->source;
}

// The nearest event of every other process, and other kinds of failures of the same one. What the root's own
// process says of the root again is evidence.
void tell_what_followed(const Job& job, const std::vector<Candidate>& candidates, Report& report) {
  const Candidate& first = candidates.front();
  const bool nothing_but_peers = first.precedence == Precedence::kPeer;
  const int root_rank = rank_of(report.findings.front());
  std::set<std::pair<const EventStream*, const void*>> told;
  const auto mark = [&](const Candidate& c) {
    const void* what = c.event->wording != nullptr ? static_cast<const void*>(c.event->wording)
                                                   : static_cast<const void*>(c.event->assert_row);
    return told.emplace(c.stream, what).second;
  };
  mark(first);
  std::set<const EventStream*> streams{first.stream};
  std::set<std::int64_t> reporting;  // ranks that report the root, of which it is not known whose it was
  std::set<int> others;              // ranks that failed by themselves, too
  std::size_t made = 0;
  Peers peers;
  if (nothing_but_peers) peers.add(*first.event, rank_named(first));
  const auto add_evidence = [&](std::vector<Evidence> more) {
    std::vector<Evidence>& evidence = report.findings.front().evidence;
    for (Evidence& one : more) {
      if (evidence.size() < kMaxEvidence) evidence.push_back(std::move(one));
    }
  };
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    const Candidate& next = candidates[i];
    if (!mark(next)) continue;
    const int rank = rank_named(next);
    const bool shares = may_share_process(first, root_rank, next, rank);
    if (next.precedence == Precedence::kPeer) {
      if (nothing_but_peers || !shares || rank < 0) peers.add(*next.event, rank);
      continue;
    }
    const bool is_report = next.event->wording != nullptr &&
                           next.event->wording->kind == WordingKind::kDeviceAssert &&
                           report.findings.front().device_assert.value_or(false);
    if (shares && is_report) {
      if (root_rank < 0 && rank >= 0) reporting.insert(rank);
      add_evidence({{next.event->source, next.event->number, next.event->text}});
      continue;
    }
    if (is_report && others.contains(rank)) continue;  // of its own, which is listed
    const bool same = !streams.insert(next.stream).second;
    if (same && next.precedence < Precedence::kPeer) continue;
    // The exception in which a program wraps what happened to it says nothing new.
    if (shares && next.precedence == Precedence::kException && first.precedence > Precedence::kException)
      continue;
    if (report.findings.size() > kMaxConsequences || ++made > 4 * kMaxConsequences) continue;
    Finding finding = make_finding(job, next, false);
    if (shares && finding.cause == report.findings.front().cause) {
      add_evidence(std::move(finding.evidence));
      continue;
    }
    // A process of its own that failed by itself follows from nothing.
    if (!shares && rank >= 0 && root_rank >= 0 && next.precedence >= Precedence::kFailure) {
      finding.role = Role::kRoot;
      others.insert(rank);
    }
    report.findings.push_back(std::move(finding));
  }
  for (Finding& waiting : peers.consequences(root_rank, nothing_but_peers)) {
    if (report.findings.size() <= kMaxConsequences) report.findings.push_back(std::move(waiting));
  }
  std::ranges::stable_sort(report.findings, {},
                           [](const Finding& finding) { return finding.role == Role::kConsequence; });
  if (reporting.size() > 1) {
    report.notes.push_back(ranks_text(reporting) +
                           " reported the device-side assert; its own line does not tell whose it was");
  }
  const std::set<std::int64_t> ranks = job.ranks();
  if (ranks.size() < 2) return;
  for (Finding& finding : report.findings) {
    if (finding.process && finding.process->rank) finding.process->world_size = *ranks.rbegin() + 1;
  }
}

}  // namespace

// 3.log beside 0.log to 7.log is rank 3's; alone it is the third of something.
void Reasoner::forget_lone_number() {
  std::set<std::string_view> sources;
  for (const auto& [key, stream] : streams_) sources.insert(stream->source);
  if (sources.size() != 1) return;
  const Origin origin = origin_of_path(*sources.begin());
  for (const auto& [key, stream] : streams_) {
    if (origin.is_bare_number && stream->rank == origin.rank) stream->rank = -1;
  }
}

Reasoner::Reasoner() = default;
Reasoner::~Reasoner() = default;

EventStream& Reasoner::stream_of(const Line& line) {
  if (latest_ != nullptr && latest_->rank == line.rank && latest_->pid == line.pid &&
      latest_->source == line.source && latest_->host == line.host)
    return *latest_;
  Key key{std::string(line.source), line.rank, line.pid, std::string(line.host)};
  auto found = streams_.find(key);
  if (found == streams_.end()) {
    if (streams_.size() >= kMaxStreams) return *streams_.begin()->second;
    auto stream = std::make_unique<EventStream>();
    stream->rank = line.rank;
    stream->pid = line.pid;
    stream->host = line.host;
    stream->source = line.source;
    if (streams_.size() >= kFewStreams) stream->most_places = 16;
    found = streams_.emplace(std::move(key), std::move(stream)).first;
  }
  latest_ = found->second.get();
  return *latest_;
}

void Reasoner::line(const Line& line) {
  commands_.line(line.text);
  stream_of(line).line(line, order_);
}

void Reasoner::end_of_source(std::string_view source, const SourceEnd& end) {
  const Key first{
      std::string(source), std::numeric_limits<int>::min(), std::numeric_limits<std::int64_t>::min(), {}};
  for (auto at = streams_.lower_bound(first); at != streams_.end() && std::get<0>(at->first) == source;
       ++at) {
    at->second->finish(order_);
    if (streams_.size() > kFewStreams) at->second->compact();
  }
  if (end.problem) notes_.push_back(end.problem->line());
  if (end.shortened > 0) notes_.push_back(std::string(source) + ": very long lines were read in part");
}

Report Reasoner::finish(bool at_end) {
  Report report;
  report.command = Command::kExplain;
  report.notes = notes_;
  Job job;
  forget_lone_number();
  for (auto& [key, stream] : streams_) {
    stream->finish(order_);
    job.streams.push_back(stream.get());
  }
  std::vector<Candidate> candidates;
  for (const EventStream* stream : job.streams) {
    for (const Event& event : stream->events()) {
      if (const Precedence p = precedence(event); p != Precedence::kNever)
        candidates.push_back({stream, &event, p});
    }
  }
  // Warnings tell the cause of what failed later; alone they are none. Nor is a line of which only the level
  // says that it is an error, where the log ends in words of success.
  const bool ended_well = std::ranges::any_of(job.streams, &EventStream::ended_well);
  const auto is_none = [&](const Candidate& c) {
    return c.event->warned || (at_end && ended_well && is_level_only(*c.event));
  };
  if (std::ranges::all_of(candidates, is_none)) candidates.clear();
  drop_outlived(candidates);
  if (at_end && ended_well && drop_survived(candidates))
    report.notes.emplace_back(
        "a warning tells of a driver or a GPU that could not be used; the run ended well without it");
  std::deque<Event> last_words;  // what the candidates point to
  const bool is_open = at_end && std::ranges::all_of(candidates, [](const Candidate& c) {
                         return c.precedence <= Precedence::kEnded;
                       });
  for (const EventStream* stream : job.streams) {
    if (!is_open) break;
    if (auto event = stream->nan_before_cut()) {
      const Event& last = last_words.emplace_back(std::move(*event));
      candidates.push_back({stream, &last, precedence(last)});
    }
  }
  if (candidates.empty()) {
    for (const EventStream* stream : job.streams) {
      if (auto event = stream->last_words()) {
        const Event& last = last_words.emplace_back(std::move(*event));
        candidates.push_back({stream, &last, precedence(last)});
      }
    }
  }
  // "Clean" wants evidence: a last line as ordinary runs end with. Of several files one may end anywhere.
  const bool is_one_source =
      !streams_.empty() && std::get<0>(streams_.begin()->first) == std::get<0>(streams_.rbegin()->first);
  if (at_end && candidates.empty() && is_one_source) {
    const auto last = std::ranges::max_element(job.streams, {}, &EventStream::last_line);
    if (auto event = (*last)->open_end())
      candidates.push_back({*last, &last_words.emplace_back(std::move(*event)), Precedence::kEnded});
  }
  std::stable_sort(candidates.begin(), candidates.end(), nearer);
  prefer_collective(candidates);
  job.has_peers =
      std::ranges::any_of(candidates, [](const Candidate& c) { return c.precedence == Precedence::kPeer; });
  if (candidates.empty() || candidates.front().precedence == Precedence::kEnded) {
    report.verdict = Verdict::kClean;
    for (const EventStream* stream : job.streams) {
      const Traceback* const cut = cut_traceback(*stream);
      if (cut == nullptr) continue;
      report.findings.push_back(finding_of_cut(*stream, *cut));
      add_rerun(commands_, report.findings.front());
      report.verdict =
          report.findings.front().certainty == Certainty::kUnknown ? Verdict::kUnknown : Verdict::kFault;
      break;
    }
    if (candidates.empty() || !report.findings.empty()) return report;
  }
  prefer_majority(candidates);
  report.findings.push_back(make_finding(job, candidates.front(), true));
  Finding& root = report.findings.front();
  if (candidates.front().precedence == Precedence::kPeer) name_the_silent_one(job, candidates, root);
  // What kills a process leaves no traceback: the error of one that is cut off may have come first.
  const Candidate& death = candidates.front();
  const auto may_hide_error = [&](const EventStream* stream) {
    const Traceback* const cut = cut_traceback(*stream);
    return cut != nullptr && (stream != death.stream || cut->first <= death.event->number);
  };
  const bool misses_error =
      death.precedence == Precedence::kDeath &&
      std::ranges::none_of(candidates,
                           [](const Candidate& c) { return c.precedence == Precedence::kPeer; }) &&
      std::ranges::any_of(job.streams, may_hide_error);
  if (misses_error) {
    root.certainty = Certainty::kUnknown;
    root.summary = candidates.front().event->text + "; a traceback is cut off before its error";
  }
  report.verdict = root.certainty == Certainty::kUnknown ? Verdict::kUnknown : Verdict::kFault;
  // The guard watches PyTorch's operations; to a library's own status it would say nothing.
  const WordingRow* const message = candidates.front().event->wording;
  if (message == nullptr || message->effect.meaning == Meaning::kOwn ||
      message->effect.meaning == Meaning::kAsserted)
    add_rerun(commands_, root);
  leave_out_guard(root);
  tell_what_followed(job, candidates, report);
  return report;
}

}  // namespace trapline
