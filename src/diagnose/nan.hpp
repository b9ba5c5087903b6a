// What surrounds a NaN: what went into the model, its weights, in which dtype it computes, what the program
// is doing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/finding.hpp"
#include "diagnose/operations.hpp"
#include "diagnose/warned.hpp"

namespace trapline::diagnose {

struct HostError;

struct NanFact {
  std::optional<Variable> input;  // of the user's code, not finite, and given to `module` or to the cast
  std::optional<Scalar> value;    // what it holds there
  bool data = false;              // a part of that input is finite, and no model computed it
  std::string module;             // variable or class of the model that was given it; empty: none was seen
  std::string half;               // the model whose parameters are float16
  bool autocast = false;          // float16 comes from autocast
  std::string banned;             // scores of which a whole row is -inf, by their name in the program
  std::int64_t banned_row = 0;
  std::string apart{};  // "a - b", of which both are infinite
  std::int64_t apart_line = 0;
  bool made_of_finite = true;    // else of infinities, which a mask has put there
  std::string made_by;           // the operation that made it of finite numbers: "pow"
  std::string made_name;         // the variable that was given the statement in which it stands; empty: none
  std::string made_text;         // that statement; empty: only the operation is known
  std::optional<Frame> made_at;  // where that is
  BadPart made_part{};           // of its result
  std::string zero;              // a temperature of the user's that is 0, by its name: "r.temperature"
  std::optional<Variable> loss;  // the first that is not finite of the losses that the program has kept
  std::int64_t losses = 0;       // how many it has kept
  std::string situation;         // "generation", "policy", "training", "inference"; empty: not known
  bool trains = true;            // the process holds an optimizer, as far as that was looked for
  std::vector<Warned> warned{};  // lines of the program's that have made such numbers, one or two
  std::string command;           // how the program was started; empty: not known, or the watch is on
};

// Parameters of the models in reach that hold NaN or Inf; bad is 0 when all were looked at and none does.
struct WeightsFact {
  std::string name;  // the first one; empty: none
  std::int64_t bad = 0, total = 0;
  std::string grown;     // all are finite, but this one has grown out of what training makes,
  double to = 0;         // to this
  std::string buffer{};  // all are finite, but this buffer of a model holds NaN
};

// A NaN that PyTorch itself found in `argument` (a parameter of a distribution): adds to summary and fix what
// surrounds it. False when that tells nothing that is enough.
bool explain_host_nan(const HostError& facts, const std::string& argument, Finding& finding);

}  // namespace trapline::diagnose
