#include "log/events/assert_assembler.hpp"

#include <algorithm>

namespace trapline {
namespace {

constexpr std::size_t kMaxBefore = 400;       // characters kept of the line before
constexpr std::size_t kMaxOpen = 2000;        // characters of an assertion in pieces
constexpr std::int64_t kNear = 1200;          // folded characters between a place and its condition
constexpr std::int64_t kSameName = 40;        // between a kernel and the file that it belongs to
constexpr std::int64_t kSameCoordinate = 60;  // between "block" and "thread"

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool may_hold_assert(std::string_view text, const LineMatches& matches) {
  return matches.assertion || contains(text, "block:") || contains(text, "global id:") ||
         contains(text, "\xE6\x96\xAD\xE8\xA8\x80");
}

// A message of the catalogue says the same of the host, and more.
bool names_host_failure(const LineMatches& matches) {
  return std::any_of(matches.wordings.begin(), matches.wordings.end(), [](const WordingRow* row) {
    return row->kind == WordingKind::kHostValue || row->kind == WordingKind::kHost ||
           row->cause == Cause::kCustomKernelAssert;
  });
}

}  // namespace

void AssertAssembler::emit(const FoundAssert& found) { found_.push_back(found); }

std::span<const FoundAssert> AssertAssembler::line(std::string_view text, std::int64_t number,
                                                   const LineMatches& matches) {
  found_.clear();
  kept_.clear();
  took_line_ = false;
  for (const AssertPart& part : matches.parts) note(part);
  bool condition_counts = matches.condition != nullptr;
  if (finish_open(text, number, matches.condition)) {
    took_line_ = true;
    site_ = {};
  } else if (may_hold_assert(text, matches)) {
    condition_counts = read_line(text, number, matches) && condition_counts;
  }
  if (!took_line_ && condition_counts) read_condition(text, matches);
  before_text_ = text.size() < kMinWrap ? std::string_view()
                                        : text.substr(text.size() - std::min(text.size(), kMaxBefore));
  before_number_ = number;
  return found_;
}

void AssertAssembler::note(const AssertPart& part) {
  switch (part.kind) {
    case AssertPart::Kind::kFile:
      if (site_.at >= 0 && part.at - site_.at < kSameName && !site_.kernel.empty() && site_.file.empty()) {
        site_.file = part.row->file;
      } else {
        give_up_site();
        site_ = Site{std::string(part.row->file), {}, 0, part.at};
      }
      break;
    case AssertPart::Kind::kKernel:
      if (site_.at < 0 || part.at - site_.at > kNear) site_ = Site{{}, {}, 0, part.at};
      site_.kernel = part.row->kernel;
      break;
    case AssertPart::Kind::kAssertion:
      break;
    case AssertPart::Kind::kBlock:
      block_at_ = part.at;
      break;
    case AssertPart::Kind::kThread:
      site_.block = true;
      if (block_at_ >= 0 && part.at - block_at_ < kSameCoordinate) place_at_ = part.at;
      break;
  }
}

// A place with block and thread whose condition never came: it counts when the place alone says enough.
void AssertAssembler::give_up_site() {
  if (site_.at < 0 || !site_.block) return;
  AssertLine line;
  line.file = keep(site_.file);
  line.kernel = keep(site_.kernel);
  line.line = site_.line;
  site_ = {};
  if (find_assert({line.file, line.line, line.kernel, {}}).row == nullptr) return;
  emit({line, keep(std::string(line.file) + ": " + std::string(line.kernel))});
}

// An assertion was begun and broken off: `text` may be its end.
bool AssertAssembler::finish_open(std::string_view text, std::int64_t number, const AssertRow* condition) {
  if (open_text_.empty()) return false;
  if (number > open_number_ + 1 || contains(text, "block:") || open_text_.size() > kMaxOpen) {
    drop_open();
    return false;
  }
  if (open_text_.ends_with('=')) open_text_.pop_back();  // mail as quoted-printable ends broken lines so
  open_text_ += text;
  open_number_ = number;
  if (condition == nullptr && !ends_assert(open_text_)) return false;
  const std::string_view whole = keep(std::move(open_text_));
  open_text_.clear();
  const auto line = parse_assert(whole);
  if (!line || line->form != AssertForm::kDevice) return false;
  emit({*line, whole, condition, true});
  return true;
}

// Its end never came.
void AssertAssembler::drop_open() {
  if (cut_text_.empty()) cut_text_ = std::move(open_text_);
  open_text_.clear();
}

bool AssertAssembler::read_line(std::string_view text, std::int64_t number, const LineMatches& matches) {
  auto line = parse_assert(text);
  if (!line) return true;
  std::string_view joined = text;
  // Its beginning, with the name of the file, may stand on the line before.
  if (line->has_place && line->file.empty() && !before_text_.empty() && number <= before_number_ + 1) {
    joined = keep(before_text_ + std::string(text));
    if (const auto whole = parse_assert(joined); whole && whole->has_place && !whole->file.empty())
      line = whole;
  }
  const bool on_host = line->form == AssertForm::kHost;
  if (!on_host && line->condition.empty() && !line->has_place) return true;
  // A line that was wrapped has (the rest of) its condition on the next one.
  bool wrapped = line->form == AssertForm::kDevice && line->condition.empty() && !matches.assertion;
  if (line->form == AssertForm::kDevice && matches.condition == nullptr && !ends_assert(text) &&
      !find_assert({line->file, line->line, line->kernel, line->condition}).by_condition)
    wrapped = true;
  if (wrapped) {
    open_text_ = joined;
    open_number_ = number;
    if (site_.at < 0) {
      site_ = Site{std::string(line->file), std::string(line->kernel), line->line, matches.end};
      site_.block = line->has_place;
    }
  }
  if (site_.at >= 0) site_.line = line->line;
  if (on_host && names_host_failure(matches)) {
    site_ = {};
    return false;
  }
  if (!wrapped) {
    emit({*line, text, matches.condition});
    took_line_ = true;
    site_ = {};
  }
  return true;
}

// The condition is legible, the line is not: the place may stand before it, or be cut off.
void AssertAssembler::read_condition(std::string_view text, const LineMatches& matches) {
  if (site_.at >= 0 && matches.end - site_.at <= kNear) {
    emit_condition(text, *matches.condition);
    site_ = {};
    return;
  }
  const bool placed = place_at_ >= 0 && matches.end - place_at_ <= kNear;
  // "Assertion `...", cut behind its condition: a device's, where no exception speaks.
  const bool is_cut = contains(text, "Assertion `") && !contains(text, "rror: ");
  if (!matches.assertion || !(placed || is_cut || contains(text, "failed"))) return;
  const bool on_host = contains(text, "' failed") && (contains(text, " at ") || text.ends_with(" at"));
  if (!on_host) emit_condition(text, *matches.condition);
}

void AssertAssembler::emit_condition(std::string_view text, const AssertRow& condition) {
  AssertLine line;
  if (site_.at >= 0) {
    line.file = keep(site_.file);
    line.kernel = keep(site_.kernel);
    line.line = site_.line;
  }
  line.condition = condition.condition;
  emit({line, text, &condition});
  took_line_ = true;
}

std::span<const FoundAssert> AssertAssembler::finish() {
  found_.clear();
  kept_.clear();
  took_line_ = false;
  give_up_site();
  drop_open();
  if (cut_text_.empty()) return found_;
  const std::string_view cut = keep(std::move(cut_text_));
  cut_text_.clear();
  if (const auto line = parse_assert(cut); line && line->form == AssertForm::kDevice)
    emit({*line, cut, nullptr, false, true});
  return found_;
}

}  // namespace trapline
