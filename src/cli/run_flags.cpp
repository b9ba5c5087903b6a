#include "cli/run_flags.hpp"

namespace trapline::cli {
namespace {

struct Declare {
  FlagSet& flags;
  RunOptions& options;
  const RunOption& row;

  void add(Flag::Target target, decltype(Flag::rule) rule = {}) const {
    flags.add(
        {std::string(row.flag), std::string(row.value), target, std::string(row.help), std::move(rule)});
  }
  void operator()(const Switch& kind) const { add(&(options.*kind.member)); }
  void operator()(const PathOption& kind) const { add(&(options.*kind.member)); }
  void operator()(const WholeNumberOption& kind) const {
    add(&(options.*kind.member), WholeNumber{kind.min, kind.max});
  }
  void operator()(const NumberOption& kind) const {
    add(&(options.*kind.member), Number{kind.min, kind.max});
  }
  void operator()(const WordOption& kind) const {
    add(&(options.*kind.member), OneOf{{kind.words.begin(), kind.words.end()}});
  }
};

}  // namespace

void declare_run_options(FlagSet& flags, RunOptions& options) {
  for (const RunOption& row : run_options()) std::visit(Declare{flags, options, row}, row.kind);
}

}  // namespace trapline::cli
