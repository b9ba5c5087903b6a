// The facts of a violated contract.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contracts/contract.hpp"
#include "core/finding.hpp"
#include "core/knobs.hpp"
#include "diagnose/data.hpp"
#include "diagnose/nan.hpp"
#include "diagnose/position.hpp"
#include "diagnose/watch.hpp"

namespace trapline::diagnose {

struct ArgumentFact {
  std::optional<std::int64_t> integer;
  std::optional<TensorInfo> tensor;
};

struct ScanFact {
  std::int64_t bad = 0, total = 0, first = -1;
  std::optional<Scalar> value, min, max;
  std::int64_t lo = 0, hi = 0;
  std::optional<std::int64_t> also, list_position;
  Reason reason = Reason::kNone;
  bool is_float = false;
};

// One data set whose values alone are not all valid, beside the others of a ConcatDataset, or of the program.
struct PartFact {
  double min = 0, max = 0, others_min = 0, others_max = 0;
  std::int64_t bad = 0, count = 0;
  std::optional<std::int64_t> position;  // in ConcatDataset.datasets
  bool zero = true;                      // 0 is among its values
};

// The widest range known for the argument: of a whole data set, or of the calls so far.
struct SeenFact {
  std::int64_t min = 0, max = 0, count = 0;
  bool dataset = false;
  bool several = false;  // the program has other data sets: this one is not the whole
  bool choice = false;   // of the records of a longer one
  std::optional<std::int64_t> beyond = std::nullopt;  // values above the valid range, of a whole data set
  std::optional<std::int64_t> kinds = std::nullopt;   // different values of a whole data set
  std::optional<std::int64_t> here = std::nullopt;    // different values in this call
  std::optional<std::int64_t> gap = std::nullopt;     // the first number from 0 on that does not occur
};

// The labels of the last backward passes, which have the last class.
struct TrainedFact {
  std::int64_t max = 0, count = 0;
};

// How many classes or ids there are, by a source that counts them all.
struct CountedFact {
  std::int64_t count = 0;
  std::string of;      // "len(tokenizer)", "dataset.classes"
  std::string hidden;  // a hidden folder that the data set has among its classes, and that `count` leaves out
};

// What batching added to the numbers of this attribute; without it this one is `value`.
struct RaisedFact {
  std::string attribute;
  std::int64_t value = 0;
  std::string nodes_of;  // the attribute that has the nodes: of another one they were added
};

// The field of the configuration that made the table.
struct SettingFact {
  std::string name;  // "type_vocab_size"
  std::int64_t value = 0;
  bool fresh = false;                         // no checkpoint's: the program makes the configuration itself
  std::optional<MadeAt> made = std::nullopt;  // where it gives the field, "type_vocab_size=len(types)"
  std::string other{};                        // the one field of its kind that has room for all the ids
  std::int64_t other_value = 0;
};

// A loop that makes one position after the other.
struct GenerationFact {
  std::optional<std::int64_t> prompt, wanted;         // tokens of the prompt; max_new_tokens
  std::optional<std::int64_t> length = std::nullopt;  // max_length, where that counts
  bool trainer = false;                               // of Hugging Face's, which calls it
};

// The dimension of a tensor that the only `arange` behind the positions counts.
struct RangedFact {
  std::string name;  // "x"
  std::vector<std::int64_t> shape;
  std::size_t dim = 0;
  MadeAt at;           // "torch.arange(x.size(0))"
  bool batch = false;  // that dimension, and no other, is as large as the batch in hand
};

// The only other dimension of the indexed tensor that all of the index would fit, and not too well.
struct OtherDimensionFact {
  std::int64_t dim = 0, size = 0;
  bool batch = false;  // the indexed one, and no other, is as large as the batch in hand
};

// What the variable that holds the numbers was given last, where that is no computation of their own.
struct AssignedFact {
  std::string name;      // "target"
  MadeAt at;             // "torch.tensor(mab.predict(contexts))"
  bool entered = false;  // it is no tensor yet, and is made one behind that
};

// Keys and values of fewer tokens than the position that was asked for.
struct KeptFact {
  std::string name;  // "past"
  std::int64_t tokens = 0;
};

// The sampler of a DataLoader that draws by weights, by its name in the program, and where they came from.
struct SamplerFact {
  std::string name;  // "sampler.weights"
  std::optional<Variable> variable;
};

// Another tensor of the program's that has all elements that the index asks for.
struct FitsFact {
  std::string name;
  std::vector<std::int64_t> shape;
};

// A number of a calendar that counts from 1: the only expression of the program's that reads one.
struct CalendarFact {
  MadeAt at;
  std::int64_t last = 0;  // 12, of months
  std::int64_t by = 1;    // what the program divides it by
};

// The program's draws up to the number of places, by what gives that number as well.
struct EndFact {
  std::string text, file;
  std::vector<std::int64_t> lines{};
};

// Beside the layer that was given the numbers, the one that has their name.
struct NamesakeFact {
  std::string name;  // "heads.colour"
  std::int64_t places = 0;
};

// The assignment that computed the bad numbers, in the user's source.
struct ComputedFact {
  std::string name;  // "bucket"; empty: it stands in the call itself
  std::string text;  // "torch.bucketize(age, edges)"
  std::int64_t line = 0;
  std::string by;                     // "bucketize"; empty: arithmetic alone
  std::optional<std::int64_t> edges;  // of such a search
  std::string file{};                 // of a function that returned them; empty: where they are used
  std::optional<double> before = std::nullopt;    // the bad number as it was before a cast to an integer
  std::optional<Variable> source = std::nullopt;  // the program's tensor that it was computed of: "u[4]"
  double source_value = 0;
  std::string source_text{};  // what that was given last, "draw(n)"; empty: not known
  std::int64_t source_line = 0;
  bool of_sample = false;  // a data set computes it of a record
  // What the arithmetic was given at the bad element: "skill[0, 4]" and its value.
  using Part = std::pair<Variable, Scalar>;
  std::vector<Part> parts{};
};

// The user's variable that functions were given the numbers as.
struct PassedFact {
  std::string name, file;
  std::int64_t line = 0;
};

// Tables of one shape in one list, with the one that was read.
struct SiblingsFact {
  std::int64_t count = 0;
  std::int64_t rows = 0;  // of all of them
};

// The one place in the user's functions where pandas numbers categories; it has -1 for what is none.
struct CodesFact {
  std::string text;  // "df['city'].cat.codes"
  std::int64_t line = 0;
  bool missing = true;   // -1 stands for a missing value
  bool edges = false;    // or for one that is in no bin
  bool unknown = false;  // or for one that is none of the categories
};

// The one place of the program that writes the bad number.
struct WrittenFact {
  MadeAt at;       // "lut = np.full(256, -1)"
  std::string of;  // "nothing": the answer to what is not there; "fill": what stands in the place of
                   // something else; "name": a constant that the program stores
};

struct NanCastFact {
  Frame frame;
  std::int64_t bad = 0;
  std::string value{};  // what was cast: "nan", "inf", "-inf"; empty: not known
};

// Only `contract` and `scan` are required.
struct Violation {  // NOLINT(clang-analyzer-optin.performance.Padding): by what the members tell of
  const Contract* contract = nullptr;
  ScanFact scan;
  std::vector<std::int64_t> index;
  std::optional<Variable> variable;  // that holds the same element, in the user's code
  TensorInfo tensor;
  std::string source, column;  // of data at rest: the file, and what it calls the argument
  std::vector<std::pair<RecordPlace, Scalar>> places;  // and bad values in it, the first few
  std::map<std::string, ArgumentFact> args;
  std::vector<std::pair<Scalar, std::int64_t>> values;  // distinct offending values with counts
  std::vector<std::int64_t> strip;                      // as in core/finding.hpp
  std::optional<Histogram> histogram;
  std::optional<SeenFact> seen;
  std::optional<PartFact> part;  // of its data sets; of floating numbers, which `seen` has not, too
  std::optional<Classes> classes;
  std::size_t named_classes = 0;   // that the data set itself has names for
  std::int64_t highest_class = 0;  // the greatest number of one
  bool value_is_named = false;     // every offending value is the number of one
  std::optional<Frame> origin, surfaced;
  std::vector<Frame> stack;
  std::optional<Layer> layer;
  bool layer_certain = true;
  std::vector<MadeAt> made;  // where the program says how large the layer, or num_classes, is
  std::string table;         // "position", "token", "other", "weight", "optimizer", or empty: not known
  std::string annotations;   // "COCO", "YOLO": the labels are those of boxes in pictures
  std::optional<SettingFact> setting;
  std::map<std::string, std::int64_t> special_ids;
  std::string resizable;  // the variable of the model that has resize_token_embeddings and owns the table
  std::optional<CountedFact> counted;
  std::optional<PositionFact> position;
  std::optional<std::int64_t> counts_from;  // where the run of positions begins that the bad one is in
  std::optional<std::int64_t> in_column;    // all that is bad is in this place of the last dimension
  std::optional<bool> text;                 // the sequence is one of tokens
  std::string sequence;                     // the user's variable that holds it: "ids"
  std::optional<RangedFact> ranged;         // what counts the positions
  bool grows = false;                       // a loop feeds the sequence again, one longer each time
  std::optional<KeptFact> kept;
  std::int64_t virtual_tokens = 0;  // that a prompt tuner puts before each text
  std::optional<GenerationFact> generation;
  LibraryFact library;
  std::optional<WeightsFact> weights;
  std::optional<Sample> sample;
  std::optional<Process> process;
  std::optional<Progress> progress;
  std::optional<FitsFact> fits;
  std::optional<EndFact> end;            // where the numbers may be drawn
  std::optional<MadeAt> floored;         // the program's only `//` of something that may be negative
  std::optional<CalendarFact> calendar;  // may be what the numbers are
  std::optional<NamesakeFact> namesake;
  std::optional<TrainedFact> trained;      // while this call evaluates
  std::optional<NamesakeFact> other_head;  // beside the layer, the only one with as many places as they need
  std::optional<RaisedFact> raised;
  std::optional<ComputedFact> computed;
  std::optional<PassedFact> passed_as;
  std::optional<AssignedFact> assigned;
  std::optional<OtherDimensionFact> other_dimension;
  bool selected = false;                  // the indexed tensor is a slice of a tensor with more dimensions
  std::int64_t cut_from = 0;              // places of the larger tensor that the indexed one is a part of
  std::optional<AssignedFact> indexed;    // what made the indexed tensor
  std::optional<AssignedFact> cut_since;  // the indexed variable was made of itself after its index was made
  bool drawn = false;                     // chance made the numbers
  bool scores = true;                     // the program speaks of scores or a softmax
  bool tokenizes = true;                  // and of a tokenizer
  bool pandas = true;                     // and of pandas
  bool resizes = true;                    // and of resizing, rotating or warping
  bool greys = false;                     // and of turning a picture grey
  bool categories = false;                // and of category_id, as COCO's annotations have
  bool pretrained = false;                // and makes a table of vectors that it has
  bool as_nll = false;                    // it called nll_loss() itself
  bool two_colours = false;  // the row with labels of 255 has no others but 0, and other rows have 1
  bool sums_to_one = false;  // each row of what is drawn by adds up to 1
  bool as_long = false;      // the variable that holds the labels has as many columns as there are classes
  bool repeated = false;     // the user's variable has less elements than were made of it
  bool exchanged_index = false;  // of x[i, j]: each of two would fit the other's dimension
  bool exchanged = false;        // of a loss: the target has a gradient, and the input has none
  std::string narrow;            // a type of the program's that has no room for the highest place: "int8"
  std::string ids_as_long;  // ids with a row for each label, and as many places in it as there are classes
  std::optional<SiblingsFact> siblings;
  std::optional<NamesakeFact> partner;  // the one other table of the module, which has more rows
  std::optional<CodesFact> codes;
  std::optional<WrittenFact> written;  // the one place of the program that writes the bad number
  std::optional<NanCastFact> nan_cast;
  bool no_grad = false;          // the model is used, not trained
  std::int64_t members = 0;      // models that one vmap runs; value, range and index are of one of them
  bool newest = false;           // and only the last of its row is bad, of several
  bool batch_is_finite = false;  // every floating tensor of the batch in hand
  std::int64_t padded_to = 0;    // what the collate function fills rows up to a multiple of
  std::string rounded;     // the dtype of the variable that held them, where that has rounded the bad one
  std::int64_t exact = 0;  // the whole numbers that `rounded` holds
  std::optional<MadeAt> taken_off{};  // what takes `taken_number` off labels, the only one of the program
  std::int64_t taken_number = 0;
  std::optional<MadeAt> less_one{};  // what takes 1 off labels, which makes 255 of 0 in uint8
  std::optional<MadeAt> filled{};    // what fills labels with the number that the layer was made by
  std::string masked;                // the variable that is 0 wherever a number is bad
  std::optional<Frame> numpy_cast;   // where NumPy warned of an invalid value in a cast
  std::optional<WatchFact> watch;
  std::optional<NanFact> nan;
  std::optional<SamplerFact> sampler;
  std::string
      squashed;  // what made the scores, as the graph says: "raw", "tanh", "cosine", "difference", "log"
  std::int64_t passed = 0;         // of the last calls, those of the same line, with good numbers
  std::optional<bool> whole;       // all of a floating argument are whole numbers
  std::optional<bool> holds_zero;  // and a 0 is among them
  std::optional<bool> holds_one;   // and a 1
  std::vector<Operation> history;
  bool contained = true;           // the operation did not get the bad values
  std::string thread;              // that made the call, when the host learned of it later
  bool gradients_dropped = false;  // a backward pass had begun since, and what it left in .grad is gone

  // The size `dim` of the tensor argument `name`; nullopt when it is not known. Negative dims count from the
  // end.
  std::optional<std::int64_t> size(const std::string& name, std::int64_t dim) const;
  // The integer argument `name`.
  std::optional<std::int64_t> integer(const std::string& name) const;
};

}  // namespace trapline::diagnose
