// The loop's judgement: what the log suggests, what the processes answer, what is decided.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <set>

#include "report/collected.hpp"
#include "supervise/loop.hpp"
#include "supervise/samples.hpp"
#include "supervise/tree.hpp"

namespace trapline::supervise {
namespace {

namespace fs = std::filesystem;

constexpr double kAnswerWithin = 0.3;  // seconds: processes that are asked for their contexts
constexpr double kEndsByItself =
    5;                          // seconds: a job that has lost its context mostly does, and may save first
constexpr double kLivedOn = 3;  // seconds after which a program has dealt with a contained fault
constexpr std::size_t kMaxIncidents = 50;
constexpr std::size_t kMaxDecisions = 100;
constexpr std::size_t kMaxFindings = 512;  // files of one start that are looked at while it runs

std::string place_of(const Finding& finding) {
  if (!finding.origin || finding.origin->file.empty()) return {};
  return fmt::format("{}:{}", fs::path(finding.origin->file).filename().string(), finding.origin->line);
}

std::string headline(const std::optional<Finding>& root) {
  if (!root) return "no cause was found";
  const std::string place = place_of(*root);
  const std::string_view words =
      root->summary.empty() ? info(root->cause).title : std::string_view(root->summary);
  return fmt::format("{}{}: {}", info(root->cause).code, place.empty() ? "" : " at " + place, words);
}

// Whether the first finding is why the program is gone, and not something that it had dealt with.
bool is_cause(const Evidence& evidence, const Ending& ending) {
  const Finding& root = evidence.report.findings.front();
  if (ruins_context(root) || !root.contained.value_or(false) || evidence.uncaught) return true;
  // A contained fault ends a program by an exception: not by a signal (an abort is how C++ ends by one), and
  // no program stands still of it.
  return !evidence.caught_before && ending.by == EndedBy::kItself &&
         (ending.signal == 0 || ending.signal == SIGABRT);
}

std::string clock_time() { return fmt::format("{:%H:%M:%S}", fmt::localtime(std::time(nullptr))); }

std::vector<fs::path> files_of(const fs::path& folder, std::string_view prefix, std::string_view suffix) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error)) {
    const std::string name = file->path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(suffix)) out.push_back(file->path());
    if (out.size() >= kMaxFindings) break;
  }
  return out;
}

}  // namespace

// The log speaks of a lost context. Requests are sent elsewhere at once, and the processes are asked.
void Loop::suspect() {
  if (suspicion_until_ || condemn_at_) return;
  const Report report = active_->log_report();
  const auto found = std::ranges::find_if(report.findings, ruins_context);
  if (found == report.findings.end() || key_of(*found) == dismissed_) return;
  suspicion_ = headline(*found);
  before_suspicion_ = state_;
  dismissed_ = key_of(*found);
  const double now = steady_seconds();
  fault_at_ = now;
  set_state(State::kUnwell);
  const bool was_asked = contexts_ && contexts_->ask(program_tree()) > 0;
  suspicion_until_ = was_asked ? now + kAnswerWithin : now;
}

void Loop::settle_suspicion(double now) {
  const ContextAnswer answer = contexts_ ? contexts_->answer() : ContextAnswer::kNotAsked;
  if (answer == ContextAnswer::kWaiting && now < *suspicion_until_) return;
  suspicion_until_.reset();
  if (answer == ContextAnswer::kAlive || answer == ContextAnswer::kNone) {
    fault_at_.reset();
    // The next such line is looked into again: it may be true then.
    active_->forget_log();
    dismissed_.clear();
    set_state(before_suspicion_);
    request_.say(
        fmt::format("the output speaks of {}, but the CUDA contexts are alive: nothing is done", suspicion_));
    return;
  }
  set_state(State::kPoisoned);
  condemn_at_ = settings_.policy.is_service ? now : *fault_at_ + kEndsByItself;
}

// It is still there, and of no use any more.
void Loop::condemn(EndedBy by, const std::string& line) {
  if (!fault_at_) fault_at_ = steady_seconds();
  request_.say(line);
  ended_by_ = by;
  Ending ending;
  ending.by = by;
  const Decision decision =
      decide(std::move(ending), active_->evidence(ExitStatus{1, 0, false}, by == EndedBy::kPoisoned));
  const bool starts_again = decision.action == Action::kRetry || decision.action == Action::kQuarantine;
  // A service that answers wrongly must not do so for the length of a grace; a job may still save something.
  const bool at_once = settings_.policy.is_service && by == EndedBy::kPoisoned;
  if (starts_again && by == EndedBy::kPoisoned && replace_processes(decision)) return;
  if (starts_again && at_once && standby_ && decision.delay == 0) return replace_now(decision);
  decided_ = decision;
  begin_end(at_once ? SIGKILL : SIGTERM, at_once ? 0 : settings_.grace);
}

Decision Loop::decide(Ending ending, Evidence evidence) {
  std::vector<Finding>& findings = evidence.report.findings;
  const bool ended_well =
      ending.by == EndedBy::kRequest || (ending.by == EndedBy::kItself && ending.exit_code == 0);
  std::vector<RequestInFlight> requests;
  std::vector<std::string> samples;
  if (!ended_well) {
    if (!findings.empty() && is_cause(evidence, ending)) ending.root = findings.front();
    requests = culprits(ending.root);
    if (ending.root) samples = proposed_samples(active_->folder(), *ending.root);
  }
  for (const RequestInFlight& one : requests) ending.requests.push_back(one.fingerprint);
  ending.samples = samples.size();
  ending.lived = steady_seconds() - active_->started();

  Decision decision = judge_.decide(ending, steady_seconds());
  if (decision.action == Action::kQuarantine) set_aside(decision, ending.root, samples, requests);
  outcome_.report = std::move(evidence.report);
  outcome_.has_failed = decision.action != Action::kFinish || (ending.exit_code != 0 && !asked_to_end_);
  outcome_.exit_code = decision.action == Action::kStop ? decision.exit_code : ending.exit_code;
  if (!ended_well) tell(decision, ending.root);
  return decision;
}

