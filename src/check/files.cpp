#include "check/files.hpp"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "check/class_gaps.hpp"
#include "check/shards.hpp"
#include "check/survey.hpp"
#include "diagnose/diagnose.hpp"
#include "inputs/mapped_file.hpp"
#include "inputs/png_colours.hpp"
#include "inputs/surroundings.hpp"

namespace trapline::check {
namespace {

namespace fs = std::filesystem;
using inputs::MappedFile;
using inputs::Source;

std::string holds(RuleKind kind) {
  switch (kind) {
    case RuleKind::kLabels:
      return "labels";
    case RuleKind::kIds:
      return "ids";
    default:
      return "floating point numbers";
  }
}

Error no_column(const Rule& rule, const ColumnFilter& wanted, const std::string& path,
                const std::vector<std::string>& names) {
  if (!wanted.column.empty()) {
    return {"cannot check " + path,
            names.empty() ? fmt::format("it has no column '{}'", wanted.column)
                          : fmt::format("it has no column '{}', but {}", wanted.column, column_list(names)),
            "name another one with --column"};
  }
  if (names.empty()) {
    return {"cannot check " + path, fmt::format("it holds no {}", holds(rule.kind)), "name another file"};
  }
  if (!is_integral(rule.kind)) {
    return {"cannot check " + path, "it holds no floating point numbers: " + column_list(names),
            "check labels with `trapline check labels`, ids with `trapline check ids`"};
  }
  return {"cannot check " + path,
          fmt::format("which column holds the {} is not clear: {}", holds(rule.kind), column_list(names)),
          "name it with --column"};
}

Error unknown(const std::string& path, std::span<const std::string> files, const std::string& why) {
  if (const std::optional<std::string> colours = inputs::few_colours(files)) {
    return {
        "cannot check " + path,
        *colours + ", which looks like a mask in colours; cross_entropy takes the class number of each pixel",
        "replace each colour by its class number, as the data set's list of colours has it, and save that as "
        "gray PNG"};
  }
  return {"cannot check " + path, why, "docs/formats.md lists those that are"};
}

bool has_reader(const std::string& path) {
  const Result<MappedFile> file = MappedFile::open(path);
  return file && inputs::find_reader(Source{path, file->bytes()}) != nullptr;
}

void add_folder(const std::string& folder, std::vector<std::string>& files, std::vector<Error>& problems) {
  std::error_code error;
  std::vector<std::string> found;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored) && !at->path().filename().string().starts_with(".")) {
      found.push_back(at->path().string());
    }
  }
  std::ranges::sort(found);
  std::vector<std::string> known = found;
  std::erase_if(known, [](const std::string& path) { return !has_reader(path); });
  if (known.empty())
    problems.push_back(unknown(folder, found, "no file below it has a format that is known"));
  files.insert(files.end(), known.begin(), known.end());
}

std::vector<std::string> matches(const std::string& pattern) {
  std::vector<std::string> found;
  glob_t list{};
  if (::glob(pattern.c_str(), 0, nullptr, &list) == 0) {
    found.assign(list.gl_pathv, list.gl_pathv + list.gl_pathc);
  }
  ::globfree(&list);
  return found;
}

void add_path(const std::string& path, std::vector<std::string>& files, std::vector<Error>& problems) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file) {
    problems.push_back(file.error());
  } else if (inputs::find_reader(Source{path, file->bytes()}) != nullptr) {
    files.push_back(path);
  } else if (file->is_folder()) {
    add_folder(path, files, problems);
  } else {
    problems.push_back(unknown(path, {&path, 1}, "its format is not known"));
  }
}

// The error is the reader's, or that no column is the one that is wanted.
Result<bool> read_mapped(const std::string& path, inputs::Sink& sink, std::int64_t& bytes,
                         FileResult* about) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file) return file.error();
  bytes = static_cast<std::int64_t>(file->bytes().size());
  const Source source{path, file->bytes()};
  const inputs::Reader* reader = inputs::find_reader(source);
  if (reader == nullptr)
    return Error{"cannot check " + path, "its format is not known", "docs/formats.md lists those that are"};
  if (about != nullptr) {
    about->table = reader->is_table(source);
    about->records = about->table && reader->name() != "hdf5";  // which holds whatever a program keeps
    about->annotations = reader->annotations(source);
  }
  return inputs::read_with_surroundings(*reader, source, sink);
}

// One reading. `changed`: somebody wrote to the file meanwhile, or to one of those that it stands for, so
// nothing that was seen of it counts.
Result<bool> read(const std::string& path, inputs::Sink& sink, std::int64_t& bytes, bool& changed,
                  FileResult* about = nullptr) {
  inputs::take_changed_file();  // of whatever was read before
  Result<bool> whole = read_mapped(path, sink, bytes, about);
  const std::optional<Error> problem = inputs::take_changed_file();
  changed = problem.has_value();
  if (changed) return *problem;
  return whole;
}

