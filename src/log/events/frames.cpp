#include "log/events/frames.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "log/clean/text.hpp"

namespace trapline {
namespace {

constexpr std::size_t kMaxTracebacks = 12, kMaxFrames = 64, kKeptHead = 8;
constexpr std::size_t kMaxCode = 300, kMaxLine = 4000;

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(const re2::StringPiece& text) { return {text.data(), text.size()}; }

struct Patterns {
  RE2::Options options = [] {
    RE2::Options o;
    o.set_encoding(RE2::Options::EncodingLatin1);
    o.set_log_errors(false);
    return o;
  }();
  // File "x.py", line 3, in f    (quotes may be lost or escaped; "in <module>" may be eaten)
  RE2 python{R"re(File\s+\\?["']?([^"',]+?)\\?["']?,\s*line\s+(\d{1,8})(?:,\s*in\b\s*(.*))?)re", options};
  // x.py in f(args)    <ipython-input-1-...> in <module>()
  RE2 notebook{
      R"re(^\s*(?:File )?(<ipython-input-[^>]*>|<\[command-[^>]*>|/?[\w.~/\\:+ -]*\.pyx?|/tmp/ipykernel_\S+) in ([\w<>.]+ ?(?:\(.*|$)))re",
      options};
  RE2 headless{R"re(^in ([\w<>.]+)\(.*\)?$)re", options};
  // File x.py:3, in f(args)    Cell In[3], line 4    Input In [3], in <cell line: 4>()
  RE2 cell_file{R"re(^\s*File ([^"',]+?):(\d{1,8}),? in ([\w<>.]+))re", options};
  RE2 cell{R"re(^\s*((?:Cell |Input )In ?\[\d+\])(?:, line |, in <cell line: )(\d{1,8}))re", options};
  RE2 arrow{R"re(^\s*-{1,6}>\s*(\d{1,8})(?:\s(.*))?$)re", options};
  RE2 box{R"re(^\s*([^\s"].*?\.pyx?|<[\w-]+>):(\d{1,8}) in ([\w<>.]+))re", options};
  RE2 whole_box{R"re(/[^\s"]*\.pyx?:\d{1,8} in [\w<>.]+)re", options};
  RE2 box_arrow{R"re(^\s*(?:\xE2\x9D\xB1|>|\xE2\x9D\xAF)\s*(\d{1,8})\s+(?:\xE2\x94\x82)?(.*)$)re", options};
  RE2 prose{R"re(^\s*Line (\d{1,8}) of (\S+) in ([\w<>.]+):?)re", options};
  RE2 lua{R"re(^\s*([\w./~-]+\.lua):(\d{1,8}): in (.*)$)re", options};
  RE2 exception{
      R"re((?:^|[\s|*_`>\]:'"(])((?:[A-Za-z_]\w*\.)*([A-Z]\w*(?:Error|Exception|Interrupt)))(?:\s*: (.*)|\s*:?\s*)$)re",
      options};
  // What ends a traceback is an exception whatever its name: traceback.py prints "qualified.name: message" at
  // the margin.
  RE2 margin{R"re(^((?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*))(?:: (.*))?$)re", options};
};

const Patterns& patterns() {
  static const auto* const all = new Patterns;
  return *all;
}

bool all_marks(std::string_view text) {
  return !text.empty() && text.find_first_not_of("^~ -") == std::string_view::npos;
}

}  // namespace

const LogFrame* Traceback::deepest_user() const {
  const auto found = std::find_if(frames.rbegin(), frames.rend(), [](const LogFrame& f) { return f.user; });
  return found == frames.rend() ? nullptr : &*found;
}

