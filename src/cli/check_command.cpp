#include "cli/check_command.hpp"

#include <memory>
#include <optional>

#include "check/dataset.hpp"
#include "check/model.hpp"
#include "cli/check_session.hpp"
#include "cli/flags.hpp"

namespace trapline::cli {
namespace {

struct FileFlags {
  std::vector<std::string> paths;
  std::string column, model;
  std::optional<std::int64_t> classes, rows, positions;
  std::int64_t ignore_index = -100;
  CheckFlags common;
};

void declare_files(CLI::App& app, FileFlags& flags, bool with_column) {
  app.add_option("file", flags.paths, "files, folders or patterns; together they are one data set")
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

// The rule that the flags and the model make; a limit of 0 where neither tells.
Result<check::Rule> label_rule(const FileFlags& flags) {
  check::Rule rule;
  rule.what = check::What::kLabels;
  std::optional<std::int64_t> classes = flags.classes;
  if (!flags.model.empty()) {
    std::vector<Error> problems;
    const auto model = check::read_model(flags.model, problems);
    if (!model) return model.error();
    if (!problems.empty()) return problems.front();
    if (!classes) classes = model->classes();
    if (!classes) {
      return Error{"cannot tell the classes of " + flags.model, "it has neither a classifier nor id2label",
                   "name their number with --classes N"};
    }
    if (const check::Tensor* head = model->head(); head != nullptr && !flags.classes) {
      rule.layer = check::head_layer(*head);
    }
  }
  rule.limit = classes.value_or(0);
  rule.ignore_index = flags.ignore_index;
  return rule;
}

Result<check::Rule> id_rule(const FileFlags& flags) {
  check::Rule rule;
  rule.what = check::What::kIds;
  std::optional<std::int64_t> rows = flags.rows;
  rule.positions = flags.positions;
  if (!flags.model.empty()) {
    std::vector<Error> problems;
    const auto model = check::read_model(flags.model, problems);
    if (!model) return model.error();
    if (!problems.empty()) return problems.front();
    if (!rows) rows = model->rows_of_tokens();
    if (!rows) {
      return Error{"cannot tell the token table of " + flags.model, "it has neither weights nor vocab_size",
                   "name its rows with --rows N"};
    }
    const check::Tensor* table = model->token_table();
    if (table != nullptr && !flags.rows) rule.layer = check::table_layer(*table);
    const check::Tensor* positions = model->position_table();
    if (positions != nullptr && !flags.positions) {
      rule.positions = model->longest_sequence();
      rule.position_layer = check::table_layer(*positions);
    }
    rule.special_ids = model->special_ids();
  }
  rule.limit = rows.value_or(0);
  return rule;
}

Result<int> check_labels(const FileFlags& flags) {
  const Result<check::Rule> rule = label_rule(flags);
  if (!rule) return rule.error();
  if (rule->limit == 0) {
    return Error{"the number of classes is unknown", "", "pass --classes N or --model DIR"};
  }
  return check_paths(flags, *rule);
}

Result<int> check_ids(const FileFlags& flags) {
  const Result<check::Rule> rule = id_rule(flags);
  if (!rule) return rule.error();
  if (rule->limit == 0) {
    return Error{"the number of rows of the embedding table is unknown", "", "pass --rows N or --model DIR"};
  }
  return check_paths(flags, *rule);
}

Result<int> check_dataset(const FileFlags& flags) {
  if (flags.paths.empty()) return Error{"no data set to check", "", "name its folder"};
  FileFlags of_labels = flags, of_ids = flags;
  // A model for text has no classes and one for images no table: what it does not tell is not held against.
  if (!flags.model.empty()) {
    std::vector<Error> problems;
    const auto model = check::read_model(flags.model, problems);
    if (!model) return model.error();
    if (!flags.classes && !model->classes()) of_labels.model.clear();
    if (!flags.rows && !model->rows_of_tokens()) of_ids.model.clear();
  }
  const Result<check::Rule> labels = label_rule(of_labels), ids = id_rule(of_ids);
  if (!labels) return labels.error();
  if (!ids) return ids.error();
  return run_check(flags.common, [&](const check::Job& job, std::vector<Error>& problems) {
    return check::check_dataset(flags.paths, {*labels, *ids}, job, problems);
  });
}

void declare_model(CLI::App& app, FileFlags& flags) {
  app.add_option("--model", flags.model, "take it from this Hugging Face model folder")->type_name("DIR");
}

Result<int> check_model(const FileFlags& flags) {
  if (flags.paths.size() != 1) {
    return Error{flags.paths.empty() ? "no model to check" : "too many models", "",
                 "name one folder, the one with config.json"};
  }
  return run_check(flags.common, [&](const check::Job& job, std::vector<Error>& problems) {
    return check::check_model(flags.paths.front(), job, problems);
  });
}

CLI::Option* add_count(CLI::App& app, const char* name, std::optional<std::int64_t>& value,
                       const char* help) {
  return app.add_option(name, value, help)->check(whole_number(1, std::int64_t{1} << 40U))->type_name("N");
}

}  // namespace

Action declare_check_labels(CLI::App& app, const std::vector<std::string>&) {
  auto flags = std::make_shared<FileFlags>();
  declare_files(app, *flags, true);
  add_count(app, "--classes", flags->classes, "how many classes the model has: labels are 0 to N - 1");
  declare_model(app, *flags);
  app.add_option("--ignore-index", flags->ignore_index,
                 "a label that does not count; -100, as in PyTorch's losses")
      ->check(whole_number(INT64_MIN, INT64_MAX))
      ->type_name("K");
  return [flags] { return check_labels(*flags); };
}

Action declare_check_ids(CLI::App& app, const std::vector<std::string>&) {
  auto flags = std::make_shared<FileFlags>();
  declare_files(app, *flags, true);
  add_count(app, "--rows", flags->rows, "how many rows the embedding table has: ids are 0 to N - 1");
  declare_model(app, *flags);
  add_count(app, "--positions", flags->positions,
            "how many rows the position table has: no longer list of ids")
      ->type_name("M");
  return [flags] { return check_ids(*flags); };
}

Action declare_check_model(CLI::App& app, const std::vector<std::string>&) {
  auto flags = std::make_shared<FileFlags>();
  app.add_option("folder", flags->paths, "the folder of a Hugging Face model: config, tokenizer, weights")
      ->type_name("DIR");
  declare_check(app, flags->common);
  return [flags] { return check_model(*flags); };
}

Action declare_check_dataset(CLI::App& app, const std::vector<std::string>&) {
  auto flags = std::make_shared<FileFlags>();
  declare_files(app, *flags, false);
  add_count(app, "--classes", flags->classes, "how many classes the model has");
  add_count(app, "--rows", flags->rows, "how many rows the embedding table has");
  add_count(app, "--positions", flags->positions, "how many rows the position table has")->type_name("M");
  declare_model(app, *flags);
  return [flags] { return check_dataset(*flags); };
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
