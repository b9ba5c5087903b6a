#include "cli/why_command.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "cli/flags.hpp"
#include "cli/markdown.hpp"
#include "cli/output.hpp"
#include "cli/why_page.hpp"
#include "core/suggest.hpp"
#include "report/style.hpp"

namespace trapline::cli {
namespace {

constexpr int kWidth = 80;

struct WhyFlags {
  std::vector<std::string> causes;
  bool all = false;
  bool markdown = false;
  std::string color = "auto";
};

// Slugs are often typed with hyphens, codes in lower case.
std::string normal(std::string word) {
  std::ranges::transform(word, word.begin(), [](unsigned char c) {
    return c == '-' || c == ' ' ? '_' : static_cast<char>(std::tolower(c));
  });
  return word;
}

Error unknown_cause(const std::string& word) {
  std::vector<std::string> known;
  for (const CauseInfo& row : all_causes()) {
    known.push_back(normal(std::string(row.code)));
    known.emplace_back(row.slug);
  }
  Error error{fmt::format("unknown cause '{}'", word), "", "`trapline why` lists all causes"};
  if (const auto near = nearest(normal(word), known)) {
    const auto row = std::ranges::find_if(all_causes(), [&](const CauseInfo& cause) {
      return normal(std::string(cause.code)) == *near || cause.slug == *near;
    });
    error.fix = fmt::format("did you mean {} ({})?", row->code, row->slug);
  }
  return error;
}

Result<int> execute(const WhyFlags& flags) {
  std::vector<Cause> causes;
  for (const std::string& word : flags.causes) {
    const auto cause = find_cause(normal(word));
    if (!cause) return unknown_cause(word);
    causes.push_back(*cause);
  }
  if (flags.all) {
    causes.clear();
    for (const CauseInfo& row : all_causes()) causes.push_back(row.cause);
  }
  ::signal(SIGPIPE, SIG_IGN);  // `trapline why TL101 | head` is no error
  Style style = style_for(flags.color, STDOUT_FILENO);
  style.width = std::min(style.width, kWidth);
  std::string text;
  if (causes.empty()) text = list_of_causes() + "\nThe page of one: trapline why TL101\n";
  for (const Cause cause : causes) {
    if (!text.empty()) text += "\n";
    const std::string page = cause_page(cause);
    text += flags.markdown ? page : render_markdown(page, style);
  }
  write_all(STDOUT_FILENO, text);
  return 0;
}

}  // namespace

Action declare_why(FlagSet& flags, const std::vector<std::string>&) {
  auto given = std::make_shared<WhyFlags>();
  flags.add({"cause", "CODE|CAUSE", &given->causes,
             "a code of a report (TL101) or the name of a cause; none: a list"});
  flags.add({"--all", "", &given->all, "the pages of all causes"});
  flags.add({"--markdown", "", &given->markdown, "as Markdown, as in docs/causes"});
  declare_color(flags, given->color);
  return [given] { return execute(*given); };
}

}  // namespace trapline::cli
