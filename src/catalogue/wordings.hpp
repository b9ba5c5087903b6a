// Messages that a program, a library, a driver or the kernel can print about a failure: one row per wording.
//
// To teach Trapline a new message, add one row: to a messages_*.def file, when one of the meanings
// (catalogue/meanings.hpp) says what it is; an error with a name or a number to a statuses_*.def file
// (catalogue/statuses.hpp); anything else to a wordings_*.def file. What a row does is said in the row: no
// code asks for a row by its name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalogue/hints.hpp"
#include "catalogue/kinds.hpp"
#include "catalogue/meanings.hpp"
#include "catalogue/phrases.hpp"
#include "core/cause.hpp"
#include "core/finding.hpp"

namespace trapline {

// Where a message leaves open what exactly went wrong: what else in the log tells.
enum class Refine : std::uint8_t {
  kNothing,
  kOpOfStatement,     // the statement that failed names the operation
  kTokenOrPosition,   // an embedding's index: token ids, or positions
  kTableOrIndex,      // TensorFlow's gather: of a table of embeddings, or of anything else
  kLabelOrClasses,    // a label beyond the classes: the label is wrong, or the number of classes
  kRowsOrClasses,     // logits and labels of two sizes: which of them differ
  kLinearInFrames,    // a matrix product, perhaps a linear layer's
  kOperatorInCode,    // + - * / in the source line
  kOpOfFrames,        // PyTorch's own frames name the operation
  kMethodInMessage,   // "argument mat1 in method wrapper_CUDA_addmm"
  kHardwareByNumber,  // an Xid: the GPU's own fault, or a program's
};

// How a process complains about another one.
enum class Complaint : std::uint8_t { kNone, kWaitedFor, kLost, kStoppedAfterLosing };

// What a row does besides naming its cause.
struct RowEffect {
  Hints hints = {};                        // what the line says about the program
  Refine refine = Refine::kNothing;        // kHostValue, kContext
  Complaint complaint = Complaint::kNone;  // kPeer, with ...
  std::string_view failure = {};           // ... what failed: "NCCL time-out" ...
  bool by_launcher = false;                // ... and whether it is the launcher that complains
  Meaning meaning = Meaning::kOwn;         // what else it may be, and what to do
  bool if_it_goes_on = false;  // kHint: what is missing does no harm where the program goes on behind it
};

struct WordingRow {
  // Whether it is a failure of its own, not something that stands beside one.
  constexpr bool is_failure() const {
    return kind != WordingKind::kContext && kind != WordingKind::kHint && kind != WordingKind::kEvidence;
  }

  std::string_view id;  // "cuda.illegal_address"; stable, unique
  WordingKind kind;
  Cause cause;
  Certainty certainty;
  Device device_assert;
  std::string_view op;
  std::string_view argument;
  std::string_view phrase;  // matched folded (catalogue/fold.hpp)
  std::string_view sample;  // a whole line; tests run it
  RowEffect effect = {};
};

// All of them, also those made of messages and statuses; they live as long as the program.
std::span<const WordingRow> wording_rows();
const WordingRow* find_wording_id(std::string_view id);

// What a hint that is none where the program goes on (`if_it_goes_on`) says of a log that ends with it.
const WordingRow* at_end(const WordingRow& hint);

// The row of a message that a meaning says everything of. The texts are kept, not copied.
WordingRow wording_of(std::string_view id, Meaning meaning, std::string_view phrase, std::string_view sample);

// One automaton over all phrases of the catalogue. Its identifiers:
struct CataloguePhrase {
  enum class Kind : std::uint8_t { kWording, kCondition, kFile, kKernel, kMarker } kind;
  std::uint32_t index =
      0;  // of the wording row, of the assertion row (the first of those with this text), or Marker
  std::uint32_t length = 0;
};
enum class Marker : std::uint32_t { kAssertion, kBlock, kThread };

struct CataloguePhrases {
  Phrases automaton;
  std::vector<CataloguePhrase> phrases;  // by identifier
};
// With the messages of `rows`, whose places in the span are the indices of kWording.
CataloguePhrases phrases_with(std::span<const WordingRow* const> rows);
const CataloguePhrases& catalogue_phrases();  // with the catalogue's own

// The row whose phrase is the longest one in the text; nullptr: none. For single messages; logs are read with
// catalogue_phrases().
const WordingRow* find_wording(std::string_view text);

}  // namespace trapline
