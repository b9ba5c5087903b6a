#include "log/clean/line_maker.hpp"

#include <algorithm>

#include "log/clean/literal_breaks.hpp"
#include "log/clean/progress.hpp"
#include "log/clean/text.hpp"
#include "log/clean/tidy.hpp"

namespace trapline {
namespace {

constexpr int kMaxNested = 3;  // a container's JSON around a logger's

bool is_maybe_json(std::string_view text) {
  if (text.starts_with('{')) return text.find('}') != text.npos;
  return text.starts_with('[') && text.ends_with(']') && text.find('"') != text.npos;
}

}  // namespace

void LineMaker::begin(std::string_view source, Origin origin) {
  source_ = source;
  path_ = origin;
  replaced_ = false;
  progress_ = -1;
  recorded_.clear();
  recorded_at_ = -1;
}

void LineMaker::end() { tell_recorded(true); }

// asciinema: [12.345, "o", "what the terminal printed"], in pieces that end anywhere.
bool LineMaker::take_recording(std::string_view text, const Line& line) {
  constexpr std::string_view kOutput = "\"o\"";
  constexpr std::size_t kMost = std::size_t{64} * 1024;
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (text.size() < 12 || text[0] != '[' || (text[1] < '0' || text[1] > '9') || !text.ends_with("\"]"))
    return false;
  std::size_t at = text.find_first_not_of("0123456789.", 1);
  if (at == text.npos || text[at] != ',') return false;
  at = text.find_first_not_of(' ', at + 1);
  if (at == text.npos || !text.substr(at).starts_with(kOutput)) return false;
  at = text.find('"', at + kOutput.size());
  if (at == text.npos || at + 3 > text.size() || text.find('\r') != text.npos) return false;
  if (line.number != recorded_at_ + 1) tell_recorded(true);
  recorded_at_ = line.number;
  unescape_json(text.substr(at + 1, text.size() - at - 3), recorded_);
  tell_recorded(recorded_.size() > kMost);
  return true;
}

void LineMaker::tell_recorded(bool all) {
  if (recorded_.empty()) return;
  Line line;
  line.source = source_;
  line.number = recorded_at_;
  const std::string recorded = std::move(recorded_);
  recorded_.clear();
  std::string_view rest = recorded;
  std::string cleaned;
  while (!rest.empty()) {
    const std::size_t feed = rest.find('\n');
    if (feed == rest.npos && !all) break;
    Origin origin;
    segment(clean_text(rest.substr(0, feed), cleaned, replaced_), line, origin, 1);
    rest.remove_prefix(feed == rest.npos ? rest.size() : feed + 1);
  }
  recorded_ = rest;
}

void LineMaker::raw_line(std::string_view raw, std::int64_t number, bool shortened) {
  Line line;
  line.source = source_;
  line.number = number;
  line.shortened = shortened;
  if (raw.starts_with('[') && take_recording(raw, line)) return;
  if (!recorded_.empty()) tell_recorded(true);
  std::string_view text = clean_text(raw, clean_, replaced_);
  Origin origin;
  // What a carriage return overwrote was on the screen once: a bar is dropped, text is not.
  while (true) {
    const std::size_t back = text.find('\r');
    if (back == text.npos) break;
    const std::string_view overwritten = text.substr(0, back);
    if (is_progress_bar(overwritten))
      note_progress(overwritten);
    else if (!overwritten.empty())
      segment(overwritten, line, origin, 0);
    text.remove_prefix(back + 1);
  }
  segment(text, line, origin, 0);
}

void LineMaker::segment(std::string_view text, Line& line, Origin& origin, int depth) {
  text = without_prefix(text, origin);
  const std::string_view barred = text;
  text = without_progress_bar(text);
  if (text.size() < barred.size()) note_progress(barred.substr(0, barred.size() - text.size()));
  const std::string_view unbarred =
      without_prefix(text, origin);  // "3%|#| 1/9 [00:05<02:05, 5.2it/s][rank1]: text"
  text = unbarred;
  JsonLine json;
  if (depth < kMaxNested && is_maybe_json(text) && read_json_line(text, json)) {
    if (json.rank >= 0) origin.rank = static_cast<int>(std::min<std::int64_t>(json.rank, 1'000'000));
    if (json.pid >= 0) origin.pid = json.pid;
    if (!json.host.empty()) origin.host = json.host;
    origin.is_error = origin.is_error || json.is_error;
    origin.is_calm = origin.is_calm || json.is_calm;
    // The message is a line of its own right: colours, prefixes and line breaks of its own.
    bool ignored = false;
    std::string cleaned;
    std::string_view rest = json.text;
    while (true) {
      const std::size_t feed = rest.find('\n');
      segment(clean_text(rest.substr(0, feed), cleaned, ignored), line, origin, depth + 1);
      if (feed == rest.npos) break;
      rest.remove_prefix(feed + 1);
    }
    return;
  }
  split_literal_newlines(text, unescaped_, parts_);
  for (const std::string_view part : parts_) emit(part, line, origin);
}

void LineMaker::note_progress(std::string_view bar) {
  if (const int progress = progress_in(bar); progress >= 0) progress_ = progress;
}

void LineMaker::emit(std::string_view text, Line& line, const Origin& origin) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  line.text = tidy(text, tidied_);
  line.rank = origin.rank >= 0 ? origin.rank : path_.rank;
  line.pid = origin.pid >= 0 ? origin.pid : path_.pid;
  line.host = origin.host;
  line.is_error = origin.is_error;
  line.is_calm = origin.is_calm && !origin.is_error;
  line.progress = progress_;
  sink_.line(line);
}

}  // namespace trapline
