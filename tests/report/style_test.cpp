#include "report/style.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace trapline {
namespace {

Style resolve(bool is_terminal, std::map<std::string, std::string> variables,
              ColorChoice choice = ColorChoice::kAuto, int columns = 0) {
  TerminalInfo terminal;
  terminal.is_terminal = is_terminal;
  terminal.columns = columns;
  terminal.variable = [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  return resolve_style(choice, terminal);
}

TEST(Style, ColorFollowsTheTerminal) {
  EXPECT_TRUE(resolve(true, {}).color);
  EXPECT_FALSE(resolve(false, {}).color);
  EXPECT_FALSE(resolve(true, {{"TERM", "dumb"}}).color);
  EXPECT_TRUE(resolve(true, {{"TERM", "xterm"}}).color);
}

TEST(Style, ColorFollowsTheUsersVariables) {
  EXPECT_FALSE(resolve(true, {{"NO_COLOR", "1"}}).color);
  EXPECT_TRUE(resolve(true, {{"NO_COLOR", ""}}).color);
  EXPECT_TRUE(resolve(false, {{"CLICOLOR_FORCE", "1"}}).color);
  EXPECT_FALSE(resolve(false, {{"CLICOLOR_FORCE", "0"}}).color);
  EXPECT_FALSE(resolve(true, {{"CLICOLOR", "0"}}).color);
  EXPECT_FALSE(resolve(true, {{"NO_COLOR", "1"}, {"CLICOLOR_FORCE", "1"}}).color);
}

TEST(Style, TheFlagHasTheLastWord) {
  EXPECT_TRUE(resolve(false, {{"NO_COLOR", "1"}}, ColorChoice::kAlways).color);
  EXPECT_FALSE(resolve(true, {{"CLICOLOR_FORCE", "1"}}, ColorChoice::kNever).color);
}

TEST(Style, WidthIsBounded) {
  EXPECT_EQ(resolve(false, {}).width, 80);
  EXPECT_EQ(resolve(true, {}, ColorChoice::kAuto, 60).width, 60);
  EXPECT_EQ(resolve(true, {}, ColorChoice::kAuto, 300).width, 100);
  EXPECT_EQ(resolve(true, {}, ColorChoice::kAuto, 3).width, 40);
}

TEST(Style, UnicodeFollowsTheLocale) {
  EXPECT_TRUE(resolve(true, {{"LANG", "en_US.UTF-8"}}).unicode);
  EXPECT_TRUE(resolve(true, {{"LC_ALL", "C.utf8"}}).unicode);
  EXPECT_FALSE(resolve(true, {{"LANG", "C"}}).unicode);
  EXPECT_FALSE(resolve(true, {}).unicode);
  EXPECT_FALSE(resolve(true, {{"LANG", "en_US.UTF-8"}, {"LC_ALL", "POSIX"}}).unicode);
}

}  // namespace
}  // namespace trapline
