// Lines that somebody broke in two: their pieces are put together again.
#include <algorithm>

#include "log/events/assert_line.hpp"
#include "log/events/event_stream.hpp"

namespace trapline {
namespace {

constexpr std::size_t kLongestOpen = 2000;  // characters of an assertion in pieces

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

// A message that was wrapped: its first line looked like an exception of which the catalogue knows nothing,
// and this line says what it is. True when that event was taken back; `whole` is the message in one piece.
bool EventStream::take_back_exception(std::string_view text, bool spanning, const Line& origin,
                                      std::string& whole) {
  if (events_.empty() || events_.back().kind != EventKind::kException) return false;
  if (std::none_of(hits_.begin(), hits_.end(), [](const WordingRow* row) { return row->speaks(); }))
    return false;
  const Event& exception = events_.back();
  if (exception.number < wrap_from_ || origin.number > before_number_ + 1) return false;
  const char first = text.empty() ? '\0' : text.front();
  const bool goes_on = before_length_ >= kShortestWrap && !frames_.closed_now() &&
                       ((first >= 'a' && first <= 'z') || first == ' ' || first == '-' || first == '>');
  if (!spanning && !goes_on) return false;
  whole = exception.text + std::string(text);
  events_.pop_back();
  return true;
}

// An assertion line was begun and broken off: `text` may be its end. True when that made an event.
bool EventStream::finish_open(std::string_view text, const Line& origin, std::int64_t& order) {
  if (open_text_.empty()) return false;
  if (origin.number > open_number_ + 1 || contains(text, "block:") || open_text_.size() > kLongestOpen) {
    drop_open();
    return false;
  }
  if (open_text_.ends_with('=')) open_text_.pop_back();  // mail as quoted-printable ends broken lines so
  open_text_ += text;
  open_number_ = origin.number;
  if (conditions_.empty() && !ends_assert(open_text_)) return false;
  const std::string whole = std::move(open_text_);
  open_text_.clear();
  const auto line = parse_assert(whole);
  if (!line || line->form != AssertForm::kDevice) return false;
  pieced_ = true;
  add_assert(*line, whole, origin, order);
  pieced_ = false;
  return true;
}

// Its end never came. It counts only when no other assertion is legible.
void EventStream::drop_open() {
  if (cut_text_.empty()) cut_text_ = std::move(open_text_);
  open_text_.clear();
}

void EventStream::finish(std::int64_t& order) {
  Line origin;
  origin.source = source;
  origin.number = last_number_;
  flush_site(origin, order);
  drop_open();
  const std::string cut = std::move(cut_text_);
  cut_text_.clear();
  if (cut.empty() || std::any_of(events_.begin(), events_.end(),
                                 [](const Event& event) { return event.kind == EventKind::kAssert; }))
    return;
  conditions_.clear();
  if (const auto line = parse_assert(cut); line && line->form == AssertForm::kDevice)
    add_assert(*line, cut, origin, order);
}

}  // namespace trapline
