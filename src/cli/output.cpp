#include "cli/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "cli/flags.hpp"
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
  if (flags.file.empty()) return Output(flags, fallback, false);
  if (flags.file == "-") return Output(flags, STDOUT_FILENO, false);
  const int descriptor = ::open(flags.file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return Error{"cannot write '" + flags.file + "'", std::strerror(errno), "choose another file with -o"};
  }
  return Output(flags, descriptor, true);
}

Output::Output(const OutputFlags& flags, int descriptor, bool owned)
    : flags_(flags), descriptor_(descriptor), owned_(owned) {
  const Format& format = *find_format(flags_.format);
  if (format.stream != nullptr) stream_ = format.stream(style());
}

Output::~Output() {
  if (owned_) ::close(descriptor_);
}

Output::Output(Output&& other) noexcept
    : flags_(std::move(other.flags_)),
      descriptor_(other.descriptor_),
      owned_(std::exchange(other.owned_, false)),
      stream_(std::move(other.stream_)) {}

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

bool Output::write(const Report& report) const {
  return write_all(descriptor_,
                   stream_ ? stream_(report, true) : find_format(flags_.format)->render(report, style()));
}

void Output::write_so_far(const Report& report) const {
  if (stream_) write_all(descriptor_, stream_(report, false));  // what is lost here, write() will notice
}

std::string Output::pointer(const Report& report) const {
  if (!owned_ || report.findings.empty()) return {};
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

void say(const std::string& line) { write_all(STDERR_FILENO, "trapline: " + printable(line) + "\n"); }

}  // namespace trapline::cli
