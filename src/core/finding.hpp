// Finding and Report: the middle that all evidence turns into and all writers read.
// The JSON form is docs/finding.schema.json; names here and there are the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/cause.hpp"
#include "core/scalar.hpp"

namespace trapline {

enum class Certainty : std::uint8_t {
  kProven,      // the offending value was seen
  kDetermined,  // the evidence admits just this cause
  kLikely,      // the best of several
  kUnknown,     // no evidence
};

enum class Role : std::uint8_t { kRoot, kConsequence };
enum class Verdict : std::uint8_t { kFault, kClean, kUnknown };
enum class Command : std::uint8_t { kRun, kExplain, kCheck, kSupervise };

struct Frame {
  std::string file;
  std::int64_t line = 0;  // 1-based; 0: unknown
  std::string function;
  std::string code;             // the source line; empty when the file cannot be read or has changed
  std::optional<bool> user;     // true: the user's own code; false: a library
  std::int64_t column = 0;      // 1-based, in characters of `code`, where the operation starts; 0: unknown
  std::int64_t end_column = 0;  // 1-based, one past its end; 0: unknown
  std::int64_t cell = 0;        // of a notebook: the 4 of In[4]; 0: none
  std::vector<std::string> before{}, after{};  // the lines around it, of the origin only; nearest to it
};

// An element as the caller knows it: edge_index[1, 3] where the operation was given something made of it.
struct Variable {
  std::string name;  // "edge_index", "batch[\"labels\"]"
  std::vector<std::int64_t> index;
};

std::string to_text(const Variable& variable);  // edge_index[1, 3]

// Which values an argument holds. Equal bins over [low, high]: what is valid, or, where any finite number is,
// what there is.
struct Histogram {
  double low = 0, high = 0;
  std::vector<std::int64_t> counts;                             // elements in each bin
  std::int64_t below = 0, above = 0, also = 0, not_finite = 0;  // outside of it; `also`: allowed all the same
};

struct Element {
  std::vector<std::int64_t> index;  // position of the first offending element in the argument
  std::optional<Scalar> value;
  std::optional<std::int64_t> bad;    // how many elements offend
  std::optional<std::int64_t> total;  // of how many
  std::optional<Scalar> min, max;     // over the whole argument
  std::optional<Variable>
      variable{};  // the same element in a variable of the user's, when it has another name
  std::vector<std::int64_t> strip{};     // bad elements in equal stretches of the argument, row-major
  std::optional<Histogram> histogram{};  // of the whole argument
};

struct Valid {
  std::string text;                // "[0, 195) or -100"
  std::optional<Scalar> min, max;  // inclusive
  std::vector<double> also;        // further allowed values, e.g. ignore_index
};

struct TensorInfo {
  std::vector<std::int64_t> shape;
  std::string dtype;   // "int64", as torch prints it without "torch."
  std::string device;  // "cuda:0"
};

// The classes of a whole data set against those that are expected.
struct Classes {
  std::int64_t seen = 0;              // how many different labels occur
  std::int64_t expected = 0;          // how many there may be: 0 to expected - 1
  std::vector<std::int64_t> missing;  // valid labels that never occur, the first few
};

// Where the program says how large a layer is.
struct MadeAt {
  std::string text;  // "n_items", "n_items=len(items)"; with `whole` the call that makes the layer
  std::string file;
  std::int64_t line = 0;
  bool whole = false;
  bool computed = false;    // the size is more than this number, or this and 1: a product, a power of it
  std::string read_file{};  // another place that reads the same number, and changes with it
  std::int64_t read_line = 0;
};

struct Layer {
  std::string name;       // qualified module name, "fc.5"
  std::string type;       // "Linear"
  std::string attribute;  // "out_features"
  std::optional<std::int64_t> value{}, needed{};
  std::string arguments{};  // "in_features=300, out_features=195": how a call would make it; empty: unknown
  std::vector<MadeAt> made{};  // its size in the program, and what that is in the end
};

// A data set as the program has it.
struct DataSet {
  std::string
      name;  // an expression of the user's that gives it: "train_set", "self.val_set"; empty: none does
  std::string type;  // "Subset"
  std::optional<std::int64_t> length{};
};
// How a layer is written: `fc.5`, with `quote` around it; "layer 2" for the child of a Sequential that no
// variable leads to, since a bare number reads like a slip.
std::string layer_name(const std::string& name, char quote);

struct Sample {
  std::optional<std::int64_t> dataset_index, batch, row;  // dataset_index: in the loader's own data set
  std::string request;
  std::string loader{};  // an expression of the user's that gives the DataLoader
  std::optional<DataSet> dataset{};
  std::optional<std::int64_t> base_index{};  // in the data set below Subset, random_split, ConcatDataset
  std::optional<DataSet> base{};
  std::string file{};                  // that the sample is made of
  std::string key{};                   // what a stream calls the sample: webdataset's __key__
  std::vector<std::int64_t> one_of{};  // the row is not known: indices of the batch, the first few
  std::optional<std::int64_t> of{};    // of how many
  std::string by{};                    // a word for how it was found, where that is not equality
  bool likely = false;                 // not proven
};

// Where a training was, as its trainer or the program's own loop told (trapline.note_progress).
struct Progress {
  std::optional<std::int64_t> step{};  // the optimizer steps finished before it
  std::optional<Scalar> epoch{};       // as the trainer counts: 2, or 2.4
  std::string phase{};                 // "train", "validation", "test", "predict", or the program's own word
  std::string model{};                 // "bert-tiny"
  std::string trainer{};               // "Trainer"
};

struct Process {
  std::optional<std::int64_t> rank, pid;
  std::string host, device;
  std::optional<std::int64_t> world_size{};  // ranks of the job; from a log: at least
  std::vector<std::int64_t> ranks{};         // several, of which the finding speaks together
};

// Where on the device an assertion fired, as its own line says.
struct Kernel {
  std::string name;
  std::string file;
  std::int64_t line = 0;                    // 0: unknown
  std::vector<std::int64_t> block, thread;  // of the first failing place; empty: not printed
  std::int64_t places = 0;                  // how many blocks and threads failed, as far as they were kept
};

struct Evidence {
  std::string source;
  std::optional<std::int64_t> line;
  std::string text;
};

// One of the last operations before a finding (requirement C7).
struct Operation {
  std::string op;                 // "embedding"
  std::vector<std::string> args;  // "weight float32 [100, 16]", "indices int64 [8] in [0, 99]"
  std::string where;              // "train.py:31"
};

// A step of the training before a NaN; a number that is missing was not looked at.
struct TrainingStep {
  std::int64_t step = 0;
  std::optional<Scalar> loss, gradient_norm;
};

struct Finding {
  Cause cause = Cause::kInsufficientEvidence;
  std::vector<Cause> also;  // other causes that the same evidence admits, likeliest first
  Certainty certainty = Certainty::kUnknown;
  Role role = Role::kRoot;
  std::optional<bool> device_assert;  // is, or uncontained would have been, a device-side assert
  std::optional<bool> contained;      // the CUDA context is still usable
  std::string summary;                // one sentence that stands alone
  std::string op;                     // public name: "cross_entropy"
  std::string argument;               // "target"
  std::optional<Element> element;
  std::optional<Valid> valid;
  std::optional<TensorInfo> tensor;
  std::optional<Frame> origin;  // deepest user frame that called the operation
  std::vector<Frame> stack;     // outermost first
  std::optional<Frame> surfaced;
  std::optional<Layer> layer;
  std::optional<Sample> sample;
  std::optional<Process> process;
  std::optional<Progress> progress;
  std::optional<Kernel> kernel;
  std::vector<Evidence> evidence;
  std::vector<std::pair<Scalar, std::int64_t>> values;  // distinct offending values, most frequent first
  std::optional<Classes> classes;
  std::vector<std::string> fix;            // most useful first, with this case's own names and numbers
  std::vector<Operation> history;          // oldest first, at most 20
  std::vector<TrainingStep> last_steps{};  // oldest first, at most 50
};

// A column, array or tensor of a file that was looked at.
struct CheckedColumn {
  std::string file, column;  // column: empty where the file has only one
};

struct Report {
  Command command = Command::kRun;
  Verdict verdict = Verdict::kUnknown;
  std::vector<Finding> findings;   // the root first, then in causal order
  std::vector<std::string> notes;  // limits of this report
  // What `check` looked at, the first few thousand; not part of the JSON form.
  std::vector<CheckedColumn> checked{};
};

// Never clean by omission: something was passed over, cut short, not readable or not guarded. `what` says so
// in the report's notes (empty: it is said already), and a report that would be clean becomes unknown. To be
// called when the verdict stands; of a fault that was found it takes nothing.
void leave_open(Report& report, const std::string& what = {});

}  // namespace trapline