// Replaces the tallies of columns with something bad in them by those of a closer look.
void look_again(const Rule& rule, const Job& job, FileResult& result) {
  ColumnFilter bad;
  for (const ColumnResult& column : result.columns) {
    if (!column.tally.clean()) bad.only.insert(column.name);
  }
  if (bad.only.empty()) return;
  const Parallel alone = one_after_the_other;
  ColumnSink sink(rule, bad, true, alone, job.stop);
  std::int64_t bytes = 0;
  bool changed = false;
  const Result<bool> whole = read(result.path, sink, bytes, changed);
  if (changed) {
    result.columns.clear();
    result.error = whole.error();
    result.whole = false;
  }
  if (!whole || !*whole) return;
  // Tables of one source may have columns of the same name: they come in the same order again.
  std::size_t next = 0;
  for (ColumnResult& detailed : sink.take()) {
    while (next < result.columns.size() && result.columns[next].name != detailed.name) ++next;
    if (next == result.columns.size()) return;
    result.columns[next++].tally = std::move(detailed.tally);
  }
}

// Mistakes are few: where a table leaves out many values of a column that only may hold labels, it means to.
// A `y` may be any outcome, and outcomes are often not there: in it none is a mistake.
void note_often_missing(FileResult& result) {
  constexpr std::int64_t kFew = 10;  // one of so many
  for (ColumnResult& column : result.columns) {
    const Tally& tally = column.tally;
    const std::int64_t rows = tally.total + tally.missing.count + tally.malformed.count;
    column.often_missing = column.classes.empty() && !says_label(column.name) &&
                           (!says_class(column.name) || tally.missing.count * kFew > rows);
  }
}

// Labels that are in the range of the classes, and none of them.
void look_for_gaps(const Rule& rule, const Job& job, FileResult& result) {
  if (rule.kind != RuleKind::kLabels || result.error) return;
  for (ColumnResult& column : result.columns) {
    std::int64_t limit = 0;
    for (const inputs::ClassName& name : column.classes) limit = std::max(limit, name.id + 1);
    if (!column.tally.clean() || !has_gaps(column.classes, limit)) continue;
    GapSink sink(column.name, column.classes, job.stop);
    std::int64_t bytes = 0;
    bool changed = false;
    const Result<bool> whole = read(result.path, sink, bytes, changed);
    if (!changed && whole && *whole && sink.bad() > 0) column.unnamed = {sink.bad(), sink.first()};
  }
}

}  // namespace

std::vector<std::string> expand(const std::vector<std::string>& words, std::vector<Error>& problems) {
  std::vector<std::string> files;
  for (const std::string& word : words) {
    std::error_code ignored;
    if (fs::exists(word, ignored) || word.find_first_of("*?[") == std::string::npos) {
      add_path(word, files, problems);
      continue;
    }
    const std::vector<std::string> found = matches(word);
    if (found.empty())
      problems.push_back({"cannot check " + word, "no file matches it", "check the pattern"});
    for (const std::string& path : found) add_path(path, files, problems);
  }
  return files;
}

namespace {

bool fits(const Rule& rule, Role role, const Evidence& column) {
  switch (rule.kind) {
    case RuleKind::kLabels:
      return role == Role::kLabels;
    case RuleKind::kIds:
      return role == Role::kIds;
    default:
      return is_floating(column.dtype) && role != Role::kMask && role != Role::kText;
  }
}

// Which columns the rule is for, by what they show. Empty: none, and `result.looked` says what there is.
std::optional<Error> choose(const Rule& rule, const Job& job, FileResult& result, ColumnFilter& want) {
  Survey survey(job.stop);
  bool changed = false;
  const Result<bool> whole = read(result.path, survey, result.bytes, changed);
  const std::vector<Evidence> columns = survey.take();
  std::vector<Role> roles = roles_of(columns);
  // Beside columns of text it is no lone array: R writes the names of rows below an empty header.
  if (columns.size() == 1 && columns[0].name.empty() && !survey.without_numbers().empty())
    roles[0] = is_floating(columns[0].dtype) ? Role::kNumbers : Role::kOther;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (fits(rule, roles[i], columns[i])) want.only.insert(columns[i].name);
    if (roles[i] == Role::kOther) ++result.unclear;
    result.looked.push_back(columns[i].name);
  }
  result.looked.insert(result.looked.end(), survey.without_numbers().begin(), survey.without_numbers().end());
  // The only column there is needs no name, once it is said what it holds.
  if (want.only.empty() && !want.none_is_fine && is_integral(rule.kind) && result.looked.size() == 1 &&
      columns.size() == 1) {
    want.only.insert(columns[0].name);
  }
  if (!whole) return whole.error();
  return std::nullopt;
}

}  // namespace