bool is_user_file(std::string_view file) {
  std::string path(file);
  std::replace(path.begin(), path.end(), '\\', '/');
  for (const std::string_view part :
       {"site-packages/", "dist-packages/", "/lib/python", "/lib64/python", "/local/lib/python",
        "/share/lua/", "/torch/install/", "importlib/", "/pytorch/torch/", "/Lib/runpy.py", "/anaconda3/",
        "/miniconda3/envs/", ".egg/"}) {
    if (path.find(part) != std::string::npos) return false;
  }
  static const RE2* const windows = new RE2(R"re((?i)/python[0-9.]*/lib/)re");
  if (RE2::PartialMatch(path, *windows)) return false;
  if (path.find("/lib/python3") != std::string::npos || path.find("/python3.") != std::string::npos)
    return false;
  if (path.find(".local/lib/python") != std::string::npos) return false;
  for (const std::string_view start :
       {"<frozen", "<string>", "<decorator", "<__array", "cupy", "multiprocessing/", "torch/"}) {
    if (path.starts_with(start)) return false;
  }
  return !path.empty() && !path.ends_with(".pyx") && path != "[C]";
}

void FrameParser::open(std::int64_t number) {
  if (tracebacks_.size() >= kMaxTracebacks) {
    // The first tracebacks tell more than the last ones; one place is kept for the latest.
    tracebacks_.pop_back();
  }
  tracebacks_.emplace_back();
  tracebacks_.back().first = tracebacks_.back().last = number;
  tracebacks_.back().calm = calm_;
  current_ = static_cast<int>(tracebacks_.size()) - 1;
  wants_code_ = false;
  partial_.clear();
}

void FrameParser::add(std::string_view file, std::int64_t line, std::string_view function, FrameStyle style,
                      std::int64_t number, std::string_view prefix) {
  if (current_ < 0 || tracebacks_[static_cast<std::size_t>(current_)].closed) open(number);
  Traceback& traceback = tracebacks_[static_cast<std::size_t>(current_)];
  if (traceback.frames.size() >= kMaxFrames)
    traceback.frames.erase(traceback.frames.begin() + static_cast<std::ptrdiff_t>(kKeptHead));
  LogFrame frame;
  frame.frame.file = trim(file).substr(0, kMaxCode);
  frame.frame.line = line;
  const std::string_view name = trim(function);
  frame.frame.function = name.substr(0, std::min(name.find_first_of("(\n"), kMaxCode));
  frame.user = is_user_file(frame.frame.file);
  frame.frame.user = frame.user;
  frame.style = style;
  frame.number = number;
  traceback.last = number;
  if (style == FrameStyle::kLua) {
    traceback.frames.insert(traceback.frames.begin(), std::move(frame));  // innermost first in the log
    wants_code_ = false;
  } else {
    traceback.frames.push_back(std::move(frame));
    wants_code_ = style == FrameStyle::kPython || style == FrameStyle::kProse;
  }
  last_frame_ = number;
  prefix_ = prefix;
}

std::string_view FrameParser::without_prefix(std::string_view text) const {
  if (prefix_.empty() || text.size() < prefix_.size()) return text;
  for (std::size_t i = 0; i < prefix_.size(); ++i) {
    const bool digits = prefix_[i] >= '0' && prefix_[i] <= '9' && text[i] >= '0' && text[i] <= '9';
    if (prefix_[i] != text[i] && !digits) return text;
  }
  return text.substr(prefix_.size());
}

bool FrameParser::python_frames(std::string_view text, std::int64_t number) {
  // Torn lines hold several beginnings; each is tried up to the next one.
  bool any = false;
  for (std::size_t at = text.find("File "); at != std::string_view::npos;) {
    const std::size_t next = text.find("File \"", at + 5);
    const std::string_view part = text.substr(at, next == std::string_view::npos ? next : next - at);
    re2::StringPiece file, function;
    std::int64_t line = 0;
    if (RE2::PartialMatch(piece(part), patterns().python, &file, &line, &function)) {
      std::size_t prefix = at;
      while (prefix > 0 && text[prefix - 1] == ' ') --prefix;
      add(view(file), line, view(function), FrameStyle::kPython, number,
          any ? std::string_view() : text.substr(0, prefix));
      any = true;
    }
    at = next;
  }
  return any;
}

