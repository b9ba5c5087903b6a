#include "report/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <tuple>
#include <vector>

#include "core/ranges.hpp"
#include "report/lines.hpp"
#include "report/sentences.hpp"
#include "report/snippet.hpp"
#include "report/utf8.hpp"

namespace trapline {
namespace {

constexpr std::size_t kEndless = std::numeric_limits<std::size_t>::max();

// A few lines that are shown or left out together. When a report is too long, blocks of the largest weight go
// first, the last of them before the others; weight 0 always stays.
struct Block {
  std::vector<Line> lines;
  int weight = 0;
};

class TextReport {
 public:
  explicit TextReport(const Style& style) : style_(style) {}

  std::string write(const Report& report) {
    if (report.findings.empty()) {
      add_headline("trapline:", Paint::kBold,
                   report.verdict == Verdict::kClean ? "no fault found"
                   : report.command == Command::kRun ? "no cause can be named"
                                                     : "no fault in what could be read");
    } else {
      const Finding& root = report.findings.front();
      command_ = report.command;
      several_ranks_ = has_several_ranks(report);
      add_finding(root);
      page_ = fmt::format("trapline why {}", info(headline_cause(root)).code);
      add_others(report);
    }
    for (const std::string& note : report.notes) add_labelled("note:", Paint::kNote, note, 8);
    return render(join(), style_);
  }

 private:
  std::size_t most(std::size_t lines) const { return style_.verbose ? kEndless : lines; }

  void add(std::vector<Line> lines, int weight) {
    if (!lines.empty()) blocks_.push_back({std::move(lines), weight});
  }

  void add_headline(const std::string& label, Paint paint, std::string_view sentence) {
    auto lines =
        labelled({{label, paint}, {" ", Paint::kPlain}}, clean(sentence, style_), style_, most(4), 4);
    for (Line& line : lines) line.back().paint = Paint::kBold;
    add(std::move(lines), 0);
  }

  void add_labelled(const std::string& label, Paint paint, std::string_view text, int weight) {
    add(labelled({{label, paint}, {" ", Paint::kPlain}}, clean(text, style_), style_, most(4)), weight);
  }

  void add_detail(std::string_view label, const std::string& text, int weight) {
    if (text.empty()) return;
    const std::string indent(static_cast<std::size_t>(gutter_), ' ');
    add(labelled({{indent + "= ", Paint::kGutter},
                  {fmt::format("{:<8} ", std::string(label) + ":"), Paint::kBold}},
                 clean(text, style_), style_, most(3)),
        weight);
  }

  // A detail that is a sentence of its own.
  void add_note(const std::string& text, int weight) {
    if (text.empty()) return;
    const std::string indent(static_cast<std::size_t>(gutter_), ' ');
    add(labelled({{indent + "= ", Paint::kGutter}}, clean(text, style_), style_, most(3)), weight);
  }

  void add_place(const Frame& frame) {
    const std::string arrow(static_cast<std::size_t>(std::max(gutter_ - 1, 0)), ' ');
    // Not wrapped: a path must stay whole to be clicked on or copied.
    std::vector<Line> lines = {{{arrow + "--> ", Paint::kGutter},
                                {clean(place_text(frame, style_.directory), style_), Paint::kPlain}}};
    if (width_of(lines[0]) > style_.width && !frame.function.empty()) {
      lines[0][1].text =
          clean(place_text({frame.file, frame.line, "", "", {}, 0, 0}, style_.directory), style_);
      const std::string function = shorten(clean(frame.function, style_), style_.width - gutter_ - 6, style_);
      lines.push_back({{arrow + "    in " + function, Paint::kPlain}});
    }
    if (!style_.verbose) lines[0][1].text = shorten(lines[0][1].text, 4 * style_.width, style_);
    const std::vector<Line> code = snippet(frame, style_);
    lines.insert(lines.end(), code.begin(), code.end());
    lines.push_back({{std::string(static_cast<std::size_t>(gutter_), ' ') + "|", Paint::kGutter}});
    add(std::move(lines), 0);
  }

