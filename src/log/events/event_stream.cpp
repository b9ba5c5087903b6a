#include "log/events/event_stream.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <charconv>

#include "catalogue/ends.hpp"
#include "catalogue/last_words.hpp"
#include "catalogue/patterns.hpp"
#include "catalogue/xids.hpp"
#include "log/clean/text.hpp"
#include "log/events/hints.hpp"
#include "log/events/line_kinds.hpp"
#include "log/events/ranks.hpp"

namespace trapline {
namespace {

constexpr std::size_t kMaxEvents = 128, kMaxText = 400;
constexpr int kNanGradients = 2;        // one alone may be a spike
constexpr std::int64_t kNearEnd = 200;  // lines; a run that went on for longer did not end with them
constexpr int kScaled = -1'000'000;     // a scaler skips such steps, and goes on
constexpr std::size_t kKeptLines = 3;   // what a program says, a launcher's word about it, and one more
constexpr std::size_t kMaxLine = std::size_t{256} << 10U;  // one pasted log without line ends

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Whether a program can do what it was started for after a warning of it: not with a context that is lost,
// not without its GPU. Without a compiler of device code it can: the driver has one (XLA's
// redzone_allocator.cc).
bool can_go_on(const WordingRow& row) {
  if (row.effect.meaning == Meaning::kCompiler) return true;
  // A launcher's own end (torchrun's agent logs it as a warning).
  if (row.effect.meaning == Meaning::kToldToEnd || row.effect.meaning == Meaning::kInterrupted) return false;
  return row.kind != WordingKind::kDeviceAssert && row.cause != Cause::kIllegalMemoryAccess &&
         row.cause != Cause::kArchMismatch && row.cause != Cause::kHardwareOrDriver;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Whether it is a message: no blank, no frame's line, no rule of dashes.
bool speaks(std::string_view text) {
  return !text.empty() && text.front() != ' ' && text.front() != '\t' &&
         std::ranges::any_of(text, [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; });
}

// Whether the line names a failure, and tells more than that something failed.
bool tells_of_failure(const LineMatches& matches) {
  return std::any_of(matches.wordings.begin(), matches.wordings.end(), [](const WordingRow* row) {
    return row->is_failure() && row->effect.meaning != Meaning::kErrorLine;
  });
}

}  // namespace

Event& EventStream::push(Event event, std::string_view text, const Line& origin, std::int64_t& order) {
  event.order = order++;
  event.count = 1;
  event.number = origin.number;
  event.source = origin.source;
  event.text = single_spaced(trim(text).substr(0, kMaxText));
  event.traceback = frames_.current();
  event.rank = rank_in(text);
  event.op = collective_in(text);
  if (events_.size() >= kMaxEvents) events_.pop_back();
  events_.push_back(std::move(event));
  return events_.back();
}

// Floods: the same assertion as before with another block and thread.
bool EventStream::repeated(std::string_view text) {
  if (last_assert_ < 0 || text.size() < last_head_.size() + last_tail_.size() ||
      !text.starts_with(last_head_) || !text.ends_with(last_tail_))
    return false;
  std::size_t from = last_head_.size();
  Coordinate block, thread;
  if (!read_coordinate(text, "", from, block) || !read_coordinate(text, "thread:", from, thread) ||
      from + last_tail_.size() != text.size())
    return false;
  Event& event = events_[static_cast<std::size_t>(last_assert_)];
  ++event.count;
  if (event.places.size() < most_places) event.places.emplace(block, thread);
  return true;
}

void EventStream::line(const Line& origin, std::int64_t& order) {
  const std::string_view text = origin.text.substr(0, kMaxLine);
  if (repeated(text)) return;
  last_number_ = origin.number;
  frames_.line(text, origin.number, origin.is_calm);
  hints_ |= hints_in(text, origin.progress);
  note_launcher(text);
  const LineMatches& matches = matcher_.line(text, before_length_ >= kMinWrap,
                                             frames_.closed_now() ? frames_.exception() : std::string_view());
  const bool is_status = matches.assertion && checks_status(text);
  if (!is_status) {
    for (const FoundAssert& found : asserts_.line(text, origin.number, matches))
      add_assert(found, origin, order);
  }
  add_messages(text, matches, origin, order, !is_status && asserts_.took_line());
  if (frames_.closed_now())
    add_exception(text, matches, origin, order);
  else if (origin.is_error && matches.wordings.empty() && !asserts_.took_line() && speaks(text))
    add_wording(error_line(), text, origin, order, {});
  note_last(text, origin, matches);
  note_nan(text, origin);
  note_gradient(text, origin);
  note_going_on(text, origin);
  if (before_length_ < kMinWrap || origin.number > before_number_ + 1) wrap_from_ = origin.number;
  before_length_ = text.size();
  before_number_ = origin.number;
  if (!trim(text).empty()) {
    if (frames_.closed_now() && lone_code_.empty()) lone_code_ = before_;
    before_ = text.starts_with("    ") ? trim(text).substr(0, kMaxText) : std::string_view();
  }
}

void EventStream::add_messages(std::string_view text, const LineMatches& matches, const Line& origin,
                               std::int64_t& order, bool in_assert) {
  std::string whole;
  if (!in_assert && take_back_exception(text, matches, origin, whole)) text = whole;
  for (const WordingRow* row : matches.wordings) {
    if (in_assert && row->kind != WordingKind::kDeviceAssert && row->kind != WordingKind::kFault) continue;
    HostCheck check;
    if (row == matches.host_wording) {
      check = matches.host;
      // A wrapped message is in one piece only now.
      if (!whole.empty()) check = host_check_in({check.row}, {}, whole);
    }
    add_wording(*row, text, origin, order, check);
  }
}

void EventStream::add_assert(const FoundAssert& found, const Line& origin, std::int64_t& order) {
  const AssertLine& line = found.line;
  const std::string_view text = found.text;
  Event event;
  event.kind = line.form == AssertForm::kHost ? EventKind::kHostAssert : EventKind::kAssert;
  AssertSite site{line.file, line.line, line.kernel, line.condition};
  AssertMatch match = event.kind == EventKind::kHostAssert ? AssertMatch{} : find_assert(site);
  if (match.row == nullptr && found.condition != nullptr && event.kind == EventKind::kAssert &&
      is_known_assert_file(line.file))
    match = {found.condition, true};
  // What a Python exception says was checked on the host: device code raises none.
  if (event.kind == EventKind::kAssert && match.row == nullptr && !line.has_place && frames_.closed_now() &&
      !found.in_pieces)
    event.kind = EventKind::kHostAssert;
  event.assert_row = match.row;
  event.by_condition = match.by_condition;
  event.known_file = is_known_assert_file(line.file);
  event.file = line.file;
  event.file_line = line.line;
  event.kernel = line.kernel.substr(0, kMaxText);
  event.condition = line.condition.substr(0, kMaxText);
  event.cut =
      line.form == AssertForm::kDevice && (found.in_pieces || line.file.empty() || !ends_assert(text));
  if (match.row != nullptr && match.row->cause == Cause::kCompiledIndexAssert) {
    if (const std::size_t at = line.condition.rfind("< "); at != std::string_view::npos) {
      const char* const begin = line.condition.data() + at + 2;
      const char* const end = line.condition.data() + line.condition.size();
      const char* rest = std::from_chars(begin, end, event.bound).ptr;
      if (rest != end && *rest == 'L') ++rest;
      if (rest != end) event.bound = -1;  // 1 + ks0: a size that only the run knows
    }
  }
  if (line.has_place) event.places.emplace(line.block, line.thread);

  // Remember the line's shape, for floods.
  last_assert_ = -1;
  std::size_t same = events_.size();
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const Event& other = events_[i];
    if (other.kind == event.kind && other.assert_row == event.assert_row &&
        (event.assert_row != nullptr || (other.file == event.file && other.condition == event.condition)))
      same = i;
  }
  if (same < events_.size()) {
    Event& other = events_[same];
    ++other.count;
    other.by_condition = other.by_condition || event.by_condition;
    if (other.places.size() < most_places) other.places.merge(event.places);
  } else {
    push(std::move(event), text, origin, order);
    same = events_.size() - 1;
  }
  if (line.has_place) {
    const std::size_t block = text.find("block:");
    std::size_t from = block;
    Coordinate ignored;
    if (block != std::string_view::npos && read_coordinate(text, "block:", from, ignored) &&
        read_coordinate(text, "thread:", from, ignored)) {
      last_head_ = text.substr(0, block + 6);
      last_tail_ = text.substr(from);
      last_assert_ = static_cast<int>(same);
    }
  }
}

void EventStream::add_wording(const WordingRow& row, std::string_view text, const Line& origin,
                              std::int64_t& order, const HostCheck& check) {
  if (row.kind == WordingKind::kDeviceAssert) last_report_ = origin.number;
  // The advice tells that the warning of asynchronous reports is missing only where it stands right behind
  // the report: else lines were left out, and that one may be among them.
  if (!row.effect.hints.has(Hint::kDsaAdvice) || origin.number <= last_report_ + 1)
    hints_ |= row.effect.hints;
  if (row.kind == WordingKind::kHint || row.kind == WordingKind::kEvidence) return;
  for (Event& event : events_) {
    const bool is_same_xid =
        row.effect.refine != Refine::kHardwareByNumber || xid_in(event.text) == xid_in(text);
    if (event.wording == &row && is_same_xid && event.traceback == frames_.current() &&
        event.rank == rank_in(text)) {
      ++event.count;
      event.warned = event.warned && is_warning(text) && can_go_on(row);
      event.in_warning = event.in_warning && is_warning(text);
      if (event.phrase_only && !check.message.empty()) {  // a source line's words before the message itself
        event.phrase_only = false;
        event.host = check.row;
        event.host_message = check.message;
        event.text = single_spaced(trim(text).substr(0, kMaxText));
        event.number = origin.number;
      }
      return;
    }
  }
  if (is_about_errors(text) || is_loaders_note(row, origin)) return;
  Event event;
  event.wording = &row;
  event.in_warning = is_warning(text);
  event.warned =
      (is_warning(text) && can_go_on(row)) || (origin.is_calm && row.effect.meaning == Meaning::kErrorLine);
  event.warned = event.warned || (is_unraisable(origin) && row.effect.meaning == Meaning::kErrorLine);
  event.phrase_only = check.row != nullptr && check.message.empty();
  if (!check.message.empty()) event.host = check.row, event.host_message = check.message;
  if (frames_.closed_now()) event.exception = frames_.exception(), event.message = frames_.message();
  push(std::move(event), text, origin, order);
}

void EventStream::add_exception(std::string_view text, const LineMatches& matches, const Line& origin,
                                std::int64_t& order) {
  if (tells_of_failure(matches)) return;
  // A warning that quotes an exception; one that was raised as an error has nothing before its name.
  const bool unraisable = is_unraisable(origin);
  const bool warned = unraisable || is_warning(text.substr(0, text.find(frames_.exception())));
  for (Event& event : events_) {
    if (event.kind == EventKind::kException && event.exception == frames_.exception() &&
        event.message == frames_.message()) {
      event.warned = event.warned && warned;
      return;
    }
    if ((event.kind == EventKind::kHostAssert || event.kind == EventKind::kAssert) &&
        event.number == origin.number)
      return;
  }
  Event event;
  event.kind = EventKind::kException;
  event.warned = warned;
  event.exception = frames_.exception();
  event.message = frames_.message();
  push(std::move(event), text, origin, order);
  if (unraisable) warn_head(events_.back().traceback);
}

// A message that was wrapped: its first line looked like an exception or a trouble of which the catalogue
// knows nothing, and this line says what it is. True when that event was taken back; `whole` is the message
// in one piece.
bool EventStream::take_back_exception(std::string_view text, const LineMatches& matches, const Line& origin,
                                      std::string& whole) {
  const auto is_guess = [](const Event& event) {
    return event.kind == EventKind::kException ||
           (event.wording != nullptr && event.wording->phrase.empty());  // a pattern's: of half a message
  };
  if (events_.empty() || !is_guess(events_.back())) return false;
  if (!tells_of_failure(matches)) return false;
  const Event& exception = events_.back();
  if (exception.number < wrap_from_ || origin.number > before_number_ + 1) return false;
  if (begins_alike(exception.text, text) || names_its_program(text)) return false;
  const char first = text.empty() ? '\0' : text.front();
  // A message that is no more than a place in the source: what it says is on the next line.
  const std::string_view message = trim(exception.message);
  const bool is_place = message.size() > 2 && message.front() == '[' && message.back() == ']' &&
                        is_digit(message[message.size() - 2]);
  const bool goes_on =
      before_length_ >= kMinWrap && !frames_.closed_now() &&
      (is_place || (first >= 'a' && first <= 'z') || first == ' ' || first == '-' || first == '>');
  if (!matches.spanning && !goes_on) return false;
  whole = exception.text + std::string(text);
  events_.pop_back();
  return true;
}

// How many of the last steps whose gradients the log tells of had none that is finite.
void EventStream::note_gradient(std::string_view text, const Line& origin) {
  switch (gradient_norm_in(text)) {
    case GradientNorm::kNotSaid:
      return;
    case GradientNorm::kNan:
      ++nan_gradients_;
      nan_gradient_ = {std::string(text.substr(0, kMaxText)), std::string(origin.source), origin.number};
      return;
    case GradientNorm::kNanUnscaled:
      nan_gradients_ += kNanGradients;
      nan_gradient_ = {std::string(text.substr(0, kMaxText)), std::string(origin.source), origin.number};
      return;
    case GradientNorm::kFinite:
      nan_gradients_ = 0;
      return;
    case GradientNorm::kSkipped:
      nan_gradients_ = kScaled;
      return;
  }
}

// The values that PyTorch shows below a distribution's refusal, and losses that are not finite.
void EventStream::note_nan(std::string_view text, const Line& origin) {
  constexpr std::int64_t kJustBehind = 2;  // lines
  if (!contains(text, "nan") && !contains(text, "NaN")) return;
  if (!events_.empty() && events_.back().host != nullptr && contains(text, "tensor(") &&
      origin.number <= events_.back().number + kJustBehind)
    events_.back().shows_nan = true;
  if (reports_nan_loss(text))
    nan_loss_ = {std::string(text.substr(0, kMaxText)), std::string(origin.source), origin.number};
}

// Losses that are not finite, and then a traceback of which the end is missing.
std::optional<Event> EventStream::nan_before_cut() const {
  constexpr std::int64_t kJustBefore = 3;  // lines
  if (nan_loss_.text.empty() || frames_.current() < 0) return std::nullopt;
  const Traceback& last = tracebacks()[static_cast<std::size_t>(frames_.current())];
  if (last.closed || last.first < nan_loss_.number || last.first > nan_loss_.number + kJustBefore)
    return std::nullopt;
  return event_of(nan_loss_, nan_loss());
}

void EventStream::note_last(std::string_view text, const Line& origin, const LineMatches& matches) {
  if (piece_.text.empty() && (contains(text, "hread: [") || contains(text, "Assertion `")))
    piece_ = {std::string(text.substr(0, kMaxText)), std::string(origin.source), origin.number};
  if (std::ranges::none_of(text, [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; })) {
    numbers_follow_ = numbers_follow_ || std::ranges::count_if(text, is_digit) > 1;
    return;
  }
  numbers_follow_ = false;
  const bool is_known = std::ranges::any_of(matches.wordings, [](const WordingRow* row) {
    return row->kind == WordingKind::kHint || row->kind == WordingKind::kEvidence;
  });
  const auto found =
      std::ranges::find_if(matches.wordings, [](const WordingRow* row) { return row->effect.if_it_goes_on; });
  const WordingRow* const missing = found == matches.wordings.end() ? nullptr : *found;
  if (missing == nullptr && !last_.empty() && last_.back().missing != nullptr && only_adds(text)) return;
  if (asks(text)) return;
  // Python shows the source line that warned below the warning.
  const bool is_source_of_warning = !last_.empty() && last_.back().number + 1 == origin.number &&
                                    text.starts_with("  ") && is_pythons_warning(last_.back().text);
  KeptLine line{std::string(text.substr(0, kMaxText)),
                std::string(origin.source),
                origin.number,
                is_known || is_warning(text) || is_source_of_warning || is_unraisable(origin),
                origin.is_calm,
                missing};
  if (is_source_of_warning && last_.back().missing != nullptr) return;
  if (last_.size() == kKeptLines) last_.pop_front();
  last_.push_back(std::move(line));
}

Event EventStream::event_of(const KeptLine& line, const WordingRow& row) {
  Event event;
  event.wording = &row;
  event.count = 1;
  event.number = line.number;
  event.source = line.source;
  event.text = single_spaced(trim(line.text));
  return event;
}

std::optional<Event> EventStream::open_end() const {
  if (last_.empty()) return std::nullopt;
  const KeptLine& line = last_.back();
  if (line.missing != nullptr) return event_of(line, *at_end(*line.missing));
  if (stops_midway(line.text)) return event_of(line, unfinished());
  const bool is_ordinary = line.excused || line.calm || is_about_errors(line.text) ||
                           judge_last(line.text, true) == LastLine::kCalm || ends_ordinarily(line.text) ||
                           (numbers_follow_ && !complains(line.text));
  if (is_ordinary) return std::nullopt;
  return event_of(line, trapline::open_end());
}

bool EventStream::ended_well() const {
  static const RE2* const success =
      new RE2(R"re((?i)(?:^|[^\w-])(?:done|finished|completed?|success\w*|saved)\b)re", RE2::Latin1);
  return !last_.empty() && std::ranges::any_of(last_, [](const KeptLine& line) {
    return judge_last(line.text, true) == LastLine::kWell && RE2::PartialMatch(line.text, *success);
  });
}

std::optional<Event> EventStream::last_words() const {
  if (!piece_.text.empty()) return event_of(piece_, piece_of_assertion());
  if (!last_.empty() && reports_nan_loss(last_.back().text)) return event_of(last_.back(), nan_loss());
  if (nan_gradients_ >= kNanGradients && last_number_ - nan_gradient_.number < kNearEnd)
    return event_of(nan_gradient_, nan_loss());
  for (std::size_t i = last_.size(); i-- > 0;) {
    const KeptLine& line = last_[i];
    if (line.excused || is_about_errors(line.text)) continue;
    const LastLine said = judge_last(line.text, i + 1 == last_.size());
    if (said == LastLine::kWell) break;
    if (said == LastLine::kBad) return event_of(line, trapline::last_words());
  }
  return std::nullopt;
}

// torchrun's summary: "Root Cause (first observed failure)", then the process.
void EventStream::note_launcher(std::string_view text) {
  if (contains(text, "(first observed failure)")) launcher_speaks_ = true;
  if (launcher_speaks_ && first_failed_rank_ < 0 && contains(text, "(local_rank"))
    first_failed_rank_ = rank_in(text);
}

void EventStream::finish(std::int64_t& order) {
  Line origin;
  origin.source = source;
  origin.number = last_number_;
  for (const FoundAssert& found : asserts_.finish()) {
    const bool is_legible = std::any_of(events_.begin(), events_.end(),
                                        [](const Event& event) { return event.kind == EventKind::kAssert; });
    if (!found.end_missing || !is_legible) add_assert(found, origin, order);
  }
}

void EventStream::compact() {
  bool cause = false;
  for (Event& event : events_) {
    event.places.clear();
    cause = cause || event.kind != EventKind::kWording ||
            (event.wording->kind != WordingKind::kPeer && event.wording->kind != WordingKind::kFollower &&
             event.wording->kind != WordingKind::kContext);
  }
  if (!cause) {  // a victim: its message is enough
    frames_ = FrameParser();
    if (events_.size() > 2) events_.resize(2);
  }
  events_.shrink_to_fit();
  last_head_ = {};
  last_tail_ = {};
  before_ = {};
  if (!events_.empty()) last_ = {};
  last_assert_ = -1;
  matcher_ = {};
  asserts_ = {};
}

}  // namespace trapline
