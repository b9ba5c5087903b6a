#include "supervise/decide.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace trapline::supervise {
namespace {

enum class Nature : std::uint8_t { kInput, kDesign, kTransient, kUnclear, kSuspect };

struct NatureRow {
  Cause cause;
  Nature nature;
  std::string_view why;
};

constexpr auto kNatures = std::to_array<NatureRow>({
#define TRAPLINE_NATURE(cause, nature, why) {Cause::cause, Nature::nature, why},
#include "supervise/natures.def"
#undef TRAPLINE_NATURE
});

constexpr bool has_all_causes() {
  std::size_t rows = 0;
#define TRAPLINE_CAUSE(id, code, slug, title)                                     \
  if (rows >= kNatures.size() || kNatures[rows].cause != Cause::id) return false; \
  ++rows;
#include "core/causes.def"
#undef TRAPLINE_CAUSE
  return rows == kNatures.size();
}
static_assert(has_all_causes(), "natures.def has one row for each row of core/causes.def, in its order");

// A data set of which this many batches had bad samples at the same line has more of them: that is a mistake
// in it, and leaving them out one restart at a time would hide it.
constexpr int kMaxSetAside = 3;
constexpr double kGoodWhile = 300;  // seconds without a fault after which the delays begin anew

const NatureRow& nature_of(Cause cause) { return kNatures[static_cast<std::size_t>(cause)]; }

std::string how_it_ended(const Ending& ending) {
  switch (ending.by) {
    case EndedBy::kPoisoned:
      return "its CUDA context was lost";
    case EndedBy::kStalled:
      return "it gave no sign of life";
    case EndedBy::kProbe:
      return "its probe failed";
    case EndedBy::kItself:
    case EndedBy::kRequest:
      break;
  }
  if (ending.signal != 0) {
    const char* name = ::sigabbrev_np(ending.signal);
    return name != nullptr ? fmt::format("SIG{} ended it", name)
                           : fmt::format("signal {} ended it", ending.signal);
  }
  return fmt::format("it exited with {}", ending.exit_code);
}

std::string count(std::size_t number, std::string_view thing) {
  return fmt::format("{} {}{}", number, thing, number == 1 ? "" : "s");
}

Decision refuse_requests(const Ending& ending, const std::string& why) {
  const std::size_t number = ending.requests.size();
  return {Action::kQuarantine,
          fmt::format(
              "{}; {} refused from now on", why,
              number == 1 ? "the request that was being worked on is" : count(number, "request") + " are"),
          0, kExitComesBack};
}

std::string seconds(double value) { return fmt::format("{} s", std::round(value * 10) / 10); }

}  // namespace

std::string_view name_of(Action action) {
  switch (action) {
    case Action::kFinish:
      return "finish";
    case Action::kRetry:
      return "retry";
    case Action::kQuarantine:
      return "quarantine";
    case Action::kStop:
      break;
  }
  return "stop";
}

std::optional<Action> action_of_name(std::string_view name) {
  for (const Action action : {Action::kRetry, Action::kQuarantine, Action::kStop}) {
    if (name == name_of(action)) return action;
  }
  return std::nullopt;
}

std::string key_of(const Finding& finding) {
  std::string key = fmt::format("{} {} {}", info(finding.cause).code, finding.op, finding.argument);
  if (finding.origin) key += fmt::format(" {}:{}", finding.origin->file, finding.origin->line);
  if (finding.kernel) key += fmt::format(" {}:{}", finding.kernel->file, finding.kernel->line);
  return key;
}

bool ruins_context(const Finding& finding) {
  if (finding.contained.value_or(false)) return false;
  switch (finding.cause) {
    case Cause::kCustomKernelAssert:
    case Cause::kCompiledIndexAssert:
    case Cause::kIllegalMemoryAccess:
    case Cause::kPoisonedContext:
    case Cause::kInsufficientEvidence:
    case Cause::kHardwareOrDriver:
      return true;
    default:
      return finding.device_assert.value_or(false);
  }
}

Decision Judge::decide(const Ending& ending, double now) {
  if (ending.lived >= kGoodWhile) in_a_row_ = 0;
  Decision decision = judge(ending);
  last_ = ending.root ? key_of(*ending.root) : std::string();
  if (decision.action == Action::kQuarantine) {
    set_aside_.insert(set_aside_.end(), ending.requests.begin(), ending.requests.end());
    if (ending.samples > 0 && ending.root) ++samples_set_aside_[key_of(*ending.root)];
  }
  if (decision.action == Action::kRetry || decision.action == Action::kQuarantine)
    return restart(std::move(decision), ending, now);
  return decision;
}

