#include "log/clean/line_maker.hpp"

#include <algorithm>

#include "log/clean/literal_breaks.hpp"
#include "log/clean/progress.hpp"
#include "log/clean/text.hpp"
#include "log/clean/tidy.hpp"

namespace trapline {

void LineMaker::begin(std::string_view source, Origin origin) {
  source_ = source;
  path_ = origin;
  replaced_ = false;
  progress_ = -1;
}

void LineMaker::raw_line(std::string_view raw, std::int64_t number, bool shortened) {
  Line line;
  line.source = source_;
  line.number = number;
  line.shortened = shortened;
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
  if (depth == 0 && text.starts_with('{') && text.find('}') != text.npos && read_json_line(text, json_)) {
    if (json_.rank >= 0) origin.rank = static_cast<int>(std::min<std::int64_t>(json_.rank, 1'000'000));
    if (json_.pid >= 0) origin.pid = json_.pid;
    if (!json_.host.empty()) origin.host = json_.host;
    // The message is a line of its own right: colours, prefixes and line breaks of its own.
    bool ignored = false;
    std::string cleaned;
    std::string_view rest = json_.text;
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
  line.progress = progress_;
  sink_.line(line);
}

}  // namespace trapline
