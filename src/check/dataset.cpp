#include "check/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace trapline::check {
namespace {

constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

// What was guessed of the columns of one name, over all files.
struct Guess {
  std::size_t files = 0;
  Tally tally;
  std::set<std::string> texts;  // labels that are texts
};

struct File {
  bool taken = false, judged = false;  // any column; one of labels or ids
  std::vector<std::string> looked;
  std::size_t unclear = 0;
};

// Says of which files nothing was taken, or maybe too little, and what there is in them.
void ask(const std::map<std::string, File>& files, std::vector<std::string>& notes) {
  constexpr std::size_t kMax = 8;
  std::size_t told = 0;
  for (const auto& [path, file] : files) {
    if (file.taken && (file.judged || file.unclear == 0)) continue;
    if (told++ == kMax) {
      notes.emplace_back("and so in more files");
      return;
    }
    notes.push_back(fmt::format("{}: {}{}{}; if one holds labels, name it with --column", path,
                                file.taken ? "nothing tells which column holds labels or ids"
                                           : "nothing in it was taken for labels, ids or numbers",
                                file.looked.empty() ? "" : ": ", column_list(file.looked)));
  }
}

std::int64_t named_classes(const std::vector<FileResult>& results) {
  std::int64_t classes = 0;
  for (const FileResult& file : results) {
    for (const ColumnResult& column : file.columns) {
      for (const inputs::ClassName& name : column.classes) classes = std::max(classes, name.id + 1);
    }
  }
  return classes;
}

void say_guesses(const Rule& rule, const std::vector<FileResult>& results, const std::string& against,
                 std::vector<std::string>& notes) {
  constexpr std::size_t kMax = 8;
  std::map<std::string, Guess> guesses;
  for (const FileResult& file : results) {
    for (const ColumnResult& column : file.columns) {
      Guess& guess = guesses[column.name];
      ++guess.files;
      guess.tally.total += column.tally.total;
      if (rule.missing_is_fine || column.often_missing)
        guess.tally.missing.count += column.tally.missing.absent ? column.tally.missing.count : 0;
      if (column.tally.min && column.tally.max) guess.tally.widen(*column.tally.min, *column.tally.max);
      for (const auto& [text, place] : column.texts ? column.texts->all : decltype(TextClasses::all){})
        guess.texts.insert(text);
    }
  }
  std::size_t told = 0;
  for (const auto& [name, guess] : guesses) {
    if (told++ == kMax) {
      notes.push_back(fmt::format("and {} more columns", guesses.size() - kMax));
      return;
    }
    const Tally& tally = guess.tally;
    const std::string range = !guess.texts.empty() ? fmt::format(", {} different texts", guess.texts.size())
                              : tally.min && tally.max
                                  ? fmt::format(", {} to {}", to_text(*tally.min), to_text(*tally.max))
                                  : "";
    const char* kind = rule.kind == RuleKind::kLabels ? "labels"
                       : rule.kind == RuleKind::kIds  ? "ids"
                                                      : "numbers";
    // Tables have fields without a value, and what a program does about them is not known here.
    const std::string missing =
        tally.missing.count > 0 ? fmt::format(", {} missing", tally.missing.count) : "";
    notes.push_back(fmt::format("guessed: {} holds {} ({} in {} file{}{}{}), {}",
                                name.empty() ? "the array" : "column '" + name + "'", kind, tally.total,
                                guess.files, guess.files == 1 ? "" : "s", range, missing, against));
  }
}

// NaN and Inf in tables in which nothing is a label or an id: that a model is trained on those columns is not
// known. An infinity may be the open end of a bin there or mean "never", and a NaN a missing value.
void note_untrained(std::vector<FileResult>& results, std::vector<std::string>& notes) {
  constexpr std::size_t kMax = 8;
  std::size_t told = 0;
  for (FileResult& file : results) {
    if (!file.table) continue;
    for (ColumnResult& column : file.columns) {
      Tally& tally = column.tally;
      if (tally.bad == 0 || !tally.first) continue;
      if (told < kMax) {
        notes.push_back(fmt::format(
            "{}: column '{}' holds NaN or Inf, {} of {} values, first in row {}: no fault, as nothing tells "
            "that a model is trained on it; `trapline check finite` calls it one",
            file.path, column.name, tally.bad, tally.total,
            tally.first->index.empty() ? 0 : tally.first->index.front()));
      } else if (told == kMax) {
        notes.emplace_back("and NaN or Inf in more columns");
      }
      ++told;
      tally.bad = 0;
    }
  }
}

}  // namespace

Report check_dataset(const std::vector<std::string>& paths, const Expected& expected, const Job& job,
                     std::vector<Error>& problems) {
  const std::vector<std::string> files = expand(paths, problems);
  Report report;
  report.command = Command::kCheck;
  report.verdict = files.empty() ? Verdict::kUnknown : Verdict::kClean;
  std::map<std::string, File> seen;
  std::int64_t values = 0;
  const auto look = [&](Rule rule, const char* unknown, const char* known) {
    const bool bounded = rule.limit > 0 || !is_integral(rule.kind);
    if (!bounded) rule.limit = kUnbounded;
    ColumnFilter wanted;
    if (rule.kind == RuleKind::kLabels) wanted.column = expected.label_column;
    wanted.none_is_fine = wanted.column.empty();
    std::vector<FileResult> results = check_files(rule, wanted, files, job);
    std::string against = bounded ? known : unknown;
    if (const std::int64_t classes = named_classes(results);
        !bounded && classes > 0 && rule.kind == RuleKind::kLabels) {
      rule.limit = classes;  // the data set says itself how many there are
      results = check_files(rule, wanted, files, job);
      against = fmt::format("held against the {} classes that the data set names", classes);
    }
    const bool trained = std::ranges::any_of(seen, [](const auto& one) { return one.second.judged; });
    if (!is_integral(rule.kind) && !trained) note_untrained(results, report.notes);
    Report part = report_of(rule, results);
    std::ranges::move(part.findings, std::back_inserter(report.findings));
    std::ranges::move(part.checked, std::back_inserter(report.checked));
    say_guesses(rule, results, against, report.notes);
    values += values_in(results);
    for (const FileResult& file : results) {
      File& it = seen[file.path];
      it.taken = it.taken || !file.columns.empty() || file.error;
      it.judged = it.judged || (is_integral(rule.kind) && !file.columns.empty());
      if (!file.looked.empty()) it.looked = file.looked;
      it.unclear = std::max(it.unclear, file.unclear);
      const bool known_problem = file.error && std::ranges::any_of(problems, [&](const Error& one) {
                                   return one.line() == file.error->line();
                                 });
      if (file.error && !known_problem) problems.push_back(*file.error);
      if (!file.whole && report.verdict == Verdict::kClean) report.verdict = Verdict::kUnknown;
    }
  };
  look(expected.labels, "not held against a number of classes: add --classes N or --model DIR",
       "held against the classes of the model");
  look(expected.ids, "not held against a table: add --rows N or --model DIR",
       "held against the table of the model");
  Rule finite;
  finite.kind = RuleKind::kFinite;
  finite.missing_is_fine = true;
  look(finite, "", "looked at for NaN and Inf");
  ask(seen, report.notes);
  if (values == 0 && problems.empty() && !files.empty()) {
    problems.push_back({"nothing was checked",
                        "no column holds values that are known to be labels, ids or numbers",
                        "name the column of labels with --column"});
  }
  if (!report.findings.empty()) report.verdict = Verdict::kFault;
  return report;
}

}  // namespace trapline::check
