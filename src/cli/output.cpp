#include "cli/output.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "cli/flags.hpp"
#include "cli/report_file.hpp"
#include "cli/why_page.hpp"
#include "report/details.hpp"
#include "report/utf8.hpp"
#include "report/writer.hpp"

namespace trapline::cli {

void declare_output(FlagSet& flags, OutputFlags& output, const char* verbose) {
  std::vector<std::string> formats;
  for (const Format& format : formats_of_reports()) formats.emplace_back(format.name);
  flags.add({"--format", "FORMAT", &output.format, "how the report is written: " + list_of(formats),
             OneOf{formats}});
  flags.add({"-o,--output", "FILE", &output.file, "write the report to FILE (- is standard output)"});
  declare_color(flags, output.color);
  flags.add({"-v,--verbose", "", &output.verbose, verbose});
}

void declare_color(FlagSet& flags, std::string& color) {
  flags.add({"--color", "WHEN", &color, "colour: auto, always or never", OneOf{{"auto", "always", "never"}}});
}

Result<Output> Output::open(const OutputFlags& flags, int fallback) {
  if (flags.file.empty()) return Output(flags, fallback, nullptr);
  if (flags.file == "-") return Output(flags, STDOUT_FILENO, nullptr);
  auto file = ReportFile::open(flags.file);
  if (!file) return file.error();
  const int descriptor = (*file)->descriptor();
  return Output(flags, descriptor, std::move(file).value());
}

Output::Output(const OutputFlags& flags, int descriptor, std::unique_ptr<ReportFile> file)
    : flags_(flags), descriptor_(descriptor), file_(std::move(file)) {
  const Format& format = *find_format(flags_.format);
  if (format.stream != nullptr) stream_ = format.stream(style());
}

Output::~Output() = default;
Output::Output(Output&& other) noexcept = default;

Style style_for(const std::string& color, int descriptor) {
  const ColorChoice choice = color == "always"  ? ColorChoice::kAlways
                             : color == "never" ? ColorChoice::kNever
                                                : ColorChoice::kAuto;
  return resolve_style(choice, detect_terminal(descriptor));
}

Style Output::style() const {
  Style style = style_for(flags_.color, descriptor_);
  style.verbose = flags_.verbose;
  style.page = cause_page;
  return style;
}

std::optional<Error> Output::write(const Report& report) const {
  const std::string text =
      stream_ ? stream_(report, true) : find_format(flags_.format)->render(report, style());
  if (file_ != nullptr) return file_->write(text);
  if (write_all(descriptor_, text)) return std::nullopt;
  return Error{"cannot write the report", std::strerror(errno), "choose another file with -o"};
}

void Output::write_so_far(const Report& report) const {
  if (!stream_) return;
  const std::string text = stream_(report, false);
  // What is lost here, write() will notice.
  file_ != nullptr ? file_->append(text) : static_cast<void>(write_all(descriptor_, text));
}

std::string Output::pointer(const Report& report) const {
  if (!is_file() || report.findings.empty()) return {};
  const CauseInfo& cause = info(headline_cause(report.findings.front()));
  return fmt::format("{} ({}): the report is in {}", cause.title, cause.code, flags_.file);
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(descriptor, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(done));
  }
  return true;
}

void outlive_refused_writes() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

void say(const std::string& line) { write_all(STDERR_FILENO, "trapline: " + printable(line) + "\n"); }

}  // namespace trapline::cli
