#include "cli/check_command.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "cli/check_session.hpp"

namespace trapline::cli {
namespace {

struct FileFlags {
  std::vector<std::string> paths;
  std::string column;
  std::optional<std::int64_t> classes, rows, positions;
  std::int64_t ignore_index = -100;
  CheckFlags common;
};

void declare_files(CLI::App& app, FileFlags& flags, bool with_column) {
  app.add_option("file", flags.paths, "files, folders and patterns; all together are one data set")
      ->type_name("FILE");
  if (with_column) {
    app.add_option("--column", flags.column,
                   "the column, array or tensor to check, when its name does not tell")
        ->type_name("NAME");
  }
  declare_check(app, flags.common);
}

Result<int> check_paths(const FileFlags& flags, const check::Rule& rule) {
  if (flags.paths.empty()) {
    return Error{"nothing to check", "",
                 "name a file or a folder, e.g. trapline check finite model.safetensors"};
  }
  return run_check(flags.common, [&](const check::Job& job, std::vector<Error>& problems) {
    const std::vector<std::string> paths = check::expand(flags.paths, problems);
    const auto results = check::check_files(rule, {flags.column, false, {}}, paths, job);
    for (const check::FileResult& result : results) {
      if (result.error) problems.push_back(*result.error);
    }
    return check::report_of(rule, results);
  });
}

Result<int> check_labels(const FileFlags& flags) {
  if (!flags.classes) {
    return Error{"how many classes are there is not said", "",
                 "add --classes N, the number of the model's outputs"};
  }
  check::Rule rule;
  rule.what = check::What::kLabels;
  rule.limit = *flags.classes;
  rule.ignore_index = flags.ignore_index;
  return check_paths(flags, rule);
}

Result<int> check_ids(const FileFlags& flags) {
  if (!flags.rows) {
    return Error{"how many rows the table has is not said", "", "add --rows N, the table's num_embeddings"};
  }
  check::Rule rule;
  rule.what = check::What::kIds;
  rule.limit = *flags.rows;
  rule.positions = flags.positions;
  return check_paths(flags, rule);
}

CLI::Option* add_count(CLI::App& app, const char* name, std::optional<std::int64_t>& value,
                       const char* help) {
  return app.add_option(name, value, help)
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40U).description(""))
      ->type_name("N");
}

}  // namespace

Action declare_check_labels(CLI::App& app, const std::vector<std::string>&) {
  auto flags = std::make_shared<FileFlags>();
  declare_files(app, *flags, true);
  add_count(app, "--classes", flags->classes, "how many classes the model has: labels are 0 to N - 1");
  app.add_option("--ignore-index", flags->ignore_index,
                 "a label that does not count; -100, as in PyTorch's losses")
      ->type_name("K");
  return [flags] { return check_labels(*flags); };
}

Action declare_check_ids(CLI::App& app, const std::vector<std::string>&) {
  auto flags = std::make_shared<FileFlags>();
  declare_files(app, *flags, true);
  add_count(app, "--rows", flags->rows, "how many rows the embedding table has: ids are 0 to N - 1");
  add_count(app, "--positions", flags->positions,
            "how many rows the position table has: no longer list of ids")
      ->type_name("M");
  return [flags] { return check_ids(*flags); };
}

Action declare_check_finite(CLI::App& app, const std::vector<std::string>&) {
  auto flags = std::make_shared<FileFlags>();
  declare_files(app, *flags, true);
  return [flags] {
    check::Rule rule;
    rule.what = check::What::kFinite;
    return check_paths(*flags, rule);
  };
}

}  // namespace trapline::cli
