// Where a report goes, and how: the flags --format, -o, --color and -v, which every command shares.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/finding.hpp"
#include "core/result.hpp"
#include "report/style.hpp"

namespace trapline::cli {

class FlagSet;
class ReportFile;

struct OutputFlags {
  std::string format = "text";
  std::string file;  // empty: not given; "-": standard output
  std::string color = "auto";
  bool verbose = false;
};

// `verbose`: what -v adds to this command's report.
void declare_output(FlagSet& flags, OutputFlags& output, const char* verbose);
void declare_color(FlagSet& flags, std::string& color);
// How text looks on this descriptor; `color` is the value of --color.
Style style_for(const std::string& color, int descriptor);

// An open destination. It is opened before the work starts, so that a report is not lost to a mistyped path
// after hours of training.
class Output {
 public:
  // `fallback` is the descriptor that is used when -o is not given.
  static Result<Output> open(const OutputFlags& flags, int fallback);
  ~Output();
  Output(Output&& other) noexcept;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  Output& operator=(Output&&) = delete;

  // Writes the report in the chosen format; why the destination did not take it. A regular file is replaced
  // by the whole report or stays what it was.
  std::optional<Error> write(const Report& report) const;
  // Writes what is known of a report that grows, in formats that can be written piece by piece; the others
  // wait for write().
  void write_so_far(const Report& report) const;
  bool is_file() const { return file_ != nullptr; }
  // For a report that went to a file: one line that says what was found and where to read it. Empty when
  // nothing was found, or when the user sees the report itself.
  std::string pointer(const Report& report) const;

 private:
  Output(const OutputFlags& flags, int descriptor, std::unique_ptr<ReportFile> file);
  Style style() const;

  OutputFlags flags_;
  int descriptor_ = -1;
  std::unique_ptr<ReportFile> file_{};                        // of -o FILE
  std::function<std::string(const Report&, bool)> stream_{};  // empty: the format has none
};

// "trapline: LINE" on standard error; what cannot be printed is written out.
void say(const std::string& line);

// Writes all of the text, through interrupted and partial writes.
bool write_all(int descriptor, std::string_view text);

// From now on a reader that went away (SIGPIPE) and a limit on the size of files (SIGXFSZ) make writes fail,
// and end nothing. Programs that are started later inherit this.
void outlive_refused_writes();

}  // namespace trapline::cli
