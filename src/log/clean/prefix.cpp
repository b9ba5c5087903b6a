#include "log/clean/prefix.hpp"

#include <algorithm>

#include "log/clean/prefix_cursor.hpp"

namespace trapline {
namespace {

using prefix::Cursor;

// The functions named take_... take one prefix from the cursor's start and return true, or false; the cursor
// of a failed one is thrown away by its caller, unless its comment says that it stays.

void note_rank(Origin& origin, std::int64_t rank) {
  if (rank >= 0 && rank < 1'000'000) origin.rank = static_cast<int>(rank);
}

bool take_level(Cursor& at) {
  for (const std::string_view level : {"error", "warning", "warn", "info", "debug", "critical", "fatal",
                                       "trace", "notice", "exception", "success"}) {
    Cursor tried = at;
    if (!tried.take_word(level) || prefix::word(tried.peek())) continue;
    at = tried;
    const bool is_error = level == "error" || level == "critical" || level == "fatal";
    at.is_error = at.is_error || is_error;
    at.is_calm = at.is_calm || (!is_error && level != "exception");
    return true;
  }
  return false;
}

// 10:22:19 with an optional fraction and zone.
bool take_clock(Cursor& at) {
  Cursor tried = at;
  if (!tried.digits(2, 2) || !tried.take(':') || !tried.digits(2, 2) || !tried.take(':') ||
      !tried.digits(2, 2)) {
    return false;
  }
  if (tried.peek() == '.' || tried.peek() == ',') {
    Cursor fraction = tried;
    fraction.take(tried.peek());
    if (fraction.digits(1, 9)) tried = fraction;
  }
  if (!tried.take('Z') && (tried.peek() == '+' || tried.peek() == '-')) {
    Cursor zone = tried;
    zone.take(tried.peek());
    if (zone.digits(2, 2) && (zone.take(':') || true) && zone.digits(2, 2)) tried = zone;
    if (zone.rest() != tried.rest()) {
      Cursor four = tried;
      four.take(tried.peek());
      if (four.digits(4, 4)) tried = four;
    }
  }
  at = tried;
  return true;
}

// 2024-11-11T10:22:19.123Z, 2024-11-11 10:22:19,123, 2024/11/11 10:22:19, 11-11 10:22:19, 11/11/2024
// 10:22:19.
bool take_date_time(Cursor& at) {
  Cursor tried = at;
  const char separator = prefix::digit(tried.peek(2)) ? tried.peek(4) : tried.peek(2);
  if (separator != '-' && separator != '/' && separator != '.') return false;
  if (!tried.digits(2, 4) || !tried.take(separator) || !tried.digits(2, 2)) return false;
  if (tried.take(separator) && !tried.digits(2, 4)) return false;
  if (!tried.take('T') && tried.spaces() == 0) return false;
  if (!take_clock(tried)) return false;
  at = tried;
  return true;
}

bool take_month(Cursor& at) {
  for (const std::string_view month :
       {"Jan ", "Feb ", "Mar ", "Apr ", "May ", "Jun ", "Jul ", "Aug ", "Sep ", "Oct ", "Nov ", "Dec "}) {
    if (at.take(month)) return true;
  }
  return false;
}

// One space (or tab) belongs to the prefix; more are the text's indentation.
void one_space(Cursor& at) {
  if (!at.take(' ')) at.take('\t');
}

// [rank0]: / [rank0] / rank 0: / [Rank 0]: / [RANK 0]: / [rank: 0] / [default3]: (torchrun) / [GPU 0]:
bool take_rank(Cursor& at, Origin& origin) {
  const bool bracket = at.take('[');
  const bool is_rank = at.take_word("rank");
  if (!is_rank && !(bracket && (at.take_word("default") || at.take_word("gpu")))) return false;
  if (!at.take(':') && !bracket) at.take('_');
  at.spaces();
  std::int64_t rank = 0;
  if (!at.number(rank, 1, 6)) return false;
  if (bracket) {
    if (!at.take(']')) return false;
    const bool colon = at.take(':');
    // "[Rank 7] Watchdog caught ...": without a colon it may be the message's own tag; note it, leave it.
    note_rank(origin, rank);
    if (!colon) return false;
  } else {
    Cursor bar = at;  // "rank:  3 | 11:45:18 CRITICAL | text"
    bar.spaces();
    if (bar.take('|')) {
      at = bar;
    } else if (!at.take(':')) {
      return false;
    }
    note_rank(origin, rank);
  }
  one_space(at);
  return true;
}

// [1,0]<stderr>: / [1,mpirank:3,algo-1]<stderr>: / [prterun-host-123@1,0]<stdout>:
bool take_mpirun(Cursor& at, Origin& origin) {
  if (!at.take('[')) return false;
  const std::string_view job = at.run([](char c) { return prefix::name(c) || c == '@'; });
  if (job.empty() || !at.take(',')) return false;
  at.take("mpirank:");
  std::int64_t rank = 0;
  if (!at.number(rank, 1, 6)) return false;
  std::string_view host;
  if (at.take(',')) host = at.run(prefix::name);
  if (!at.take("]<")) return false;
  if (!at.take("stderr>:") && !at.take("stdout>:") && !at.take("stderr>") && !at.take("stdout>"))
    return false;
  note_rank(origin, rank);
  if (!host.empty()) origin.host = host;
  // mpirun itself writes no space: one that is there is the text's, unless it stands alone.
  if (at.peek() == ' ' && at.peek(1) != ' ') at.take(' ');
  return true;
}

// (RayWorkerVllm pid=22809, ip=10.0.0.1) / (VllmWorker rank=1 pid=527) / (Worker_TP3 pid=9) / (EngineCore_0
// pid=1)
bool take_actor(Cursor& at, Origin& origin) {
  if (!at.take('(')) return false;
  const std::string_view actor = at.run([](char c) { return c != ')' && c != '=' && c != '\n'; }, 96);
  Cursor fields = at;
  std::string_view key =
      actor.substr(std::min(actor.find_last_of(" ,"), actor.size() - (actor.empty() ? 0 : 1)));
  Origin said;
  bool has_pid = false;
  while (fields.take('=')) {
    while (!key.empty() && !prefix::word(key.front())) key.remove_prefix(1);
    std::int64_t value = 0;
    if (key == "pid" && fields.number(value)) {
      said.pid = value;
      has_pid = true;
    } else if (key == "rank" && fields.number(value, 1, 6)) {
      note_rank(said, value);
    } else if (key == "ip") {
      said.host = fields.run(prefix::name);
    } else {
      fields.run([](char c) { return c != ',' && c != ' ' && c != ')'; });
    }
    while (fields.peek() == ',' || fields.peek() == ' ') fields.take(fields.peek());
    key = fields.run(prefix::word);
  }
  if (!has_pid || !fields.take(')')) return false;
  const std::size_t parallel = actor.find("_TP");
  if (said.rank < 0 && parallel != actor.npos) {
    Cursor number(actor.substr(parallel + 3));
    std::int64_t rank = 0;
    if (number.number(rank, 1, 6)) note_rank(said, rank);
  }
  at = fields;
  origin.pid = said.pid;
  if (said.rank >= 0) origin.rank = said.rank;
  if (!said.host.empty()) origin.host = said.host;
  one_space(at);
  return true;
}

// docker-compose: "trainer-1  | text"
bool take_compose(Cursor& at, Origin& origin) {
  const std::string_view service = at.run(prefix::name, 64);
  if (service.empty() || !prefix::digit(service.back()) || prefix::digit(service.front())) return false;
  if (service.find_first_of("-_") == service.npos || at.spaces() == 0 || !at.take('|')) return false;
  origin.host = service;
  one_space(at);
  return true;
}

// stern and kubectl --prefix: "[pod/trainer-0/main] text"
bool take_pod(Cursor& at, Origin& origin) {
  if (!at.take("[pod/")) return false;
  const std::string_view pod = at.run([](char c) { return prefix::name(c) && c != '/'; });
  if (pod.empty() || !at.take('/')) return false;
  at.run(prefix::name);
  if (!at.take(']')) return false;
  origin.host = pod;
  one_space(at);
  return true;
}

// "stdout F text" of the container runtimes, behind their time stamp.
bool take_stream(Cursor& at) {
  Cursor tried = at;
  tried.spaces();
  Cursor level = tried;
  if (take_level(level) && level.spaces() > 0) tried = level;
  if (!tried.take("stdout") && !tried.take("stderr")) return false;
  if (tried.take(" F ") || tried.take(" P ")) {
    at = tried;
    return true;
  }
  if (tried.peek() != ' ' && tried.peek() != '\t') return false;
  tried.take(tried.peek());
  if (tried.take("| ")) {
    at = tried;
    return true;
  }
  at = tried;
  return true;
}

// syslog and journald behind their time: "node7 python3[4711]: text", "node7 kernel: [ 12.5] text"
bool take_program(Cursor& at, Origin& origin) {
  Cursor tried = at;
  if (!tried.take(' ')) return false;
  const std::string_view host = tried.run([](char c) { return prefix::name(c) && c != '/'; });
  if (host.empty() || !tried.take(' ')) return false;
  const std::string_view program =
      tried.run([](char c) { return prefix::name(c) || c == '@' || c == '(' || c == ')'; });
  if (program.empty()) return false;
  std::int64_t pid = -1;
  if (tried.take('[') && (!tried.number(pid) || !tried.take(']'))) return false;
  if (!tried.take(':')) return false;
  Cursor level(host);
  if (take_level(level)) return false;  // a logger's "ERROR name: text"
  // Without a process number it could be any sentence with a colon: the host has to look like one.
  if (pid < 0 && program != "kernel" && host.find_first_of("0123456789-") == host.npos) return false;
  origin.host = host;
  if (pid >= 0) origin.pid = pid;
  one_space(tried);
  at = tried;
  return true;
}

// SGLang's own tag: "[2024-05-01 10:00:00 TP0] text", "[2024-05-01 10:00:00 DP1 TP3] text"
void note_parallel(Cursor& at, Origin& origin) {
  Cursor tried = at;
  while (tried.take(' ')) {
    const bool tensor = tried.peek() == 'T';
    if (!tried.take("TP") && !tried.take("DP") && !tried.take("PP") && !tried.take("EP")) return;
    std::int64_t rank = 0;
    if (!tried.number(rank, 1, 6)) return;
    if (tensor) note_rank(origin, rank);
    at = tried;
  }
}

// Behind a time stamp: what loggers write before the message.
void take_logger(Cursor& at) {
  // " | ERROR    | module:function:12 - text" and " | ERROR | stderr | text" (loguru and the like)
  Cursor bars = at;
  bars.spaces();
  if (bars.take('|')) {
    bars.spaces();
    if (take_level(bars)) {
      bars.spaces();
      if (bars.take('|')) {
        Cursor location = bars;
        location.spaces();
        location.run([](char c) { return prefix::name(c) || c == ':' || c == '<' || c == '>'; });
        Cursor dash = location;
        if (location.spaces() > 0 && location.take('|')) {
          at = location;
        } else if (dash.take(" -")) {
          at = dash;
        } else {
          at = bars;
        }
        one_space(at);
        return;
      }
    }
    return;
  }
  // " - name - ERROR - text" (logging's usual format) and " [ERROR] text", " [name] [ERROR] text",
  // "[name][ERROR] - text"
  Cursor dashes = at;
  if (dashes.take(" - ")) {
    Cursor level = dashes;
    if (take_level(level) && level.take(" - ")) {
      at = level;
      return;
    }
    dashes.run([](char c) { return prefix::name(c) || c == ':'; });
    if (dashes.take(" - ") && take_level(dashes) && dashes.take(" - ")) at = dashes;
    return;
  }
  Cursor tags = at;
  bool level = false;
  while (true) {
    Cursor tag = tags;
    tag.take(' ');
    if (!tag.take('[')) break;
    tag.spaces();
    const bool is_level = take_level(tag);
    if (!is_level && tag.run([](char c) { return prefix::name(c) || c == ':'; }).empty()) break;
    tag.spaces();
    if (!tag.take(']')) break;
    level = level || is_level;
    tags = tag;
    if (is_level) break;
  }
  if (level) {
    tags.take(" -");
    tags.take(':');
    one_space(tags);
    at = tags;
    return;
  }
  one_space(at);
}

// vLLM: "ERROR 01-22 09:02:21 multiproc_worker_utils.py:236] text", "INFO 05-01 10:00:00 [engine.py:36] text"
bool take_vllm(Cursor& at, Origin&) {
  if (!take_level(at) || at.spaces() == 0) return false;
  if (!take_date_time(at) || !at.take(' ')) return false;
  at.take('[');
  const std::string_view file = at.run(prefix::name);
  if (file.find(".py") == file.npos || !at.take(':') || !at.digits(1, 7) || !at.take(']')) return false;
  one_space(at);
  return true;
}

// A time stamp, in brackets or not, and what a journal, a container runtime or a logger writes behind it.
bool take_time(Cursor& at, Origin& origin) {
  const bool bracket = at.take('[');
  Cursor syslog = at;
  if (!bracket && take_month(syslog)) {
    syslog.spaces();
    if (!syslog.digits(1, 2) || syslog.spaces() == 0 || !take_clock(syslog)) return false;
    if (!take_program(syslog, origin)) one_space(syslog);
    at = syslog;
    return true;
  }
  Cursor clock = at;
  if (!bracket && take_clock(clock)) {  // "11:45:18 CRITICAL | text", "11:45:18 | INFO | text"
    clock.spaces();
    clock.take("| ");
    if (!take_level(clock)) return false;
    clock.spaces();
    if (!clock.take('|')) return false;
    one_space(clock);
    at = clock;
    return true;
  }
  if (!take_date_time(at)) return false;
  if (bracket) {
    note_parallel(at, origin);
    if (!at.take(']')) return false;
  }
  if (take_stream(at)) return true;
  if (take_program(at, origin)) return true;
  take_logger(at);
  return true;
}

// The kernel's ring: "[ 1234.567890] text", "[Mon Nov 11 10:22:19 2024] text", "<6>text"
bool take_kernel(Cursor& at, Origin&) {
  if (at.take('<')) return at.digits(1, 3) && at.take('>');
  if (!at.take('[')) return false;
  Cursor clock = at;
  clock.spaces();
  if (clock.digits(1, 9) && clock.take('.') && clock.digits(6, 6) && clock.take(']')) {
    one_space(clock);
    at = clock;
    return true;
  }
  for (const std::string_view day : {"Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "}) {
    Cursor date = at;
    if (!date.take(day) || !take_month(date)) continue;
    date.spaces();
    if (!date.digits(1, 2) || !date.take(' ') || !take_clock(date) || !date.take(' ') || !date.digits(4, 4))
      continue;
    if (!date.take(']')) continue;
    one_space(date);
    at = date;
    return true;
  }
  return false;
}

// SLURM's `srun --label` ("0: text", " 3: text"), grep -n and pagers ("10888:text", "[1743] text", "
// 12<tab>text")
bool take_number(Cursor& at, Origin& origin) {
  Cursor bracket = at;
  std::int64_t number = 0;
  if (bracket.take('[')) {
    if (!bracket.number(number, 1, 8) || !bracket.take("] ")) return false;
    at = bracket;
    return true;
  }
  if (at.spaces() > 3) return false;  // a traceback's source line: {0: "cat"}
  if (!at.number(number, 1, 8)) return false;
  if (at.take('\t')) return true;
  if (!at.take(':')) return false;
  if (at.peek() == ' ') {
    // TensorRT's kind of error: "4: [runtime.cpp::nvinfer1::Runtime::deserializeCudaEngine::50] Error Code 4"
    if (at.rest().starts_with(" [") && at.rest().substr(0, 64).find(".cpp::") != std::string_view::npos)
      return false;
    if (number < 100'000) note_rank(origin, number);
    at.take(' ');
    return true;
  }
  // "12:30:45" is a time, "3:train.py" a pager's number
  return !prefix::digit(at.peek()) && !at.at_end();
}

// pdsh and pods' names: "node12: text", "worker-0: text", "10.0.0.5: text"
bool take_host(Cursor& at, Origin& origin) {
  const std::string_view host = at.run(prefix::name, 64);
  if (host.empty() || !prefix::digit(host.back()) || !at.take(": ")) return false;
  bool known = prefix::digit(host.front()) && std::count(host.begin(), host.end(), '.') == 3;
  for (const std::string_view start :
       {"node", "worker", "host", "ip-", "gpu", "compute", "dgx", "master", "algo-", "launcher"}) {
    known = known || host.starts_with(start);
  }
  if (!known) return false;
  origin.host = host;
  return true;
}

// A quotation in a mail or in Markdown: "> text". ">>> " is Python's prompt and stays.
bool take_quote(Cursor& at, Origin&) { return at.take("> ") || (at.take('>') && at.at_end()); }

// Tried in order; each only where the line's first character allows it.
struct Prefix {
  bool (*starts)(char first);
  bool (*take)(Cursor&, Origin&);
};

bool bracket(char c) { return c == '['; }
bool letter(char c) { return prefix::lower(c) || prefix::upper(c); }

constexpr Prefix kPrefixes[] = {
    {[](char c) { return c == '[' || c == 'r' || c == 'R'; }, take_rank},
    {bracket, take_mpirun},
    {[](char c) { return c == '('; }, take_actor},
    {bracket, take_pod},
    {letter, take_vllm},
    {[](char c) { return c == '[' || prefix::digit(c) || prefix::upper(c); }, take_time},
    {[](char c) { return c == '[' || c == '<'; }, take_kernel},
    {[](char c) { return c == '>'; }, take_quote},
    {[](char c) { return c == '[' || c == ' ' || prefix::digit(c); }, take_number},
    {[](char c) { return prefix::digit(c) || prefix::lower(c); }, take_host},
    {letter, take_compose},
};

// Tags inside the message: "[Rank 7]", "[E1118 10:58:27.18 4711 file.cpp:9]" (glog) and "rank=0" at its end.
void note_tags(std::string_view text, Origin& origin) {
  if (origin.rank < 0 && text.size() > 6 && text.front() == '[') {
    const std::size_t tag = std::min(text.find("[Rank "), text.find("[rank"));
    if (tag != text.npos && tag < 96) {
      Cursor number(text.substr(tag + (text[tag + 1] == 'R' ? 6 : 5)));
      std::int64_t rank = 0;
      if (number.number(rank, 1, 6) && number.peek() == ']') note_rank(origin, rank);
    }
  }
  if (origin.rank < 0) {  // text-generation-launcher's fields stand at the end of the line
    const std::size_t tag = text.rfind(" rank=");
    if (tag != text.npos && tag + 14 > text.size()) {
      Cursor number(text.substr(tag + 6));
      std::int64_t rank = 0;
      if (number.number(rank, 1, 6) && number.at_end()) note_rank(origin, rank);
    }
  }
}

}  // namespace

std::string_view without_prefix(std::string_view line, Origin& origin) {
  // Prefixes nest (a journal around a container around torchrun), but not without end.
  for (int depth = 0; depth < 8 && !line.empty(); ++depth) {
    bool taken = false;
    for (const Prefix& one : kPrefixes) {
      if (!one.starts(line.front())) continue;
      Cursor at(line);
      if (!one.take(at, origin)) continue;
      line = at.rest();
      origin.is_error = origin.is_error || at.is_error;
      origin.is_calm = origin.is_calm || at.is_calm;
      taken = true;
      break;
    }
    if (!taken) break;
  }
  note_tags(line, origin);
  return line;
}

}  // namespace trapline