  void add_finding(const Finding& finding) {
    const CauseInfo& cause = info(headline_cause(finding));
    gutter_ = finding.origin ? gutter_width(*finding.origin) : 3;
    const std::string_view sentence =
        finding.summary.empty() ? cause.title : std::string_view(finding.summary);
    std::string rank;
    if (several_ranks_ && finding.process && finding.process->rank) {
      rank = fmt::format("rank {}", *finding.process->rank);
      if (sentence.find(rank) != std::string_view::npos) rank.clear();  // it is said
    }
    add_headline(fmt::format("error[{}]{}{}:", cause.code, rank.empty() ? "" : " ", rank), Paint::kError,
                 sentence);
    if (finding.origin) {
      add_place(*finding.origin);
    } else if (command_ == Command::kCheck && !finding.evidence.empty()) {
      // Of data at rest the place is the first piece of evidence.
      const Evidence& seen = finding.evidence.front();
      add_place({seen.source, seen.line.value_or(0), "", "", {}, 0, 0});
    }
    add_detail("found", found_text(finding), 1);
    if (finding.element) add_detail("bad", count_text(*finding.element), 2);
    if (finding.valid) add_detail("valid", valid_text(*finding.valid), 1);
    add_detail("values", values_text(finding), 3);
    if (finding.classes) add_detail("classes", classes_text(*finding.classes), 3);
    if (finding.layer) add_detail("layer", layer_text(*finding.layer), 2);
    if (finding.sample) add_detail("sample", sample_text(*finding.sample), 2);
    if (finding.progress) add_detail(progress_label(*finding.progress), progress_text(*finding.progress), 3);
    if (finding.kernel) add_detail("kernel", kernel_text(*finding.kernel), 3);
    add_surface(finding);
    add_note(doubt_text(finding), 3);
    // The rank alone stands in the headline.
    const bool says_more = finding.process && (!several_ranks_ || !finding.process->host.empty());
    if (finding.process && (style_.verbose || (finding.process->rank && says_more))) {
      add_detail("process", process_text(*finding.process), 5);
    }
    int weight = 2;
    for (const std::string& fix : finding.fix) {
      add_labelled("help:", Paint::kHelp, fix, weight);
      weight = 5;
    }
    if (style_.verbose) add_verbose(finding);
  }

  void add_surface(const Finding& finding) {
    const std::string place =
        finding.surfaced ? place_text(*finding.surfaced, style_.directory) : std::string();
    if (!finding.device_assert.value_or(false)) return add_detail("seen at", place, 4);
    // In the log of a job that ran on a GPU it is no news, but the line that the log ends with misleads.
    if (command_ == Command::kExplain && finding.certainty != Certainty::kProven) {
      const bool is_origin = finding.origin && place_text(*finding.origin, style_.directory) == place;
      if (!place.empty() && !is_origin) add_detail("seen at", place + ", later than it happened", 4);
      return;
    }
    add_detail("on GPU",
               place.empty() ? "a device-side assert, reported later and at another line"
                             : "a device-side assert that surfaces at " + place,
               4);
  }

  static bool has_several_ranks(const Report& report) {
    std::set<std::int64_t> ranks;
    for (const Finding& finding : report.findings) {
      if (finding.cause == Cause::kPeerFailure) return true;
      if (!finding.process || !finding.process->rank) continue;
      ranks.insert(*finding.process->rank);
      if (*finding.process->rank > 0 || finding.process->world_size.value_or(1) > 1) return true;
    }
    return ranks.size() > 1;
  }

  static std::string doubt_text(const Finding& finding) {
    if (finding.certainty == Certainty::kProven || finding.certainty == Certainty::kDetermined) return {};
    std::vector<Cause> fitting;
    const bool is_open = headline_cause(finding) != finding.cause;
    if (is_open) fitting.push_back(finding.cause);
    std::ranges::copy_if(finding.also, std::back_inserter(fitting),
                         [](Cause also) { return also != Cause::kInsufficientEvidence; });
    std::string text = finding.certainty == Certainty::kLikely ? "likely, not certain" : "not certain";
    if (fitting.empty()) return finding.cause == Cause::kInsufficientEvidence ? std::string() : text;
    text += is_open || finding.cause == Cause::kInsufficientEvidence ? "; causes that fit: "
                                                                     : "; other causes that fit: ";
    const char* separator = "";
    for (const Cause cause : fitting) {
      text += fmt::format("{}{} ({})", separator, info(cause).title, info(cause).code);
      separator = ", ";
    }
    return text;
  }

  void add_title(const std::string& title) { add({{}, {{title, Paint::kBold}}}, 0); }

  void add_item(const std::string& text, Paint paint, int indent) {
    const std::string spaces(static_cast<std::size_t>(indent), ' ');
    auto lines = labelled({{spaces, Paint::kPlain}}, clean(text, style_), style_, kEndless, indent + 2);
    for (Line& line : lines) line.back().paint = paint;
    add(std::move(lines), 0);
  }

