#include "log/events/messages.hpp"

#include <algorithm>
#include <deque>

#include "catalogue/fold.hpp"
#include "log/clean/text.hpp"

namespace trapline {
namespace {

using diagnose::HostErrorRow;

// Shorter phrases, folded, stand in ordinary lines, too: they only count with their whole message.
constexpr std::size_t kMinPhraseAlone = 14;
// And these stand in sentences that complain about nothing, unless something says that it is an error.
constexpr std::size_t kMinPhraseInAnyLine = 22;
constexpr std::size_t kMaxKey = 20;
constexpr std::string_view kGap = "...";  // in a phrase: whatever stands between its parts

std::vector<std::string_view> split(std::string_view list, std::string_view separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = list.find(separator);
    parts.push_back(list.substr(0, at));
    if (at == std::string_view::npos) return parts;
    list.remove_prefix(at + separator.size());
  }
}

// What is looked for in a stream of text: the end of the last part of a phrase, which keeps the automaton
// small.
std::string_view end_of(std::string_view phrase) {
  const std::string_view last = split(phrase, kGap).back();
  return last.substr(last.size() - std::min(last.size(), kMaxKey));
}

// Folded length of the phrase when all its parts stand in the line in their order; else 0.
std::size_t length_in(std::string_view phrase, std::string_view folded_line) {
  std::size_t length = 0;
  for (const std::string_view part : split(phrase, kGap)) {
    const std::string key = fold(part);
    const std::size_t at = folded_line.find(key);
    if (at == std::string_view::npos) return 0;
    folded_line.remove_prefix(at + key.size());
    length += key.size();
  }
  return length;
}

WordingRow as_wording(const HostErrorRow& row, std::string_view phrase) {
  const WordingKind kind = row.cause == Cause::kNotCuda ? WordingKind::kHost : WordingKind::kHostValue;
  const std::string_view argument = row.in_log.argument.empty() ? row.argument : row.in_log.argument;
  WordingRow wording{row.id, kind,     row.cause,      row.in_log.certainty, Device::kNo,
                     row.op, argument, end_of(phrase), row.samples.front()};
  wording.effect.refine = row.in_log.refine;
  return wording;
}

}  // namespace

const Messages& messages() {
  static const auto* const built = [] {
    auto* all = new Messages;
    static std::deque<WordingRow> host_wordings;  // rows are pointed at
    for (const WordingRow& row : wording_rows()) {
      all->rows.push_back(&row);
      all->hosts.push_back(nullptr);
    }
    for (const HostErrorRow* row : diagnose::host_error_rows()) {
      for (const std::string_view phrase : split(row->phrases, "|")) {
        host_wordings.push_back(as_wording(*row, phrase));
        all->rows.push_back(&host_wordings.back());
        all->hosts.push_back(row);
      }
    }
    all->phrases = phrases_with(all->rows);
    return all;
  }();
  return *built;
}

HostCheck host_check_in(const std::vector<const HostErrorRow*>& rows, std::string_view exception,
                        std::string_view line) {
  std::string spaced;
  auto whole = diagnose::find_host_message(rows, exception, line);
  if (!whole) {  // blanks may have been doubled; some messages have two of them
    spaced = single_spaced(line);
    if (spaced.size() != line.size()) whole = diagnose::find_host_message(rows, exception, line = spaced);
  }
  // A program goes on after a warning in the same words.
  const std::string_view before =
      whole ? line.substr(0, static_cast<std::size_t>(whole->text.data() - line.data())) : line;
  if (before.find("Warning:") != std::string_view::npos) return {};
  if (whole) return {whole->row, std::string(whole->text)};

  HostCheck check;
  const std::string folded = fold(line);
  const bool is_error = line.find("rror") != std::string_view::npos ||
                        line.find("xception") != std::string_view::npos || !exception.empty();
  std::size_t longest = (is_error ? kMinPhraseAlone : kMinPhraseInAnyLine) - 1;
  for (const bool needs_facts : {false, true}) {
    if (check.row != nullptr) break;
    for (const HostErrorRow* row : rows) {
      if ((row->when != nullptr) != needs_facts) continue;
      for (const std::string_view phrase : split(row->phrases, "|")) {
        if (const std::size_t length = length_in(phrase, folded); length > longest) {
          longest = length;
          check.row = row;
        }
      }
    }
  }
  return check;
}

}  // namespace trapline