bool FrameParser::notebook_frame(std::string_view text, std::int64_t number) {
  const Patterns& p = patterns();
  re2::StringPiece file, function, code;
  std::int64_t line = 0;
  if (RE2::PartialMatch(piece(text), p.cell_file, &file, &line, &function) ||
      RE2::PartialMatch(piece(text), p.cell, &file, &line)) {
    add(view(file), line, view(function), FrameStyle::kNotebook, number, {});
    return true;
  }
  if (RE2::PartialMatch(piece(text), p.notebook, &file, &function)) {
    add(view(file), 0, view(function), FrameStyle::kNotebook, number, {});
    return true;
  }
  if (RE2::PartialMatch(piece(text), p.headless, &function)) {
    add("", 0, view(function), FrameStyle::kNotebook, number, {});
    return true;
  }
  if (RE2::PartialMatch(piece(text), p.arrow, &line, &code) && current_ >= 0) {
    Traceback& traceback = tracebacks_[static_cast<std::size_t>(current_)];
    if (!traceback.frames.empty() && traceback.frames.back().style == FrameStyle::kNotebook) {
      LogFrame& frame = traceback.frames.back();
      if (frame.frame.line == 0) frame.frame.line = line;
      if (frame.frame.line == line) frame.frame.code = trim(view(code)).substr(0, kMaxCode);
      return true;
    }
  }
  return false;
}

bool FrameParser::box_frame(std::string_view text, std::int64_t number) {
  const Patterns& p = patterns();
  re2::StringPiece file, function, code;
  std::int64_t line = 0;
  if (RE2::PartialMatch(piece(text), p.box, &file, &line, &function)) {
    add(view(file), line, view(function), FrameStyle::kBox, number, {});
    return true;
  }
  if (RE2::PartialMatch(piece(text), p.box_arrow, &line, &code) && current_ >= 0) {
    Traceback& traceback = tracebacks_[static_cast<std::size_t>(current_)];
    if (!traceback.frames.empty() && traceback.frames.back().style == FrameStyle::kBox &&
        traceback.frames.back().frame.line == line)
      traceback.frames.back().frame.code = trim(view(code)).substr(0, kMaxCode);
    return true;
  }
  return false;
}

bool FrameParser::other_frame(std::string_view text, std::int64_t number) {
  re2::StringPiece file, function;
  std::int64_t line = 0;
  if (RE2::PartialMatch(piece(text), patterns().prose, &line, &file, &function)) {
    add(view(file), line, view(function), FrameStyle::kProse, number, {});
    return true;
  }
  if (RE2::PartialMatch(piece(text), patterns().lua, &file, &line, &function)) {
    add(view(file), line, view(function), FrameStyle::kLua, number, {});
    return true;
  }
  return false;
}

bool FrameParser::code_line(std::string_view text) {
  const std::string_view code = trim(without_prefix(text));
  if (code.empty()) return true;  // a blank line between a frame and its code
  if (all_marks(code) || code.starts_with("\u2502") || code.starts_with("\u2514")) return true;
  wants_code_ = false;
  tracebacks_[static_cast<std::size_t>(current_)].frames.back().frame.code = code.substr(0, kMaxCode);
  return true;
}

bool FrameParser::ends_traceback(std::string_view text, std::int64_t number, re2::StringPiece& full,
                                 re2::StringPiece& name, re2::StringPiece& message) const {
  constexpr std::int64_t kMarks = 3;  // lines with carets and blanks below the last source line
  if (current_ < 0 || wants_code_) return false;
  const Traceback& traceback = tracebacks_[static_cast<std::size_t>(current_)];
  if (traceback.closed || traceback.frames.empty() || traceback.frames.back().frame.code.empty() ||
      traceback.frames.back().style != FrameStyle::kPython || number - last_frame_ > 1 + kMarks)
    return false;
  if (!RE2::FullMatch(piece(without_prefix(text)), patterns().margin, &full, &name, &message)) return false;
  const bool is_class = name[0] >= 'A' && name[0] <= 'Z';
  return full.size() > name.size() || (is_class && (message.data() != nullptr || name.size() > 3));
}

