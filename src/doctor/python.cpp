#include "doctor/python.hpp"

#include <fstream>
#include <iterator>

#include "run/report_folder.hpp"

namespace trapline::doctor {
namespace {

constexpr std::size_t kMaxFacts = std::size_t{1} << 20U;
// A script of its own folder would put that folder on sys.path; a program given by -c is the stricter case.
constexpr const char* kProgram = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')";

}  // namespace

PythonAnswer ask_python(const std::string& python, const std::vector<std::string>& environment,
                        const std::filesystem::path& package, double seconds) {
  PythonAnswer answer;
  const auto folder = ReportFolder::make_private();
  if (!folder) {
    answer.process.error = folder.error().line();
    return answer;
  }
  const std::filesystem::path facts = folder->path() / "facts";
  const std::string module = (package / "trapline" / "_doctor.py").string();
  answer.process = ask({python, "-c", kProgram, module, facts.string()}, environment, seconds);
  std::ifstream file(facts, std::ios::binary);
  std::string text(kMaxFacts, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  read_facts(text, answer);
  return answer;
}

}  // namespace trapline::doctor
