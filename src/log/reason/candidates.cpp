#include "log/reason/candidates.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

namespace trapline {
namespace {

bool mentions_any(std::string_view text, std::initializer_list<std::string_view> words) {
  std::string low(text);
  for (char& c : low) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c;
  return std::ranges::any_of(words, [&](std::string_view word) { return low.find(word) != low.npos; });
}

// Whether the program lived on after the warning, to an exception that has nothing to do with a GPU: "the
// driver is too old", and then, on the CPU, two sizes that do not fit.
bool was_outlived(const Candidate& warning, const std::vector<Candidate>& all) {
  return warning.event->in_warning && std::ranges::any_of(all, [&](const Candidate& other) {
           const Event& event = *other.event;
           if (other.stream != warning.stream || event.order < warning.event->order || event.in_warning ||
               event.warned || event.exception.empty() || event.traceback < 0)
             return false;
           const auto& tracebacks = other.stream->tracebacks();
           const auto own = static_cast<std::size_t>(event.traceback);
           const LogFrame* const frame = own < tracebacks.size() ? tracebacks[own].deepest() : nullptr;
           return frame != nullptr &&
                  !mentions_any(event.text, {"cuda", "gpu", "nvidia", "device", "driver"}) &&
                  !mentions_any(frame->frame.code, {"cuda", "gpu"});
         });
}

}  // namespace

bool nearer(const Candidate& a, const Candidate& b) {
  if (a.precedence != b.precedence) return a.precedence > b.precedence;
  return a.event->order < b.event->order;
}

void drop_outlived(std::vector<Candidate>& candidates) {
  const std::vector<Candidate> all = candidates;
  std::erase_if(candidates, [&](const Candidate& c) { return was_outlived(c, all); });
}

bool drop_survived(std::vector<Candidate>& candidates) {
  const auto is_warning = [](const Candidate& c) {
    return c.event->in_warning && c.event->kind == EventKind::kWording &&
           (c.event->wording->cause == Cause::kArchMismatch ||
            c.event->wording->cause == Cause::kHardwareOrDriver);
  };
  if (candidates.empty() || !std::ranges::all_of(candidates, is_warning)) return false;
  candidates.clear();
  return true;
}

// A watchdog that is stuck, or a heart that stopped, follows from a collective that did not end, where a line
// names one.
void prefer_collective(std::vector<Candidate>& candidates) {
  const auto waits = [](const Candidate& c, Cause cause) {
    return c.precedence == Precedence::kPeer && c.event->wording->cause == cause &&
           c.event->wording->effect.complaint == Complaint::kWaitedFor;
  };
  if (candidates.empty() || !waits(candidates.front(), Cause::kHardwareOrDriver)) return;
  const auto named = std::ranges::find_if(
      candidates, [&](const Candidate& c) { return waits(c, Cause::kPeerFailure) && !c.event->op.empty(); });
  if (named != candidates.end()) std::rotate(candidates.begin(), named, named + 1);
}

// Torn lines make some of one assertion's lines look like those of another place: the place that most lines
// name is it.
void prefer_majority(std::vector<Candidate>& candidates) {
  Candidate& first = candidates.front();
  if (first.event->kind != EventKind::kAssert || first.event->assert_row == nullptr) return;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    const Event& other = *candidates[i].event;
    if (candidates[i].stream == first.stream && other.kind == EventKind::kAssert &&
        other.assert_row != nullptr && other.assert_row->condition == first.event->assert_row->condition &&
        other.count > first.event->count)
      std::swap(first, candidates[i]);
  }
}

}  // namespace trapline
