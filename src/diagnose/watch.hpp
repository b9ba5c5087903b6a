// What `run --watch nan` saw: the first NaN or Inf of a training, as a hint in other findings or as one of
// its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/finding.hpp"
#include "diagnose/operations.hpp"
#include "diagnose/warned.hpp"

namespace trapline::diagnose {

struct WatchSeen {
  std::string kind;  // "output", "loss", "gradient", "input", "target", "weights", "optimizer", "state"
  std::string name;  // of the module or the parameter; empty: unknown
  std::string type;  // of the module: "Linear"
  std::int64_t step = 0;
  std::string unit;                   // "step", "forward call"
  std::string op{};                   // "log"; empty: unknown
  std::string state{};                // of the optimizer: "exp_avg_sq"
  bool derived = false;               // the derivative of `op`, which a forward pass has asked for
  bool beside = false;                // the weights of a module that the loss is not trained through
  bool since_start = false;           // -inf in the weights, before the first step; losses since were finite
  std::optional<std::int64_t> row{};  // of the table `name` that was read
  bool buffer = false;                // `name` is no parameter
  bool since_made = false;         // and has held such numbers since it was made, in `bad` of `total` places
  std::vector<std::int64_t> at{};  // the first of them
  std::int64_t bad = 0, total = 0;
  std::string text{};    // what it was made of: "property_table()"
  bool leads = false;    // of a loss: another function than the one that has it, or an earlier one
  bool given = false;    // of a gradient: the program has handed it to `backward`
  bool by_hand = false;  // or written it itself, and called no `backward`
  // How many have stepped, where they are several: the step is that of the one ahead.
  std::int64_t optimizers = 0;
  bool uneven = false;      // one of them has stepped more often than another
  std::int64_t others = 0;  // weights that broke with it
  // Of weights that no optimizer has broken: what they were finite after, "step",
  // "backward", "loss" (of the step before), "forward" (before the module's own); "first": it was written
  // besides the steps, some time since the first.
  std::string written{};
};

struct WatchFact {
  bool nan = true;  // else: only Inf was seen
  WatchSeen first;
  std::optional<WatchSeen> inf_before;
  std::optional<Frame> origin{};   // the user's line that made it
  std::optional<Sample> sample{};  // whose data held it
  std::string growth{};            // "the gradient norm grew from 0.8 to 3e4 in the 20 steps before"
  // What was seen of the place; else nothing is said of it.
  bool looked = true;             // at the layers; false: only the loss or a gradient is known to be bad
  bool half = false;              // something was float16
  bool input_finite = false;      // what went into the model
  bool finite_before = false;     // what the operation was given
  bool gradients_finite = false;  // those that the optimizer took
  // The derivative of `first.op` was given finite gradients and made others: it was seen, not concluded.
  bool backward = false;
  bool later = false;      // the run has met such numbers before, and left their step out
  bool factor = false;     // `first.op` was given finite numbers of the model and others that are not
  bool drawn = false;      // with other random numbers it was finite
  bool made = false;       // of targets: no data are known to hold it
  bool late = false;       // on a device: the step's loss was not finite, and so was this, seen afterwards
  bool smoothed = false;   // a loss adds the log-probabilities of all classes
  std::string zeros{};     // weights of the module that are 0 everywhere, and whose zeros made it so
  bool own = false;        // the operation was given the weights and buffers of its module alone
  bool or_before = false;  // some rows of a table are bad, and may have been in earlier steps
  bool changed = false;    // the gradients, between `backward` and the step: they were finite
  std::optional<Frame> called{};  // of the program, where `origin` is in a library that it called
  bool left_out = false;    // the loss is finite without that element of the data, its derivative is not
  bool element_nan = true;  // `element` is; else it is Inf
  std::string backward_name{}, backward_type{};  // the module that it is in; no type: it is in none
  std::string scheduler{};                       // that gave it: "`sched` (LambdaLR)"
  std::string setting{};                         // of the optimizer, that cannot be right: "lr=inf"
  // Of a loss, the site of a probabilistic program, its distribution, and the parameter that this does not
  // allow.
  std::string site{}, site_type{}, site_parameter{};
  double site_value = 0;
  std::optional<MadeAt> divides{};  // the only division of the function that writes the weights
  std::optional<MadeAt>
      factor_before{};      // and what that was made of, where a statement or function before it did
  std::string infinite{};   // of a gradient: the weight that held an infinity before it
  std::string factor_by{};  // the operation that made these others of finite numbers
  std::string factor_name{}, factor_text{};  // the variable that holds these: "gain", and what computed it
  std::vector<std::string> made_with{};      // operations of the loss, nearest to it first
  std::vector<TrainingStep> last_steps{};
  std::string spoilt{};  // "Inf": of an output, the batch holds such a number, as the first of all
  std::vector<Warned> warned{};
  std::string fetched_op{}, fetched_numpy{};  // of data: what made it, when the sample was made once more
  std::vector<std::int64_t> rows_first{}, rows_place{};  // of a data set's array: those that are not finite
  std::int64_t rows_bad = 0, rows_total = 0;
  bool rows_batch = false;  // they are those of the batch
  BadPart part{};           // of the operation's result
  // Of a NaN whose operation met an infinity that was put there on purpose: what put it, its line, and where
  // the operation was given it.
  std::string met_op{};
  std::optional<MadeAt> met{};
  BadPart met_part{};
  std::optional<Variable> element{};  // of the data, by the program's name: "x[3, 12]"
};

// A run whose numbers went bad without a fault.
struct Watch {
  WatchFact seen;
  std::optional<Process> process;
};

// "the first NaN of this run was in step 12, in the output of `fc1` (Linear)"
std::string watch_text(const WatchFact& watch);

// Where it was made is known, and not only when it was noticed.
bool tells_place(const WatchFact& watch);

// Tells a finding whose value may come from that NaN: evidence, and the first thing to do.
void add_watch(const WatchFact& watch, Finding& finding);

}  // namespace trapline::diagnose
