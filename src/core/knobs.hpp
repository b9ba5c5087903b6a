// What to turn where the failing call is inside a library: the argument of the user's own call.
//
// To teach Trapline a library, add one row to knobs.def.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trapline {

enum class Situation : std::uint8_t {
  kClasses,    // the head has fewer outputs than there are classes
  kIgnore,     // one label value marks what is not to count
  kIds,        // ids beyond a table
  kPositions,  // a sequence longer than the position table
  kIndex,      // an index that the library computes with
  kSelected,   // more elements asked for than there are
  kMade,       // the classes of a model that a library makes of another one's
  kWidth,      // an input of another width than the layer takes; the names are `module.Class:layer`
  kOneHot,     // class numbers where a channel for each class is expected
};

struct Knob {
  std::string_view who;  // dotted class or function, `*` for any run of characters
  Situation situation;
  std::string_view advice;  // with {n}, {label}, {rows}
};

// The libraries behind a fault. A class stands there with its bases: the name of one is enough for a row.
struct LibraryFact {
  std::string caller;                // the package whose code called the operation; empty: the user's
  std::string owner;                 // the package whose code made the layer or the table; empty: the user's
  std::string maker;                 // its class there, "BertForSequenceClassification"
  std::string setting;               // of that class, which is the size in question: "padded_vocab_size"
  std::vector<std::string> owners;   // the modules around the layer, innermost first
  std::vector<std::string> callers;  // what runs between the user's line and the operation, innermost first
  // Whole numbers that these objects, and the settings that they were given, hold by name.
  std::map<std::string, std::vector<std::int64_t>> settings = {};
  // What the source of the layer's class makes its size of; empty: of no setting. nullopt: it does not say
  // it.
  std::optional<std::vector<std::string>> made_of = {};

  // Nothing that the user gives reaches the size of the layer.
  bool fixed() const { return made_of && made_of->empty(); }
};

// What stands for the placeholders of a row.
struct KnobValues {
  std::string n;                          // "4", or "N" where no number is certain
  std::string label;                      // "-1"
  std::string rows;                       // "512"; of a width, that which the layer takes
  std::optional<std::int64_t> size = {};  // what the setting has to be now; a row that names another is none
};

std::span<const Knob> knobs();

// The advice with its placeholders filled; empty when no row is about these libraries. The library that made
// the layer goes before those that only call, except for ignored labels and computed indices. A row whose
// setting is known to be of another size, or known not to make this layer, is passed over.
std::string knob_advice(Situation situation, const LibraryFact& library, const KnobValues& values);

// `*` stands for any run of characters.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace trapline
