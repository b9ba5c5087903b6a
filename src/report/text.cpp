#include "report/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

#include "report/details.hpp"
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
      add_headline("trapline:", Paint::kBold, sentence_without_findings(report));
    } else {
      const Finding& root = report.findings.front();
      reading_ = reading_of(report, style_.directory, style_.verbose);
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
    add(labelled({{label, paint}, {" ", Paint::kPlain}}, clean(text, style_), style_, most(6)), weight);
  }

  void add_detail(const Detail& detail) {
    const std::string indent(static_cast<std::size_t>(gutter_), ' ');
    Line head = {{indent + "= ", Paint::kGutter}};
    if (!detail.label.empty())
      head.push_back({fmt::format("{:<8} ", std::string(detail.label) + ":"), Paint::kBold});
    add(labelled(head, clean(detail.text, style_), style_, most(3)), detail.weight);
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
    gutter_ = finding.origin ? gutter_width(*finding.origin) : 3;
    add_headline(label_of(finding, reading_), Paint::kError, sentence_of(finding));
    if (const auto place = place_of(finding, reading_.command)) add_place(*place);
    for (const Detail& detail : details_of(finding, reading_)) add_detail(detail);
    int weight = 2;
    for (const std::string& fix : finding.fix) {
      add_labelled("help:", Paint::kHelp, fix, weight);
      weight = 5;
    }
    if (style_.verbose) add_verbose(finding);
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
    if (const auto steps = last_steps_texts(finding); !steps.empty()) {
      add_title("last steps:");
      for (const std::string& text : steps) add_item(text, Paint::kPlain, 2);
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

  // All findings but the first, one line each.
  void add_others(const Report& report) {
    for (const Other& other : others_of(report, style_.directory)) {
      const std::string label = other.is_consequence ? "then:" : "also:";
      if (style_.verbose) {
        add_labelled(label, Paint::kError, other.text, 6);
      } else {
        const int room = style_.width - width_of(label) - 1;
        add({{{label, Paint::kError},
              {" " + shorten(clean(other.text, style_), room, style_), Paint::kPlain}}},
            6);
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
  Reading reading_;
  int gutter_ = 3;
  std::string page_;  // the command that prints the page of the cause
  std::vector<Block> blocks_;
};

}  // namespace

std::string render_text(const Report& report, const Style& style) { return TextReport(style).write(report); }

}  // namespace trapline