FileResult check_file(const Rule& rule, const ColumnFilter& wanted, const std::string& path, const Job& job) {
  FileResult result;
  result.path = path;
  const Parallel parallel = [&](std::int64_t count, const std::function<void(std::int64_t)>& body) {
    job.workers.run(count, body);
  };
  ColumnFilter want = wanted;
  want.any = want.any || rule.weights;
  const bool by_role = want.column.empty() && !want.any;
  if (by_role) result.error = choose(rule, job, result, want);
  if (!by_role || !want.only.empty()) {
    ColumnSink sink(rule, want, false, parallel, job.stop);
    bool changed = false;
    const Result<bool> whole = read(path, sink, result.bytes, changed, &result);
    if (!changed) result.columns = sink.take();
    result.objects = sink.objects();
    result.error.reset();
    if (!whole) result.error = whole.error();
    result.whole = whole && *whole;
    if (!by_role) result.looked = sink.passed_over();
  } else {
    result.whole = !result.error && !job.stop;
  }
  if (result.columns.empty() && !result.error && result.whole && !want.none_is_fine) {
    result.error = no_column(rule, want, path, result.looked);
  }
  if (by_role && want.none_is_fine && rule.kind == RuleKind::kLabels) note_often_missing(result);
  if (!job.stop) look_again(rule, job, result);
  if (!job.stop) look_for_gaps(rule, job, result);
  job.progress.bytes += result.bytes;
  ++job.progress.files;
  return result;
}

std::vector<FileResult> check_files(const Rule& rule, const ColumnFilter& wanted,
                                    const std::vector<std::string>& paths, const Job& job) {
  std::vector<FileResult> results(paths.size());
  job.progress.all_files = static_cast<std::int64_t>(paths.size());
  for (const std::string& path : paths) {
    std::error_code ignored;
    const auto size = fs::file_size(path, ignored);
    if (!ignored) job.progress.all_bytes += static_cast<std::int64_t>(size);
  }
  job.workers.run(static_cast<std::int64_t>(paths.size()), [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    results[at].path = paths[at];
    if (!job.stop) results[at] = check_file(rule, wanted, paths[at], job);
  });
  return results;
}

namespace {

std::string folder_of(const std::string& path) { return fs::path(path).parent_path().string(); }

// Left by a notebook, a file manager or a cache; ImageFolder takes it for a class.
bool is_hidden(const inputs::ClassName& name) { return name.name.starts_with('.'); }

// What is wrong with a tree of pictures as a whole, whose splits are columns of one name.
void judge_tree(const FileResult& file, std::vector<Finding>& findings) {
  const ColumnResult* first = nullptr;
  for (const ColumnResult& column : file.columns) {
    if (column.classes.empty() || column.last_file.empty()) continue;
    diagnose::ClassFolders facts;
    facts.source = file.path;
    facts.column = column.name;
    facts.other = folder_of(column.last_file);
    for (const inputs::ClassName& name : column.classes) {
      facts.other_names.push_back(name.name);
      if (!name.empty && is_hidden(name)) {
        facts.hidden = facts.other + "/" + name.name;
        facts.label = name.id;
        findings.push_back(diagnose::finding_of(facts));
        facts.hidden.clear();
      }
      if (!name.empty) continue;
      facts.empty = facts.other + "/" + name.name;
      findings.push_back(diagnose::finding_of(facts));
      facts.empty.clear();
    }
    if (first == nullptr) {
      first = &column;
      continue;
    }
    facts.first = folder_of(first->last_file);
    for (const inputs::ClassName& name : first->classes) facts.first_names.push_back(name.name);
    if (facts.first_names != facts.other_names) findings.push_back(diagnose::finding_of(facts));
  }
}

// The texts of all files together: the splits of a data set have one list of classes.
void judge_texts(const Rule& rule, const std::vector<FileResult>& results, std::vector<Finding>& findings) {
  std::map<std::string, diagnose::TextLabels> columns;
  std::map<std::string, std::set<std::string>> seen;
  for (const FileResult& file : results) {
    for (const ColumnResult& column : file.columns) {
      if (!column.texts) continue;
      diagnose::TextLabels& facts = columns[column.name];
      for (const auto& [text, place] : column.texts->all) {
        if (!seen[column.name].insert(text).second) continue;
        if (static_cast<std::int64_t>(facts.names.size()) == rule.limit)
          facts.first = {place.source.empty() ? file.path : place.source, place.line, place.index,
                         place.before};
        facts.names.push_back(text);
      }
    }
  }
  for (auto& [name, facts] : columns) {
    facts.column = name;
    facts.limit = rule.limit;
    if (static_cast<std::int64_t>(facts.names.size()) > rule.limit)
      findings.push_back(diagnose::finding_of(facts));
  }
}

Finding finding_of(const Subject& subject, const ColumnResult& column) {
  const Place& first = column.unnamed->first;
  diagnose::UnnamedClass facts;
  facts.column = subject.name;
  facts.first = {first.source.empty() ? subject.source : first.source, first.line, first.index, first.before};
  facts.label = std::get<std::int64_t>(first.value);
  facts.bad = column.unnamed->bad;
  facts.total = column.tally.total;
  for (const inputs::ClassName& name : column.classes) facts.ids.push_back(name.id);
  std::ranges::sort(facts.ids);
  return diagnose::finding_of(facts);
}

// " as labels: fine, coarse"; of an array without a name " as labels".
std::string as_what(const Rule& rule, const std::map<std::string, Range>& columns) {
  std::vector<std::string> names;
  for (const auto& [name, range] : columns) {
    if (!name.empty()) names.push_back(name);
  }
  if (columns.empty()) return "";
  return fmt::format(" as {}{}{}", is_integral(rule.kind) ? holds(rule.kind) : "numbers",
                     names.empty() ? "" : ": ", column_list(names));
}

}  // namespace

