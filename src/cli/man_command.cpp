#include "cli/man_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "core/suggest.hpp"
#include "core/version.hpp"

namespace trapline::cli {
namespace {

struct ManFlags {
  std::vector<std::string> command;
  std::optional<std::filesystem::path> all;
};

// Text of a page: man(7) and groff(7) give these characters a meaning.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool at_start = out.empty() || out.back() == '\n';
    if (at_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else if (c == '`') {
      out += "\\(ga";
    } else if (c == '^') {
      out += "\\(ha";
    } else if (c == '~') {
      out += "\\(ti";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

// trapline-check-labels
std::string page_name(std::string_view command) {
  std::string name = command.empty() ? "trapline" : "trapline-" + std::string(command);
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string head(const std::string& name, std::string_view summary) {
  std::string title = name;
  std::ranges::transform(title, title.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return fmt::format(".TH {} 1 \"{}\" \"trapline {}\" \"Trapline\"\n.SH NAME\n{} \\- {}\n", roff(title),
                     commit_date(), kVersion, roff(name), roff(summary));
}

std::string paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += (out.empty() ? "" : ".PP\n") + roff(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string flag_entry(const Flag& flag) {
  std::string names;
  for (std::size_t at = 0; at < flag.names.size();) {
    const std::size_t end = std::min(flag.names.find(',', at), flag.names.size());
    const std::string name = flag.names.substr(at, end - at);
    if (name.starts_with('-')) names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
    at = end + 1;
  }
  if (!flag.value.empty()) names += fmt::format("{}\\fI{}\\fR", names.empty() ? "" : " ", roff(flag.value));
  return fmt::format(".TP\n{}\n{}\n", names, roff(flag.help));
}

std::string page_of(const CommandRow& row) {
  FlagSet flags(row.name, row.summary, row.usage);
  const std::vector<std::string> program;
  const Action unused = row.declare(flags, program);
  std::string text = head(page_name(row.name), row.summary);
  text += fmt::format(".SH SYNOPSIS\n\\fBtrapline {}\\fR {}\n", roff(row.name), roff(row.usage));
  std::string arguments, options;
  for (const Flag& flag : flags.flags())
    (flag.names.starts_with('-') ? options : arguments) += flag_entry(flag);
  if (!arguments.empty()) text += ".SH ARGUMENTS\n" + arguments;
  text += ".SH OPTIONS\n" + options + ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nprint a short help\n";
  if (!flags.footer().empty()) text += ".SH NOTES\n" + paragraphs(flags.footer());
  return text + ".SH SEE ALSO\n\\fBtrapline\\fR(1)\n";
}

std::string main_page() {
  std::string text = head("trapline", "names the cause of a device-side assert or shape error in PyTorch") +
                     ".SH SYNOPSIS\n\\fBtrapline\\fR \\fICOMMAND\\fR [flags]\n.SH DESCRIPTION\n" +
                     paragraphs(
                         "Trapline runs a PyTorch program under guard and names the line, the tensor's "
                         "element, the value, the valid "
                         "range and what to change; it reads logs of programs that have died, and checks "
                         "data, tokenizers and models "
                         "beforehand.") +
                     ".SH COMMANDS\n";
  for (const CommandRow& row : commands()) {
    text += fmt::format(".TP\n\\fB{}\\fR\n{}; see \\fB{}\\fR(1)\n", roff(row.name), roff(row.summary),
                        roff(page_name(row.name)));
  }
  return text +
         ".SH EXAMPLES\n.TP\ntrapline run python train.py\nrun a program; when it fails, name the cause\n"
         ".TP\ntrapline explain train.log\nname the cause of a failure from its log\n"
         ".TP\ntrapline doctor\nlook at the machine, and say what to do\n";
}

Result<int> write_pages(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const auto put = [&](std::string_view command, const std::string& text) {
    return static_cast<bool>((std::ofstream(folder / (page_name(command) + ".1")) << text).flush());
  };
  bool done = put("", main_page());
  for (const CommandRow& row : commands()) done = put(row.name, page_of(row)) && done;
  if (done) return 0;
  return Error{"cannot write the pages to " + folder.string(), std::strerror(errno), "choose another folder"};
}

Result<int> execute(const ManFlags& flags) {
  if (flags.all) return write_pages(*flags.all);
  if (flags.command.empty()) {
    write_all(STDOUT_FILENO, main_page());
    return 0;
  }
  const std::string name = fmt::format("{}", fmt::join(flags.command, " "));
  std::vector<std::string> names;
  for (const CommandRow& row : commands()) {
    if (row.name == name) {
      write_all(STDOUT_FILENO, page_of(row));
      return 0;
    }
    names.emplace_back(row.name);
  }
  const auto near = nearest(name, names);
  return Error{fmt::format("there is no command '{}'", name), "",
               near ? fmt::format("did you mean `trapline man {}`?", *near) : "see `trapline --help`"};
}

}  // namespace

Action declare_man(FlagSet& flags, const std::vector<std::string>&) {
  auto given = std::make_shared<ManFlags>();
  flags.add({"command", "COMMAND", &given->command, "the command; none: the page of the program"});
  flags.add({"--all", "DIR", &given->all, "write the pages of all commands into this folder"});
  flags.set_footer("To read one: trapline man run | man -l -");
  return [given] { return execute(*given); };
}

}  // namespace trapline::cli
