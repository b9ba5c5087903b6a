#include "cli/explain_command.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "cli/exit_code.hpp"
#include "cli/flags.hpp"
#include "cli/live_sink.hpp"
#include "cli/output.hpp"
#include "log/read/job_folder.hpp"
#include "log/read/reader.hpp"
#include "report/collected.hpp"
#include "report/merge.hpp"
#include "report/utf8.hpp"

namespace trapline::cli {
namespace {

struct ExplainFlags {
  std::vector<std::string> paths;
  OutputFlags output;
};

bool is_folder(const std::string& path) {
  struct stat state {};
  return ::stat(path.c_str(), &state) == 0 && S_ISDIR(state.st_mode);
}

// All inputs of one call: they are one job, and get one verdict.
class Job {
 public:
  explicit Job(const Output& output)
      : sink_(reasoner_, say,
              [&output](const Report& so_far) {
                Report report = so_far;
                report.command = Command::kExplain;
                output.write_so_far(report);
              }),
        reader_(sink_, {.skip = [this](const std::string& path) { return sort_out(path); }}) {}

  void read(const std::string& path) {
    if (path != "-" && is_folder(path)) return read_folder(path);
    if (path != "-" && path.ends_with(".json") && read_json(path)) return;
    reader_.read_path(path);
    take_problems(false);
  }

  Report finish() {
    Report from_logs = reasoner_.finish();
    const auto& notes = reader_.summary().notes;
    from_logs.notes.insert(from_logs.notes.end(), notes.begin(), notes.end());
    for (const std::string& source : sink_.empty_sources()) from_logs.notes.push_back(source + " is empty");
    std::ranges::stable_sort(collected_.findings, {}, &CollectedFinding::written);
    Report report = merge(merge(collected_), std::move(from_logs));
    report.command = Command::kExplain;
    if (read_nothing() && !reports_read_) leave_open(report);
    leave_open_what_died(report);
    // What was not read may hold the fault.
    const ReadSummary& read = reader_.summary();
    for (const std::string& omission : read.omissions) leave_open(report, omission);
    if (read.more_omissions > 0) leave_open(report, fmt::format("{} more of these", read.more_omissions));
    if (problems_ > 0 && report.findings.empty())
      leave_open(report, fmt::format("{} could not be read to the end",
                                     problems_ == 1 ? "1 input" : fmt::format("{} inputs", problems_)));
    return report;
  }

  bool has_problems() const { return problems_ > 0; }
  // No text, no report: a misspelt name, or the end of a pipe whose other end died. That is not a clean log.
  bool read_nothing() const {
    return reader_.summary().bytes == 0 && collected_.findings.empty() && !error_read_;
  }

 private:
  // A guarded process that an exception ended is not clean, though the exception is no fault that is known.
  void leave_open_what_died(Report& report) const {
    const auto died =
        std::ranges::find_if(collected_.ends, [](const ProcessEnd& end) { return !end.other.empty(); });
    if (died == collected_.ends.end() || !report.findings.empty()) return;
    leave_open(report, fmt::format("a process ended by {}: that is not a kind of fault that Trapline knows",
                                   died->other));
  }

  // The reader meets the files of a folder once; those that are no logs are put aside for later.
  bool sort_out(const std::string& path) {
    const JobFile kind = kind_of_file(path);
    if (kind == JobFile::kReport) report_files_.push_back(path);
    if (kind == JobFile::kErrorFile) error_files_.push_back(path);
    return kind != JobFile::kLog;
  }

  void read_folder(const std::string& path) {
    report_files_.clear();
    error_files_.clear();
    reader_.read_path(path);
    bool any = !report_files_.empty();
    reports_read_ = reports_read_ || any;
    for (const std::string& file : report_files_) read_report_file(file, collected_);
    for (const std::string& file : error_files_) {
      // One that is torn or forged may still tell something, as a log.
      any = read_error(file) || reader_.read_path(file) || any;
    }
    take_problems(any);
  }

  // A report or an error file that was named itself; false: read it as a log.
  bool read_json(const std::string& path) {
    if (!add_report(path, collected_)) return read_error(path);
    return reports_read_ = true;
  }

  bool read_error(const std::string& path) {
    const auto read = read_error_file(path, sink_);
    error_read_ = error_read_ || (read && *read);
    return read && *read;
  }

  // Problems are told as they come: a live input may follow. A folder with reports needs no logs.
  void take_problems(bool logs_are_optional) {
    const ReadSummary& summary = reader_.summary();
    for (; told_ < summary.problems.size(); ++told_) {
      const ReadProblem& problem = summary.problems[told_];
      if (logs_are_optional && problem.no_logs) continue;
      ++problems_;
      say(problem.error.line());
    }
    if (summary.more_problems > more_told_) {
      const auto more = summary.more_problems - more_told_;
      more_told_ = summary.more_problems;
      problems_ += static_cast<std::size_t>(more);
      say(fmt::format("{} more of these", more));
    }
  }

  Reasoner reasoner_;
  LiveSink sink_;
  LogReader reader_;
  Collected collected_;
  std::vector<std::string> report_files_;  // of the folder that is being read
  std::vector<std::string> error_files_;
  std::size_t problems_ = 0;
  bool error_read_ = false;
  bool reports_read_ = false;
  std::size_t told_ = 0;
  std::int64_t more_told_ = 0;
};

// Ctrl-C in `tail -f log | trapline explain -` ends tail, and the report is what the user waits for then. The
// second one ends Trapline too.
void outlive_one_interrupt() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
}

Result<int> execute(ExplainFlags& flags) {
  if (flags.paths.empty()) {
    if (::isatty(STDIN_FILENO) == 1) {
      return Error{"nothing to explain", "", "name a log or a folder, e.g. trapline explain train.log"};
    }
    flags.paths.emplace_back("-");
  }
  const auto output = Output::open(flags.output, STDOUT_FILENO);
  if (!output) return output.error();
  outlive_refused_writes();
  if (std::ranges::find(flags.paths, "-") != flags.paths.end()) outlive_one_interrupt();
  Job job(*output);
  for (const std::string& path : flags.paths) job.read(path);
  const Report report = job.finish();
  // The lines above have said it all.
  const bool is_said = job.read_nothing() && job.has_problems() && report.findings.empty();
  if (is_said && flags.output.format == "text" && !output->is_file()) return kUsageError;
  if (const auto problem = output->write(report)) return *problem;
  if (const std::string pointer = output->pointer(report); !pointer.empty()) say(pointer);
  if (job.has_problems()) return kUsageError;
  return exit_code_of(report.verdict);
}

}  // namespace

Action declare_explain(FlagSet& flags, const std::vector<std::string>&) {
  auto given = std::make_shared<ExplainFlags>();
  flags.add({"path", "PATH", &given->paths,
             "logs, folders of logs, or report folders; - is standard input. Together they are one job"});
  declare_output(flags, given->output,
                 "do not shorten the report; add the stack and the lines that it rests on");
  flags.set_footer(
      "Exit code: 0 no fault, 1 a cause is named, 2 usage or an input that could not be read (the others are "
      "read), 3 a fault without a cause, or nothing to read.\n"
      "Compressed logs (.gz, .zst, .bz2, .xz) are read as they are. Live: tail -f log | trapline explain -");
  return [given] { return execute(*given); };
}

}  // namespace trapline::cli
