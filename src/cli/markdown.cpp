#include "cli/markdown.hpp"

#include <limits>
#include <vector>

#include "report/lines.hpp"

namespace trapline::cli {
namespace {

class Page {
 public:
  explicit Page(const Style& style) : style_(style) {}

  std::string write(std::string_view markdown) {
    while (!markdown.empty()) {
      const auto end = std::min(markdown.find('\n'), markdown.size());
      take(markdown.substr(0, end));
      markdown.remove_prefix(std::min(end + 1, markdown.size()));
    }
    end_block();
    return render(lines_, style_);
  }

 private:
  void take(std::string_view line) {
    if (line.starts_with("```")) {
      end_block();
      in_code_ = !in_code_;
    } else if (in_code_) {
      lines_.push_back({{line.empty() ? "" : "    " + clean(line, style_), Paint::kPlain}});
    } else if (line.empty()) {
      end_block();
      lines_.push_back({{"", Paint::kPlain}});
    } else if (line.starts_with("#")) {
      end_block();
      const auto text = line.substr(std::min(line.find_first_not_of("# "), line.size()));
      for (const std::string& part : wrapped(text, 0)) lines_.push_back({{part, Paint::kBold}});
    } else if (line.starts_with("- ")) {
      end_block();
      in_item_ = true;
      block_ = line.substr(2);
    } else {
      const auto start = line.find_first_not_of(' ');
      if (start == std::string_view::npos) return;
      block_ += (block_.empty() ? "" : " ") + std::string(line.substr(start));
    }
  }

  void end_block() {
    if (!block_.empty()) {
      bool first = true;
      for (const std::string& part : wrapped(block_, in_item_ ? 2 : 0)) {
        const std::string lead = !in_item_ ? "" : first ? "- " : "  ";
        lines_.push_back({{lead + part, Paint::kPlain}});
        first = false;
      }
    }
    block_.clear();
    in_item_ = false;
  }

  std::vector<std::string> wrapped(std::string_view text, int indent) const {
    return wrap(clean(text, style_), style_.width - indent, std::numeric_limits<std::size_t>::max());
  }

  const Style& style_;
  std::vector<Line> lines_;
  std::string block_;  // a paragraph or an item that is not complete yet
  bool in_item_ = false;
  bool in_code_ = false;
};

}  // namespace

std::string render_markdown(std::string_view markdown, const Style& style) {
  return Page(style).write(markdown);
}

}  // namespace trapline::cli
