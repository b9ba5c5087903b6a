#include "report/text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "doctor/doctor.hpp"
#include "report/lines.hpp"

namespace trapline::doctor {
namespace {

struct Mark {
  std::string_view word;
  Paint paint;
};

Mark mark_of(Level level) {
  switch (level) {
    case Level::kOk:
      return {"ok", Paint::kHelp};
    case Level::kNote:
      return {"note", Paint::kNote};
    case Level::kProblem:
      break;
  }
  return {"problem", Paint::kError};
}

}  // namespace

std::string to_text(const Diagnosis& diagnosis, const Style& style) {
  constexpr int kHanging = 9;
  std::vector<trapline::Line> out;
  const auto add = [&](const trapline::Line& label, const std::string& text) {
    for (auto& line : labelled(label, clean(text, style), style, 6, kHanging)) out.push_back(std::move(line));
  };
  const trapline::Line indent = {{std::string(kHanging, ' '), Paint::kPlain}};
  for (const Line& line : diagnosis.lines) {
    const Mark mark = mark_of(line.level);
    add({{fmt::format("{:<{}}", mark.word, kHanging), mark.paint},
         {clean(line.topic, style) + ": ", Paint::kBold}},
        line.fact);
    if (!line.means.empty()) add(indent, line.means);
    if (!line.todo.empty()) add({indent[0], {"help: ", Paint::kHelp}}, line.todo);
  }
  const auto problems = std::ranges::count(diagnosis.lines, Level::kProblem, &Line::level);
  out.push_back({{problems == 0 ? std::string("no problems")
                                : fmt::format("{} problem{} to fix", problems, problems == 1 ? "" : "s"),
                  Paint::kBold}});
  std::string text = render(out, style);
  if (diagnosis.found) text += "\nThe report of the self-test:\n" + render_text(*diagnosis.found, style);
  return text;
}

}  // namespace trapline::doctor