std::int64_t values_in(const std::vector<FileResult>& results) {
  std::int64_t values = 0;
  for (const FileResult& file : results) {
    for (const ColumnResult& column : file.columns) {
      values += column.tally.total + column.tally.missing.count + column.tally.malformed.count;
    }
  }
  return values;
}

std::string column_list(const std::vector<std::string>& names) {
  constexpr std::size_t kMax = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMax, names.size()); ++i) {
    text += (i == 0 ? "" : ", ") + (names[i].empty() ? std::string("(no name)") : names[i]);
  }
  if (names.size() > kMax) text += ", ...";
  return text;
}

Report report_of(const Rule& rule, const std::vector<FileResult>& results) {
  constexpr std::size_t kMaxChecked = 4096;
  Report report;
  report.command = Command::kCheck;
  std::map<std::string, Range> ranges;  // by name: two columns of labels need not have the same classes
  std::int64_t values = 0;
  std::size_t columns = 0, unread = 0;
  for (const FileResult& file : results) {
    for (const ColumnResult& column : file.columns) {
      ranges[column.name].add(column.tally, rule);
      values += column.tally.total + column.tally.missing.count + column.tally.malformed.count;
      if (report.checked.size() < kMaxChecked && file.whole)
        report.checked.push_back({file.path, column.name});
      ++columns;
    }
    if (!file.whole) ++unread;
  }
  judge_texts(rule, results, report.findings);
  const FileResult* last = nullptr;
  for (const WholeColumn& part : whole_columns(results)) {
    const FileResult& file = *part.file;
    const ColumnResult& column = part.whole();
    if (rule.kind == RuleKind::kLabels && &file != last) judge_tree(file, report.findings);
    last = &file;
    // The folder that is no class has moved the numbers of the others: they are judged without it.
    if (rule.kind == RuleKind::kLabels && std::ranges::any_of(column.classes, is_hidden)) continue;
    const Range& range = ranges[column.name];
    const std::optional<Range> seen =
        is_integral(rule.kind) && range.count > 0 && unread == 0 ? std::optional(range) : std::nullopt;
    const std::string dtype = column.stored.empty() ? std::string(name_of(column.dtype)) : column.stored;
    const Subject subject{file.path,      column.name,  dtype,           column.sizes,
                          column.classes, file.records, file.annotations};
    Rule its = rule;
    its.missing_is_fine = rule.missing_is_fine || column.often_missing;
    for (Finding& finding : findings_of(its, subject, column.tally, seen)) {
      report.findings.push_back(std::move(finding));
    }
    if (column.unnamed) report.findings.push_back(finding_of(subject, column));
    if (auto finding = finding_of(rule, subject, column.lengths)) {
      report.findings.push_back(std::move(*finding));
    }
  }
  report.verdict = !report.findings.empty() ? Verdict::kFault
                   : unread > 0             ? Verdict::kUnknown
                                            : Verdict::kClean;
  report.notes.push_back(fmt::format("{} value{} in {} column{} of {} file{} checked{}", values,
                                     values == 1 ? "" : "s", columns, columns == 1 ? "" : "s", results.size(),
                                     results.size() == 1 ? "" : "s",
                                     rule.weights ? "" : as_what(rule, ranges)));
  if (unread > 0) report.notes.push_back(fmt::format("{} of them not read to the end", unread));
  for (const FileResult& file : results) {
    if (file.objects.empty()) continue;
    report.notes.push_back(
        fmt::format("{}: not looked into, and nothing of it run: {}", file.path, column_list(file.objects)));
  }
  return report;
}

}  // namespace trapline::check