void FrameParser::exception_line(std::string_view text, std::int64_t number) {
  const bool is_named = text.find("Error") != std::string_view::npos ||
                        text.find("Exception") != std::string_view::npos ||
                        text.find("Interrupt") != std::string_view::npos;
  re2::StringPiece full, name, message;
  if (!(is_named && RE2::PartialMatch(piece(text), patterns().exception, &full, &name, &message)) &&
      !ends_traceback(text, number, full, name, message))
    return;
  exception_ = view(name);
  message_ = trim(view(message));
  closed_now_ = true;
  // Far from any frame it is a message of its own.
  if (current_ >= 0 && number - tracebacks_[static_cast<std::size_t>(current_)].last > 40) current_ = -1;
  if (current_ < 0 || tracebacks_[static_cast<std::size_t>(current_)].closed) {
    if (current_ >= 0 && tracebacks_[static_cast<std::size_t>(current_)].last + 1 >= number) return;
    open(number);
  }
  Traceback& traceback = tracebacks_[static_cast<std::size_t>(current_)];
  traceback.exception = exception_;
  traceback.message = message_.substr(0, kMaxLine);
  traceback.last = number;
  traceback.closed = true;
  wants_code_ = false;
}

void FrameParser::line(std::string_view text, std::int64_t number, bool is_calm) {
  calm_ = is_calm;
  closed_now_ = false;
  text = text.substr(0, kMaxLine);
  if (!partial_.empty()) {
    std::string joined = std::move(partial_);
    partial_.clear();
    joined += without_prefix(text);
    if (python_frames(joined, number) || box_frame(joined, number)) return;
  }
  if (text.find("raceback (most recent call last)") != std::string_view::npos ||
      text.find("stack traceback:") != std::string_view::npos) {
    const bool torn = current_ >= 0 && !tracebacks_[static_cast<std::size_t>(current_)].closed &&
                      tracebacks_[static_cast<std::size_t>(current_)].frames.empty();
    if (!torn) open(number);
    if (text.find("File \"") == std::string_view::npos) return;
  }
  if (text.find("File ") != std::string_view::npos) {
    if (python_frames(text, number)) {
      // A traceback that was pasted as one line has its exception behind the last frame.
      const std::size_t last = text.rfind("File ");
      if (text.find("raceback (most recent call last)") < last) exception_line(text.substr(last), number);
      return;
    }
    const std::size_t at = text.rfind("File \"");
    if (at != std::string_view::npos && text.find(", line", at) == std::string_view::npos) {
      partial_ = text.substr(at);
      return;
    }
  }
  const std::string_view body = trim(text);
  const bool open_now = current_ >= 0 && !tracebacks_[static_cast<std::size_t>(current_)].closed;
  if (text.find(" in ") != std::string_view::npos || text.find("In[") != std::string_view::npos ||
      text.find("In [") != std::string_view::npos || body.starts_with("in ") || body.starts_with("-")) {
    if (notebook_frame(text, number) || (open_now && box_frame(text, number)) || other_frame(text, number))
      return;
    // A frame of a box whose head was cut off has its whole line.
    if (RE2::FullMatch(piece(body), patterns().whole_box) && box_frame(body, number)) return;
  } else if (open_now &&
             (body.starts_with("\u2771") || body.starts_with(">") || body.starts_with("\u276F"))) {
    if (box_frame(body, number)) return;
  }
  // A path at the width of a box: the next line has the rest of it.
  if ((open_now || body.find("/lib/py") != std::string_view::npos) && body.starts_with("/") &&
      body.find(' ') == std::string_view::npos)
    partial_ = body;
  const std::size_t before = tracebacks_.size();
  exception_line(text, number);
  if (closed_now_ || tracebacks_.size() != before) return;
  if (wants_code_ && current_ >= 0 && number - last_frame_ <= 3) code_line(text);
}

}  // namespace trapline
