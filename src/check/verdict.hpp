// Tallies to findings: facts are put together here, the words are made by src/diagnose.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "check/rule.hpp"
#include "check/tally.hpp"
#include "core/finding.hpp"
#include "core/tensor_view.hpp"
#include "inputs/reader.hpp"

namespace trapline::check {

// What a tally is of.
struct Subject {
  std::string source;  // "train.csv"; empty: the argument of a function
  std::string name;    // the column; empty: what the contract calls it
  std::string dtype;   // "int64"
  std::vector<std::int64_t> shape;
  std::span<const inputs::ClassName> classes{};  // that the source itself has names for; outlive it
  bool records = false;               // a table of records: a column "weight" is no weight of a model
  std::string_view annotations = {};  // "COCO": labels of boxes in pictures
};

// The labels of a whole data set, which a hint may need that goes over several files.
struct Range {
  std::int64_t min = 0, max = 0, count = 0;
  void add(const Tally& tally, const Rule& rule);
};

// How long the rows of a column of ids are.
struct Lengths {
  std::int64_t rows = 0, too_long = 0, longest = 0;
  Place first{};  // of the rows that are too long
  // True: this is the first row that is too long.
  bool add(std::int64_t row, std::int64_t line, std::int64_t length, std::int64_t most);
  void merge(const Lengths& later);
};

// The findings of one column: none when it is clean. `range`: of all columns that belong together.
std::vector<Finding> findings_of(const Rule& rule, const Subject& subject, const Tally& tally,
                                 const std::optional<Range>& range);
std::optional<Finding> finding_of(const Rule& rule, const Subject& subject, const Lengths& lengths);

}  // namespace trapline::check