// Samples go into the quarantine file, requests among those that are refused.
void Loop::set_aside(Decision& decision, const std::optional<Finding>& root,
                     const std::vector<std::string>& samples, const std::vector<RequestInFlight>& requests) {
  const std::string file = stage_.run.quarantine->string();
  if (!samples.empty() && !add_samples(file, samples)) {
    decision = {Action::kStop, fmt::format("{} cannot be written: name another with --quarantine", file), 0,
                kExitComesBack};
    return;
  }
  if (!samples.empty()) decision.reason += " in " + file;
  for (const RequestInFlight& one : requests) {
    refuse(own_folder_.path(), one, root ? info(root->cause).code : "",
           root ? std::string_view(root->summary) : std::string_view());
  }
}

// Whoever looks: standard error, the report's notes, the board, torchrun.
void Loop::tell(const Decision& decision, const std::optional<Finding>& root) {
  if (!fault_at_) fault_at_ = steady_seconds();
  const std::string action(name_of(decision.action));
  const std::string what = fmt::format("{}: {}", action, decision.reason);
  if (root && root->role == Role::kRoot) write_error_file(*root, "trapline supervise: " + what);
  decisions_.push_back(fmt::format("start {}, {}: {}", starts_, clock_time(), what));
  if (decisions_.size() > kMaxDecisions) decisions_.erase(decisions_.begin());
  if (root) request_.say(fmt::format("start {}: {}", starts_, headline(root)));
  request_.say(decision.delay > 0 ? fmt::format("{}; in {:.1f} s", what, decision.delay) : what);
  const auto refused = static_cast<std::int64_t>(count_refused(own_folder_.path()));
  const std::string code(root ? info(root->cause).code : "");
  board_.update([&](Snapshot& now) {
    ++now.faults[code.empty() ? "none" : code];
    ++now.decisions[action];
    now.refused = refused;
    add_incident(now, {unix_time(), starts_, code, root ? root->summary : std::string(),
                       root ? place_of(*root) : std::string(), action, decision.reason, std::nullopt});
  });
}

// One request in flight is the culprit. Of several the one that the finding names, else those that were there
// at two deaths.
std::vector<RequestInFlight> Loop::culprits(const std::optional<Finding>& root) {
  std::vector<RequestInFlight> all = requests_in_flight(own_folder_.path());
  std::set<std::string> here;
  for (const RequestInFlight& one : all) here.insert(one.fingerprint);
  for (const std::string& one : here) ++deaths_[one];
  if (deaths_.size() > 4096) deaths_.clear();
  const std::string named = root && root->sample ? root->sample->request : std::string();
  const auto is_named = [&](const RequestInFlight& one) { return !named.empty() && one.id == named; };
  if (std::ranges::any_of(all, is_named)) {
    std::erase_if(all, [&](const RequestInFlight& one) { return !is_named(one); });
  } else if (here.size() > 1) {
    std::erase_if(all, [&](const RequestInFlight& one) { return deaths_[one.fingerprint] < 2; });
  }
  std::erase_if(all,
                [&](const RequestInFlight& one) { return here.erase(one.fingerprint) == 0; });  // each once
  return all;
}

// Faults that the guard contained and the program lived on with: they count, and nothing is done about them.
void Loop::note_contained() {
  const double now = steady_seconds();
  for (const fs::path& file : files_of(active_->folder(), "finding-", ".json")) {
    double& seen = noted_.try_emplace(file.filename(), now).first->second;
    if (seen < 0 || now - seen < kLivedOn) continue;
    seen = -1;
    Collected collected;
    read_report_file(file, collected);
    if (collected.findings.empty()) continue;
    const Finding& finding = collected.findings.front().finding;
    if (ruins_context(finding)) continue;
    const std::int64_t refused = static_cast<std::int64_t>(count_refused(own_folder_.path()));
    board_.update([&](Snapshot& one) {
      ++one.faults[std::string(info(finding.cause).code)];
      one.refused = refused;
      add_incident(one, {unix_time(), starts_, std::string(info(finding.cause).code), finding.summary,
                         place_of(finding), "contained", "the program goes on", std::nullopt});
    });
  }
}

void Loop::add_incident(Snapshot& now, Incident incident) {
  now.incidents.push_back(std::move(incident));
  if (now.incidents.size() > kMaxIncidents) now.incidents.pop_front();
}

void Loop::act(const Decision& decision) {
  const bool starts_again = decision.action == Action::kRetry || decision.action == Action::kQuarantine;
  if (!starts_again || asked_to_end_) {
    if (!outcome_.report.findings.empty() && outcome_.has_failed) {
      write_termination_message(fmt::format("{}\n{}: {}\n", headline(outcome_.report.findings.front()),
                                            name_of(decision.action), decision.reason));
    }
    is_over_ = true;
    return;
  }
  start_at_ = steady_seconds() + decision.delay;
  set_state(State::kWaiting);
  if (decision.delay == 0) {
    start_at_.reset();
    if (!launch()) is_over_ = true;
  }
}

}  // namespace trapline::supervise