  void add_verbose(const Finding& finding) {
    if (!finding.stack.empty()) add_title("stack, outermost first:");
    for (const Frame& frame : finding.stack) {
      const bool is_library = !frame.user.value_or(true);
      add_item(place_text(frame, style_.directory), is_library ? Paint::kFaint : Paint::kPlain, 2);
      const auto start = frame.code.find_first_not_of(" \t");
      if (start != std::string::npos) add_item(frame.code.substr(start), Paint::kFaint, 6);
    }
    if (!finding.history.empty()) add_title("last operations, the newest last:");
    for (const Operation& operation : finding.history) {
      add_item(operation_text(operation) + (operation.where.empty() ? "" : " at " + operation.where),
               Paint::kPlain, 2);
    }
    if (!finding.evidence.empty()) add_title("evidence:");
    for (const Evidence& evidence : finding.evidence) {
      const std::string line = evidence.line ? fmt::format(":{}", *evidence.line) : "";
      add_item(evidence.source + line + (evidence.text.empty() ? "" : ": " + evidence.text), Paint::kPlain,
               2);
    }
  }

  // All findings but the first, one line each; those that say the same share a line.
  void add_others(const Report& report) {
    struct Row {
      const Finding* first;
      std::size_t count = 0;
      std::set<std::int64_t> ranks;
    };
    std::vector<Row> rows;
    for (std::size_t i = 1; i < report.findings.size(); ++i) {
      const Finding& finding = report.findings[i];
      auto row = std::ranges::find_if(rows, [&](const Row& known) {
        return known.first->cause == finding.cause && known.first->role == finding.role &&
               known.first->summary == finding.summary;
      });
      if (row == rows.end()) row = rows.insert(rows.end(), Row{&finding, 0, {}});
      ++row->count;
      if (finding.process && finding.process->rank) row->ranks.insert(*finding.process->rank);
    }
    for (const Row& row : rows) {
      const bool is_consequence = row.first->role == Role::kConsequence;
      // What peers did says itself who they are, and there is nothing to look up.
      const bool is_peer = row.first->cause == Cause::kPeerFailure && !row.first->summary.empty();
      std::string text = is_peer ? "" : fmt::format("[{}] ", info(headline_cause(*row.first)).code);
      if (!row.ranks.empty() && !is_peer) text += ranks_text(row.ranks) + ": ";
      if (row.count > 1 && row.ranks.size() != row.count) text += fmt::format("{} times: ", row.count);
      text +=
          row.first->summary.empty() ? info(row.first->cause).title : std::string_view(row.first->summary);
      if (row.first->origin && !is_consequence)
        text += " (" + place_text(*row.first->origin, style_.directory) + ")";
      const std::string label = is_consequence ? "then:" : "also:";
      if (style_.verbose) {
        add_labelled(label, Paint::kError, text, 6);
      } else {
        const int room = style_.width - width_of(label) - 1;
        add({{{label, Paint::kError}, {" " + shorten(clean(text, style_), room, style_), Paint::kPlain}}}, 6);
      }
    }
  }

  std::size_t count() const {
    std::size_t lines = 0;
    for (const Block& block : blocks_) lines += block.lines.size();
    return lines;
  }

  std::vector<Line> join() {
    std::size_t dropped = 0;
    const std::size_t ends = page_.empty() ? 0 : 1;
    while (!style_.verbose && count() + ends + (dropped > 0 ? 1 : 0) > kMaxLines) {
      const auto last = std::ranges::max_element(blocks_.rbegin(), blocks_.rend(), {}, &Block::weight);
      if (last == blocks_.rend() || last->weight == 0) break;
      dropped += last->lines.size();
      blocks_.erase(std::next(last).base());
    }
    std::vector<Line> lines;
    for (Block& block : blocks_) std::ranges::move(block.lines, std::back_inserter(lines));
    if (dropped > 0) {
      lines.push_back({{fmt::format("({} more {}: run with -v)", dropped, dropped == 1 ? "line" : "lines"),
                        Paint::kFaint}});
    }
    if (!page_.empty()) lines.push_back({{"for more: ", Paint::kFaint}, {page_, Paint::kPlain}});
    return lines;
  }

  const Style& style_;
  Command command_ = Command::kRun;
  bool several_ranks_ = false;
  int gutter_ = 3;
  std::string page_;  // the command that prints the page of the cause
  std::vector<Block> blocks_;
};

}  // namespace

Cause headline_cause(const Finding& finding) {
  return finding.certainty == Certainty::kUnknown ? Cause::kInsufficientEvidence : finding.cause;
}

std::string render_text(const Report& report, const Style& style) { return TextReport(style).write(report); }

}  // namespace trapline
