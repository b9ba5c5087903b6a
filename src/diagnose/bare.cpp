#include "diagnose/bare.hpp"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <string>

#include "contracts/contract.hpp"

namespace trapline::diagnose {
namespace {

struct Names {
  std::string_view op, argument;
};

// A row of a newer library has an id all the same: operation and argument, between them a dot.
Names names_of(std::string_view id) {
  if (const Contract* row = find_contract(id)) return {row->public_op, row->public_argument};
  const std::size_t dot = id.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || dot + 1 == id.size())
    return {"an operation", "an argument"};
  return {id.substr(0, dot), id.substr(dot + 1)};
}

class Buffer {
 public:
  explicit Buffer(std::span<char> text) : text_(text) {
    if (!text_.empty()) text_[0] = '\0';
  }
  void add(const char* format, ...) __attribute__((format(printf, 2, 3))) {
    if (length_ + 1 >= text_.size()) return;
    std::va_list arguments;
    va_start(arguments, format);
    // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is the line above
    const int wanted = std::vsnprintf(text_.data() + length_, text_.size() - length_, format, arguments);
    va_end(arguments);
    if (wanted > 0) length_ = std::min(length_ + static_cast<std::size_t>(wanted), text_.size() - 1);
  }
  void add(std::string_view text) { add("%.*s", static_cast<int>(std::min(text.size(), kMax)), text.data()); }
  std::size_t length() const { return length_; }

 private:
  static constexpr std::size_t kMax = 512;
  std::span<char> text_;
  std::size_t length_ = 0;
};

void add_value(Buffer& out, const trapline_scan& scan) {
  if (scan.is_float == 0) {
    out.add("%" PRId64, scan.ivalue);
  } else if (std::isnan(scan.fvalue)) {  // printf would tell the sign of it
    out.add("nan");
  } else {
    out.add("%.9g", scan.fvalue);
  }
}

}  // namespace

std::size_t bare_sentence(std::string_view contract, const trapline_scan* scan, std::span<char> text) {
  const auto [op, argument] = names_of(contract);
  Buffer out(text);
  out.add(op);
  out.add(": ");
  if (scan == nullptr || scan->bad <= 0) {
    out.add(argument);
    out.add(" is not valid");
    return out.length();
  }
  out.add("%" PRId64 " of %" PRId64 " element%s of ", scan->bad, scan->total, scan->total == 1 ? "" : "s");
  out.add(argument);
  out.add(scan->bad == 1 ? " is not valid" : " are not valid");
  if (scan->first < 0) return out.length();
  out.add(scan->bad == 1 ? ": " : ": the first is ");
  add_value(out, *scan);
  out.add(", at position %" PRId64, scan->first);
  return out.length();
}

Finding bare_finding(std::string_view contract, const trapline_scan* scan, std::string_view why) {
  char sentence[1024];
  const std::size_t length = bare_sentence(contract, scan, sentence);
  const auto [op, argument] = names_of(contract);
  Finding finding;
  finding.certainty = Certainty::kProven;
  finding.contained = true;
  finding.op = op;
  finding.argument = argument;
  finding.summary.assign(sentence, length);
  finding.fix.push_back("Trapline could not name the cause (" + std::string(why) +
                        "): run again with TRAPLINE_DEBUG=1 to see more");
  return finding;
}

}  // namespace trapline::diagnose