Decision Judge::judge(const Ending& ending) const {
  if (ending.by == EndedBy::kRequest) return {Action::kFinish, "it was asked to end", 0, ending.exit_code};
  if (ending.by == EndedBy::kItself && ending.exit_code == 0)
    return {Action::kFinish, "the program ended well", 0, 0};
  if (ending.root) return judge_finding(ending, *ending.root);
  return {Action::kRetry, how_it_ended(ending) + ", and nothing tells why", 0, ending.exit_code};
}

Decision Judge::judge_finding(const Ending& ending, const Finding& root) const {
  const NatureRow& row = nature_of(root.cause);
  const std::string code(info(root.cause).code);
  const std::string why = fmt::format("{} {}", code, row.why);
  if (const auto told = policy_.decisions.find(root.cause); told != policy_.decisions.end()) {
    const bool can = told->second != Action::kQuarantine || ending.samples > 0 || !ending.requests.empty();
    if (can) return {told->second, fmt::format("the policy says so of {}", code), 0, kExitComesBack};
    return {Action::kStop,
            fmt::format("the policy says to set the input of {} aside, and it is not known", code), 0,
            kExitComesBack};
  }
  const bool is_again = last_ == key_of(root);
  switch (row.nature) {
    case Nature::kDesign:
      return {Action::kStop, why, 0, kExitComesBack};
    case Nature::kTransient:
      return {Action::kRetry, why, 0, kExitTransient};
    case Nature::kInput: {
      if (ending.samples > 0) {
        const auto before = samples_set_aside_.find(key_of(root));
        if (before != samples_set_aside_.end() && before->second >= kMaxSetAside) {
          return {
              Action::kStop,
              fmt::format(
                  "{} came back with other samples, {} times: look at the whole data set (trapline check)",
                  code, before->second + 1),
              0, kExitComesBack};
        }
        return {Action::kQuarantine,
                fmt::format("{}; {} set aside", why,
                            ending.samples == 1 ? "its sample is" : count(ending.samples, "sample") + " are"),
                0, kExitComesBack};
      }
      if (has_new_requests(ending)) return refuse_requests(ending, why);
      if (policy_.is_service)
        return {Action::kRetry,
                why + ", but which request it came with is not known: started again, since it is a service",
                0, kExitCrashLoop};
      return {Action::kStop, why + ", and it is not known what to set aside", 0, kExitComesBack};
    }
    case Nature::kSuspect:
      if (has_new_requests(ending)) return refuse_requests(ending, why);
      break;
    case Nature::kUnclear:
      break;
  }
  if (is_again && !policy_.is_service)
    return {Action::kStop, fmt::format("{} came twice in a row at the same place", code), 0, kExitComesBack};
  return {Action::kRetry, why, 0, kExitCrashLoop};
}

bool Judge::has_new_requests(const Ending& ending) const {
  return std::ranges::any_of(ending.requests, [&](const std::string& one) {
    return std::ranges::find(set_aside_, one) == set_aside_.end();
  });
}

Decision Judge::restart(Decision decision, const Ending& ending, double now) {
  while (!restarts_.empty() && restarts_.front() <= now - policy_.window) restarts_.pop_front();
  if (static_cast<std::int64_t>(restarts_.size()) >= policy_.restarts) {
    const bool transient = ending.root && nature_of(ending.root->cause).nature == Nature::kTransient;
    const std::string enough =
        policy_.restarts == 0 ? std::string("no restart is allowed")
                              : fmt::format("{} in {} {} enough", count(restarts_.size(), "restart"),
                                            seconds(policy_.window), restarts_.size() == 1 ? "is" : "are");
    return {Action::kStop, fmt::format("{}; {}", decision.reason, enough), 0,
            transient ? kExitTransient : kExitCrashLoop};
  }
  restarts_.push_back(now);
  ++in_a_row_;
  // What was set aside cannot come back, so there is nothing to wait for; nor is there after the first fault
  // of a program that had run for a while.
  if (decision.action == Action::kQuarantine) {
    in_a_row_ = 0;
    return decision;
  }
  if (policy_.is_service && in_a_row_ == 1 && ending.lived > policy_.delay) return decision;
  const double doubled =
      policy_.delay * std::exp2(static_cast<double>(std::min<std::int64_t>(in_a_row_ - 1, 40)));
  decision.delay = std::min(policy_.max_delay, doubled) * (0.5 + 0.5 * jitter_());
  return decision;
}

}  // namespace trapline::supervise
