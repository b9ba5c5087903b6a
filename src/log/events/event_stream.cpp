#include "log/events/event_stream.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <charconv>

#include "catalogue/fold.hpp"
#include "catalogue/host_errors.hpp"
#include "log/clean/progress.hpp"
#include "log/clean/text.hpp"
#include "log/events/ranks.hpp"

namespace trapline {
namespace {

constexpr std::size_t kMostEvents = 128, kLongestText = 400;
constexpr std::size_t kLongestLine = std::size_t{256} << 10U;  // one pasted log without line ends

constexpr std::int64_t kNear = 1200;  // folded characters between a place and its condition

RE2::Options quiet(bool case_sensitive = true) {
  RE2::Options options;
  options.set_encoding(RE2::Options::EncodingLatin1);
  options.set_log_errors(false);
  options.set_case_sensitive(case_sensitive);
  return options;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Blanks that were doubled or padded are one: rules look for words.
std::string single_spaced(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' || !out.ends_with(' ')) out += c;
  }
  return out;
}

}  // namespace

Event& EventStream::push(Event event, std::string_view text, const Line& origin, std::int64_t& order) {
  event.order = order++;
  event.count = 1;
  event.number = origin.number;
  event.source = origin.source;
  event.text = single_spaced(trim(text).substr(0, kLongestText));
  event.traceback = frames_.current();
  event.rank = rank_in(text);
  event.op = collective_in(text);
  if (events_.size() >= kMostEvents) events_.pop_back();
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
  const std::string_view text = origin.text.substr(0, kLongestLine);
  if (repeated(text)) return;
  last_number_ = origin.number;
  frames_.line(text, origin.number);
  notice(text, origin);
  scan(text, origin, order);
  if (frames_.closed_now()) add_exception(text, origin, order);
  before_text_ = text.size() < EventStream::kShortestWrap
                     ? std::string_view()
                     : text.substr(text.size() - std::min(text.size(), kLongestText));
  if (before_length_ < EventStream::kShortestWrap || origin.number > before_number_ + 1)
    wrap_from_ = origin.number;
  before_length_ = text.size();
  before_number_ = origin.number;
  if (!trim(text).empty()) {
    if (frames_.closed_now() && lone_code_.empty()) lone_code_ = before_;
    before_ = text.starts_with("    ") ? trim(text).substr(0, kLongestText) : std::string_view();
  }
}

void EventStream::scan(std::string_view text, const Line& origin, std::int64_t& order) {
  const CataloguePhrases& all = catalogue_phrases();
  const auto asserts = assert_rows();
  const auto wordings = wording_rows();
  hits_.clear();
  conditions_.clear();
  bool assertion = false, spanning = false;
  const std::int64_t line_at = folded_;
  std::uint32_t longest = 0;
  const auto emit = [&](char c) {
    state_ = all.automaton.step(state_, c);
    ++folded_;
    if (!all.automaton.ends(state_)) return;
    all.automaton.each(state_, [&](std::uint32_t id) {
      const CataloguePhrase& phrase = all.phrases[id];
      switch (phrase.kind) {
        case CataloguePhrase::Kind::kWording: {
          // Words of two lines make a message only where the first one was long enough to be wrapped.
          const bool spans = phrase.length > folded_ - line_at;
          if (spans && before_length_ < EventStream::kShortestWrap) break;
          spanning = spanning || spans;
          hits_.push_back(&wordings[phrase.index]);
          break;
        }
        case CataloguePhrase::Kind::kCondition:
          if (phrase.length > longest) conditions_.push_back(&asserts[phrase.index]);
          longest = std::max(longest, phrase.length);
          break;
        case CataloguePhrase::Kind::kFile:
          if (site_.at >= 0 && folded_ - site_.at < 40 && !site_.kernel.empty() && site_.file.empty()) {
            site_.file = asserts[phrase.index].file;
          } else {
            flush_site(origin, order);
            site_ = Site{std::string(asserts[phrase.index].file), {}, 0, folded_};
          }
          break;
        case CataloguePhrase::Kind::kKernel:
          if (site_.at < 0 || folded_ - site_.at > kNear) site_ = Site{{}, {}, 0, folded_};
          site_.kernel = asserts[phrase.index].kernel;
          break;
        case CataloguePhrase::Kind::kMarker:
          if (phrase.index == static_cast<std::uint32_t>(Marker::kAssertion))
            assertion = site_.assertion = true;
          if (phrase.index == static_cast<std::uint32_t>(Marker::kBlock)) block_at_ = folded_;
          if (phrase.index == static_cast<std::uint32_t>(Marker::kThread)) {
            site_.block = true;
            if (block_at_ >= 0 && folded_ - block_at_ < 60) place_at_ = folded_;
          }
          break;
      }
    });
  };
  Folder::feed(text, emit);

  bool parsed = finish_open(text, origin, order);
  if (parsed) {
    site_ = Site{};
  } else if (assertion || contains(text, "block:") || contains(text, "global id:") ||
             contains(text, "\xE6\x96\xAD\xE8\xA8\x80")) {
    std::string joined;
    if (auto line = parse_assert(text)) {
      // Its beginning, with the name of the file, may stand on the line before.
      if (line->has_place && line->file.empty() && !before_text_.empty() &&
          origin.number <= before_number_ + 1) {
        joined = before_text_ + std::string(text);
        if (const auto whole = parse_assert(joined); whole && whole->has_place && !whole->file.empty())
          line = whole;
      }
      if (line->form == AssertForm::kHost || !line->condition.empty() || line->has_place) {
        // A line that was wrapped has (the rest of) its condition on the next one.
        bool wrapped = line->condition.empty() && line->form == AssertForm::kDevice && !assertion;
        if (line->form == AssertForm::kDevice && conditions_.empty() && !ends_assert(text) &&
            !find_assert({line->file, line->line, line->kernel, line->condition}).by_condition)
          wrapped = true;
        if (wrapped) {
          open_text_ = joined.empty() ? std::string(text) : joined;
          open_number_ = origin.number;
        }
        if (wrapped && site_.at < 0) {
          site_ = Site{std::string(line->file), std::string(line->kernel), line->line, folded_};
          site_.block = line->has_place;
        }
        if (site_.at >= 0) site_.line = line->line;
        const bool named = line->form == AssertForm::kHost &&
                           std::any_of(hits_.begin(), hits_.end(), [](const WordingRow* row) {
                             return row->kind == WordingKind::kHostValue || row->kind == WordingKind::kHost ||
                                    row->cause == Cause::kCustomKernelAssert;
                           });
        if (named) {
          site_ = Site{};
          conditions_.clear();
        } else if (!wrapped) {
          add_assert(*line, text, origin, order);
          parsed = true;
          site_ = Site{};
        }
      }
    }
  }
  if (!parsed && !conditions_.empty() && site_.at >= 0 && folded_ - site_.at <= kNear) {
    add_folded(*conditions_.back(), text, origin, order);
    parsed = true;
    site_ = Site{};
  } else if (!parsed && !conditions_.empty() && assertion &&
             (contains(text, "failed") || (place_at_ >= 0 && folded_ - place_at_ <= kNear))) {
    // The head of the line is cut off; the condition alone is left.
    const bool on_host = contains(text, "' failed") && (contains(text, " at ") || text.ends_with(" at"));
    if (!on_host) {
      add_folded(*conditions_.back(), text, origin, order);
      parsed = true;
    }
  }
  add_numbered(text, origin, order);
  std::string whole;
  if (!parsed && take_back_exception(text, spanning, origin, whole)) text = whole;
  for (const WordingRow* row : hits_) {
    if (parsed && row->kind != WordingKind::kDeviceAssert && row->kind != WordingKind::kFault) continue;
    add_wording(*row, text, origin, order);
  }
}

void EventStream::add_assert(const AssertLine& line, std::string_view text, const Line& origin,
                             std::int64_t& order) {
  Event event;
  event.kind = line.form == AssertForm::kHost ? EventKind::kHostAssert : EventKind::kAssert;
  AssertSite site{line.file, line.line, line.kernel, line.condition};
  AssertMatch match = event.kind == EventKind::kHostAssert ? AssertMatch{} : find_assert(site);
  if (match.row == nullptr && !conditions_.empty() && event.kind == EventKind::kAssert &&
      is_known_assert_file(line.file))
    match = {conditions_.back(), true};
  event.assert_row = match.row;
  event.by_condition = match.by_condition;
  event.known_file = is_known_assert_file(line.file);
  event.file = line.file;
  event.file_line = line.line;
  event.kernel = line.kernel.substr(0, kLongestText);
  event.condition = line.condition.substr(0, kLongestText);
  event.cut = line.form == AssertForm::kDevice && (pieced_ || line.file.empty() || !ends_assert(text));
  if (match.row != nullptr && match.row->cause == Cause::kCompiledIndexAssert) {
    if (const std::size_t at = line.condition.rfind("< "); at != std::string_view::npos) {
      const char* const begin = line.condition.data() + at + 2;
      std::from_chars(begin, line.condition.data() + line.condition.size(), event.bound);
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

void EventStream::add_folded(const AssertRow& row, std::string_view text, const Line& origin,
                             std::int64_t& order) {
  AssertLine line;
  line.file = site_.file;
  line.line = site_.line;
  line.kernel = site_.kernel;
  line.condition = row.condition;
  if (site_.at < 0) line.file = {}, line.kernel = {}, line.line = 0;
  // Views of site_ die with it.
  const std::string file(line.file), kernel(line.kernel);
  line.file = file;
  line.kernel = kernel;
  add_assert(line, text, origin, order);
}

// A place with block and thread whose condition never came.
void EventStream::flush_site(const Line& origin, std::int64_t& order) {
  if (site_.at < 0 || site_.used || !site_.block) return;
  const std::string file = site_.file, kernel = site_.kernel;
  AssertLine line;
  line.file = file;
  line.kernel = kernel;
  line.line = site_.line;
  site_ = Site{};
  if (find_assert({line.file, line.line, line.kernel, {}}).row != nullptr)
    add_assert(line, file + ": " + kernel, origin, order);
}

void EventStream::add_wording(const WordingRow& row, std::string_view text, const Line& origin,
                              std::int64_t& order) {
  if (row.id == "hint.dsa") hints_.dsa_hint = true;
  if (row.id == "hint.async") hints_.async_hint = true;
  if (row.kind == WordingKind::kHint || row.kind == WordingKind::kEvidence) {
    if (row.id.starts_with("yolo")) hints_.detection = true;
    if (row.id.starts_with("d2.")) hints_.class_ids = true;
    if (row.id.starts_with("nnunet")) hints_.segmentation = true;
    if (row.cause == Cause::kNanToIndex) hints_.nan = true;
    if (row.id == "hf.open_end")
      hints_.generation = true;
    else if (row.cause == Cause::kPositionIndexOutOfRange)
      hints_.too_long = true;
    if (row.cause == Cause::kEmbeddingIndexOutOfRange) hints_.vocabulary = true;
    return;
  }
  for (Event& event : events_) {
    if (event.wording == &row && event.traceback == frames_.current() && event.rank == rank_in(text)) {
      ++event.count;
      return;
    }
  }
  Event event;
  event.wording = &row;
  if (frames_.closed_now()) event.exception = frames_.exception(), event.message = frames_.message();
  push(std::move(event), text, origin, order);
}

void EventStream::add_exception(std::string_view text, const Line& origin, std::int64_t& order) {
  if (std::any_of(hits_.begin(), hits_.end(), [](const WordingRow* row) { return row->speaks(); })) return;
  for (const Event& event : events_) {
    if (event.kind == EventKind::kException && event.exception == frames_.exception() &&
        event.message == frames_.message())
      return;
    if ((event.kind == EventKind::kHostAssert || event.kind == EventKind::kAssert) &&
        event.number == origin.number)
      return;
  }
  Event event;
  event.kind = EventKind::kException;
  event.exception = frames_.exception();
  event.message = frames_.message();
  push(std::move(event), text, origin, order);
}

// "error 700", "code=700(", "error=59 :", "Cuda failure: 222"
void EventStream::add_numbered(std::string_view text, const Line& origin, std::int64_t& order) {
  if (std::any_of(hits_.begin(), hits_.end(),
                  [](const WordingRow* row) { return row->kind != WordingKind::kContext; }))
    return;
  static const RE2* const pattern = new RE2(
      R"re((?:\b(?:cuda|hip|cu)[a-z_ ]*(?:error|failure)(?: code| at [^ ]+)?|\berror=|\bcode=|\(error)[^0-9a-z]{0,4}(\d{1,4})\b)re",
      quiet(false));
  if (!contains(text, "rror") && !contains(text, "ailure") && !contains(text, "RROR") &&
      !contains(text, "code="))
    return;
  std::int64_t number = 0;
  if (!RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *pattern, &number)) return;
  if (const WordingRow* row = find_cuda_error(number)) add_wording(*row, text, origin, order);
}

// What speaks for a cause without being a failure.
void EventStream::notice(std::string_view text, const Line& origin) {
  if (contains(text, "LAUNCH_BLOCKING") && !contains(text, "consider passing")) {
    static const RE2* const set = new RE2(R"re(LAUNCH_BLOCKING["']?\]?\s*=\s*["']?1)re", quiet());
    if (RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *set)) hints_.blocking = true;
  }
  if (contains(text, "(first observed failure)")) hints_.launcher = true;
  if (hints_.launcher && hints_.launcher_rank < 0 && contains(text, "(local_rank"))
    hints_.launcher_rank = rank_in(text);
  if (contains(text, "embedding_lookup")) hints_.lookup = true;
  if (contains(text, "vocab_size")) hints_.vocabulary = true;
  if (contains(text, "torch.Size([") || contains(text, "Size([")) {
    static const RE2* const map = new RE2(
        R"re((?i)(?:out|pred|mask|logits|target|label)\S*.{0,20}Size\(\[\d+, \d+, \d{2,}, \d{2,}\]\))re",
        quiet());
    if (RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *map)) hints_.segmentation = true;
  }
  if (contains(text, "abel") || contains(text, "n_classes") || contains(text, "num_classes")) {
    static const RE2* const print = new RE2(
        R"re((?i)(?:labels?|targets?|class(?:es)?)\b.{0,60}\b(?:outside|out of range|not in range|lies outside|exceeds?|invalid label))re",
        quiet());
    if (!contains(text, "Assertion") && RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *print))
      hints_.label_print = true;
  }
  // The bar itself, or what the reader took off the line.
  const int progress = std::max(progress_in(text), origin.progress);
  if (progress == 0) hints_.first_batch = true;
  if (progress > 5) hints_.later_batch = true;
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
  last_assert_ = -1;
  hits_ = {};
  conditions_ = {};
}

}  // namespace trapline
