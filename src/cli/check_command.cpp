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

void declare_files(FlagSet& flags, FileFlags& given) {
  flags.add({"file", "FILE", &given.paths, "files, folders or patterns; together they are one data set"});
  flags.add({"--column", "NAME", &given.column,
             "the column, array or tensor to check, when its name does not tell"});
  declare_check(flags, given.common);
}

Result<int> check_paths(const FileFlags& flags, const check::Rule& rule) {
  if (flags.paths.empty()) {
    return Error{"nothing to check", "",
                 "name a file or a folder, e.g. trapline check finite model.safetensors"};
  }
  return run_check(flags.common, [&](const check::Job& job, std::vector<Error>& problems) {
    const std::vector<std::string> paths = check::expand(flags.paths, problems);
    const auto results = check::check_files(rule, {.column = flags.column}, paths, job);
    for (const check::FileResult& result : results) {
      if (result.error) problems.push_back(*result.error);
    }
    if (problems.empty() && !results.empty() && check::values_in(results) == 0) {
      problems.push_back({"nothing was checked", "there are no values: " + paths.front() + " has no rows",
                          "look at what should have written them"});
    }
    return check::report_of(rule, results);
  });
}

// The rule that the flags and the model make; a limit of 0 where neither tells.
Result<check::Rule> label_rule(const FileFlags& flags) {
  check::Rule rule;
  rule.kind = check::RuleKind::kLabels;
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
  rule.kind = check::RuleKind::kIds;
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
    return check::check_dataset(flags.paths, {*labels, *ids, flags.column}, job, problems);
  });
}

void declare_model(FlagSet& flags, FileFlags& given) {
  flags.add({"--model", "DIR", &given.model, "take it from this Hugging Face model folder"});
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

constexpr WholeNumber kCount{1, std::int64_t{1} << 40U};

}  // namespace

Action declare_check_labels(FlagSet& flags, const std::vector<std::string>&) {
  auto given = std::make_shared<FileFlags>();
  declare_files(flags, *given);
  flags.add(
      {"--classes", "N", &given->classes, "how many classes the model has: labels are 0 to N - 1", kCount});
  declare_model(flags, *given);
  flags.add({"--ignore-index", "K", &given->ignore_index,
             "a label that does not count; -100, as in PyTorch's losses", WholeNumber{INT64_MIN, INT64_MAX}});
  return [given] { return check_labels(*given); };
}

Action declare_check_ids(FlagSet& flags, const std::vector<std::string>&) {
  auto given = std::make_shared<FileFlags>();
  declare_files(flags, *given);
  flags.add(
      {"--rows", "N", &given->rows, "how many rows the embedding table has: ids are 0 to N - 1", kCount});
  declare_model(flags, *given);
  flags.add({"--positions", "M", &given->positions,
             "how many rows the position table has: no longer list of ids", kCount});
  return [given] { return check_ids(*given); };
}

Action declare_check_model(FlagSet& flags, const std::vector<std::string>&) {
  auto given = std::make_shared<FileFlags>();
  flags.add(
      {"folder", "DIR", &given->paths, "the folder of a Hugging Face model: config, tokenizer, weights"});
  declare_check(flags, given->common);
  return [given] { return check_model(*given); };
}

Action declare_check_dataset(FlagSet& flags, const std::vector<std::string>&) {
  auto given = std::make_shared<FileFlags>();
  declare_files(flags, *given);
  flags.add({"--classes", "N", &given->classes, "how many classes the model has", kCount});
  flags.add({"--rows", "N", &given->rows, "how many rows the embedding table has", kCount});
  flags.add({"--positions", "M", &given->positions, "how many rows the position table has", kCount});
  declare_model(flags, *given);
  return [given] { return check_dataset(*given); };
}

Action declare_check_finite(FlagSet& flags, const std::vector<std::string>&) {
  auto given = std::make_shared<FileFlags>();
  declare_files(flags, *given);
  return [given] {
    check::Rule rule;
    rule.kind = check::RuleKind::kFinite;
    return check_paths(*given, rule);
  };
}

}  // namespace trapline::cli
