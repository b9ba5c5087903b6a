#include "run/environment.hpp"

#include <gtest/gtest.h>

namespace trapline {
namespace {

using Texts = std::vector<std::string>;

const GuardPaths kPaths{"/p", "/lib/libtrapline.so", {}, {}, {}};

Texts guarded(const Texts& environment, RunOptions options = {}) {
  options.reports = "/reports";
  return guarded_environment(environment, kPaths, options);
}

TEST(Environment, PutsTheGuardIn) {
  EXPECT_EQ(guarded({}), (Texts{"PYTHONPATH=/p/trapline/startup", "TRAPLINE_GUARD=1",
                                "TRAPLINE_LIB=/lib/libtrapline.so", "TRAPLINE_REPORT_DIR=/reports"}));
}

TEST(Environment, KeepsTheUsersEntriesAndTheirOrder) {
  const Texts out = guarded(Texts{"A=1", "PYTHONPATH=/mine::x", "odd", "B=a=b", "TRAPLINE_GUARD=0"});
  EXPECT_EQ(out, (Texts{"A=1", "PYTHONPATH=/p/trapline/startup:/mine::x", "odd", "B=a=b", "TRAPLINE_GUARD=1",
                        "TRAPLINE_LIB=/lib/libtrapline.so", "TRAPLINE_REPORT_DIR=/reports"}));
}

TEST(Environment, AnEmptyPythonPathDoesNotBecomeTheCurrentFolder) {
  EXPECT_EQ(guarded(Texts{"PYTHONPATH="})[0], "PYTHONPATH=/p/trapline/startup");
}

TEST(Environment, ASecondRunAddsNothing) {
  const Texts once = guarded(Texts{"PYTHONPATH=/mine"});
  EXPECT_EQ(guarded(once), once);
}

TEST(Environment, OptionsBecomeVariables) {
  RunOptions options;
  options.steps = 20;
  const Texts around = {"TRAPLINE_STEPS=3", "TRAPLINE_CPU=1", "TRAPLINE_GUARD=1", "TRAPLINE_REPORT_DIR=/a"};
  const Texts out = guarded(around, options);
  EXPECT_EQ(out[0], "TRAPLINE_STEPS=20");
  EXPECT_EQ(find_variable(out, "TRAPLINE_CPU"), "1") << "of a run around this one";
  EXPECT_EQ(find_variable(guarded({}), "TRAPLINE_STEPS"), std::nullopt);
}

TEST(Environment, WhatNoFlagAskedForIsNotInherited) {
  const Texts out = guarded(Texts{"TRAPLINE_ON_FAULT=skip", "TRAPLINE_QUARANTINE=/q", "TRAPLINE_STEPS=3",
                                  "TRAPLINE_WATCH=nan", "TRAPLINE_CPU=1", "TRAPLINE_DEBUG=1"});
  EXPECT_EQ(out, (Texts{"TRAPLINE_DEBUG=1", "PYTHONPATH=/p/trapline/startup", "TRAPLINE_GUARD=1",
                        "TRAPLINE_LIB=/lib/libtrapline.so", "TRAPLINE_REPORT_DIR=/reports"}));
}

TEST(Environment, TheGuardOfACppProgramComesInByPreload) {
  GuardPaths paths = kPaths;
  paths.preload = "/lib/preload.so";
  paths.libtorch_folders = "/a:/b";
  const Texts out = guarded_environment(Texts{"LD_PRELOAD=/mine.so"}, paths, {});
  EXPECT_EQ(out[0], "LD_PRELOAD=/lib/preload.so:/mine.so");
  EXPECT_EQ(find_variable(out, "TRAPLINE_LIBTORCH_DIRS"), "/a:/b");
  EXPECT_EQ(find_variable(guarded_environment(out, paths, {}), "LD_PRELOAD"), "/lib/preload.so:/mine.so");
  EXPECT_EQ(find_variable(guarded({}), "LD_PRELOAD"), std::nullopt);
}

TEST(Environment, TellsWhereWhatCannotBeWrittenGoes) {
  GuardPaths paths = kPaths;
  paths.report_socket = "name.token";
  const Texts out = guarded_environment(Texts{"TRAPLINE_REPORT_SOCKET=outer.token"}, paths, {});
  EXPECT_EQ(find_variable(out, "TRAPLINE_REPORT_SOCKET"), "name.token");
}

TEST(Environment, NamesMatchWhole) {
  EXPECT_EQ(find_variable(Texts{"PATHX=1", "PATH=2"}, "PATH"), "2");
  EXPECT_EQ(find_variable(Texts{"PATH"}, "PATH"), std::nullopt);
}

}  // namespace
}  // namespace trapline
