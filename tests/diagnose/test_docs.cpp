// docs/facts.md describes every fact that is read.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

namespace trapline::diagnose {
namespace {

std::string content(const std::string& file) {
  std::ifstream in(std::filesystem::path(TRAPLINE_SOURCE_DIR) / file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Every member that the readers of facts know stands in docs/facts.md.
TEST(Docs, FactsAreDescribed) {
  const std::string page = content("docs/facts.md");
  const std::regex name(R"re("([a-z_]{2,})")re");
  int seen = 0;
  for (const char* file : {"check.cpp", "host_error.cpp", "parts.cpp", "violation.cpp"}) {
    const std::string code = content("src/diagnose/json/" + std::string(file));
    for (std::sregex_iterator it(code.begin(), code.end(), name); it != std::sregex_iterator(); ++it) {
      const std::string word = (*it)[1];
      if (word == "facts") continue;  // the object itself, in an error
      ++seen;
      EXPECT_TRUE(page.find("`" + word + "`") != std::string::npos ||
                  page.find("\"" + word + "\"") != std::string::npos)
          << word << " of " << file;
    }
  }
  EXPECT_GT(seen, 60);
}

}  // namespace
}  // namespace trapline::diagnose
