#include "run/environment.hpp"

#include <gtest/gtest.h>

namespace trapline {
namespace {

using Texts = std::vector<std::string>;

GuardSettings settings() {
  GuardSettings out;
  out.python = "/p";
  out.library = "/lib/libtrapline.so";
  out.reports = "/reports";
  return out;
}

TEST(Environment, PutsTheGuardIn) {
  EXPECT_EQ(guarded_environment({}, settings()),
            (Texts{"PYTHONPATH=/p/trapline/startup:/p", "TRAPLINE_GUARD=1", "TRAPLINE_REPORT_DIR=/reports",
                   "TRAPLINE_LIB=/lib/libtrapline.so"}));
}

TEST(Environment, KeepsTheUsersEntriesAndTheirOrder) {
  const Texts out = guarded_environment(
      Texts{"A=1", "PYTHONPATH=/mine::x", "odd", "B=a=b", "TRAPLINE_GUARD=0"}, settings());
  EXPECT_EQ(out,
            (Texts{"A=1", "PYTHONPATH=/p/trapline/startup:/p:/mine::x", "odd", "B=a=b", "TRAPLINE_GUARD=1",
                   "TRAPLINE_REPORT_DIR=/reports", "TRAPLINE_LIB=/lib/libtrapline.so"}));
}

TEST(Environment, AnEmptyPythonPathDoesNotBecomeTheCurrentFolder) {
  EXPECT_EQ(guarded_environment(Texts{"PYTHONPATH="}, settings())[0], "PYTHONPATH=/p/trapline/startup:/p");
}

TEST(Environment, ASecondRunAddsNothing) {
  const Texts once = guarded_environment(Texts{"PYTHONPATH=/mine"}, settings());
  EXPECT_EQ(guarded_environment(once, settings()), once);
}

TEST(Environment, FlagsBecomeVariables) {
  GuardSettings asked = settings();
  asked.cpu = true;
  asked.steps = 20;
  asked.verbose = true;
  const Texts out = guarded_environment({}, asked);
  EXPECT_EQ(find_variable(out, "TRAPLINE_CPU"), "1");
  EXPECT_EQ(find_variable(out, "TRAPLINE_STEPS"), "20");
  EXPECT_EQ(find_variable(out, "TRAPLINE_VERBOSE"), "1");
  EXPECT_EQ(find_variable(guarded_environment({}, settings()), "TRAPLINE_STEPS"), std::nullopt);
}

TEST(Environment, NamesMatchWhole) {
  EXPECT_EQ(find_variable(Texts{"PATHX=1", "PATH=2"}, "PATH"), "2");
  EXPECT_EQ(find_variable(Texts{"PATH"}, "PATH"), std::nullopt);
}

TEST(Environment, OnFaultIsSetWhereItIsAskedFor) {
  GuardSettings asked = settings();
  asked.on_fault = "skip";
  asked.skip_limit = 2.5;
  asked.quarantine = "/q.jsonl";
  const Texts out = guarded_environment({}, asked);
  EXPECT_EQ(find_variable(out, "TRAPLINE_ON_FAULT"), "skip");
  EXPECT_EQ(find_variable(out, "TRAPLINE_SKIP_LIMIT"), "2.5");
  EXPECT_EQ(find_variable(out, "TRAPLINE_QUARANTINE"), "/q.jsonl");
  for (const char* name : {"TRAPLINE_ON_FAULT", "TRAPLINE_SKIP_LIMIT", "TRAPLINE_QUARANTINE"})
    EXPECT_EQ(find_variable(guarded_environment({}, settings()), name), std::nullopt);
}

}  // namespace
}  // namespace trapline
