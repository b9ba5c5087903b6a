// An argument that an installed package's own check refused: its condition, and what the program held.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/finding.hpp"

namespace trapline::diagnose {

struct HostError;

// A tensor that the condition is about.
struct Checked {
  std::string name;
  TensorInfo tensor;
};

struct CheckFact {
  std::string package;    // "torchmetrics"
  std::string op;         // what the user's line called: "MulticlassAccuracy"; may be empty
  std::string within;     // the classes whose methods led there: "GeneralMixtureModel Categorical"
  std::string where;      // "torchmetrics/utilities/checks.py:148"
  std::string condition;  // "target.max() > 1"
  bool needs = false;     // the condition has to hold; else it must not
  bool joint = false;     // it is more than the comparison that is told
  std::string kind;       // "value", "rows", "nan", "unknown", "distinct", "shape", "number"
  std::string name;       // the tensor or the number, as the package calls it
  TensorInfo tensor;
  std::optional<Variable> variable;  // the first wrong element in the user's own
  std::optional<Element> element;
  std::vector<std::pair<Scalar, std::int64_t>> values;
  std::optional<Scalar> lower, upper;  // what the check takes, where the condition says it
  bool closed = false;                 // `upper` itself is taken
  std::string limit;                   // what `upper` is in the source: "pred.size(1)"
  std::vector<Scalar> allowed;         // the only values that are taken
  bool two_colours = false;            // nothing but 0 and 255 occurs
  std::int64_t distinct = 0;           // how many different values there are
  std::vector<Scalar> row;             // the numbers of a row that is refused, where they are few
  std::vector<Checked> tensors;        // of a shape
  std::vector<std::pair<std::string, std::string>>
      sides;  // the two sides of the comparison, and their values
};

// nullopt: no check, or one about something that is none of Trapline's business.
std::optional<Finding> finding_of_check(const HostError& facts);

}  // namespace trapline::diagnose
