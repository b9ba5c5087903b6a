// Labels that are counted from 1, all of them or those of a part of the data.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {

namespace {

// The line without what one_hot() is given besides its numbers: `self.classes` says how many there may be.
std::string without_count(std::string code) {
  const std::size_t call = code.find("one_hot(");
  if (call == std::string::npos) return code;
  std::size_t comma = std::string::npos;
  int depth = 0;
  for (std::size_t at = code.find('(', call); at < code.size(); ++at) {
    const char c = code[at];
    depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    if (c == ',' && depth == 1 && comma == std::string::npos) comma = at;
    if (depth == 0) return comma == std::string::npos ? code : code.erase(comma, at - comma);
  }
  return comma == std::string::npos ? code : code.substr(0, comma);
}

}  // namespace

// Any number can be made one-hot.
bool speaks_of_labels(const ViolationWriter& w) {
  static constexpr std::array kWords{"label", "labels", "target",   "targets",    "class", "classes",
                                     "cls",   "gt",     "category", "categories", "y"};
  std::string text = w.facts.variable ? w.facts.variable->name : std::string();
  if (w.facts.origin) text += " " + without_count(w.facts.origin->code);
  std::string word;
  const auto is_word = [&] { return std::find(kWords.begin(), kWords.end(), word) != kWords.end(); };
  bool found = false, counts = false;
  for (const char c : text + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    counts |= word == "num" || word == "n";  // num_classes says nothing of what is counted
    found |= !counts && is_word();
    word.clear();
    if (c != '_') counts = false;
  }
  return found;
}

// Labels 1..N. Believable when the whole data set was seen, or so many labels that a class 0 would have
// shown.
bool one_based(const ViolationWriter& w) {
  if (w.op() == "ctc_loss" || w.computes()) return false;         // 0 is the blank; nobody counted
  if (w.op() == "one_hot" && !speaks_of_labels(w)) return false;  // degrees, months, ages: some begin at 1
  if (w.counted_from_one()) return true;
  return w.seen_count() / 3 >= w.hi() && w.hi() > 1 && w.seen_min() == 1 && w.seen_max() == w.hi() &&
         w.only(w.hi()) && !(w.facts.counted && w.facts.counted->count > w.hi());
}

// 0 occurred before; this call, with labels enough to show one, runs from 1 to N. Of a data set that was seen
// as a whole any batch may lack what is rare.
bool one_based_part(const ViolationWriter& w) {
  return !w.all_seen() && w.op() != "ctc_loss" && !w.computes() && w.hi() > 1 && w.facts.seen &&
         w.facts.seen->min == 0 && w.facts.seen->max == w.hi() &&
         w.facts.scan.min == Scalar(std::int64_t{1}) && w.facts.scan.max == Scalar(w.hi()) &&
         w.only(w.hi()) && w.facts.scan.total / 3 >= w.hi() &&
         4 * w.hi() * w.facts.scan.bad >= w.facts.scan.total &&  // the last class is as frequent as others
         !(w.facts.counted && w.facts.counted->count > w.hi());
}

void write_one_based_part(ViolationWriter& w) {
  w.finding().also = {Cause::kNumClassesMismatch};
  w.finding().summary += fmt::format(
      "; here labels run from 1 to {0}, elsewhere 0 occurs: a part of the data may "
      "be counted from 1",
      w.hi());
  w.fix(
      "compare where this part comes from with the rest: what is counted from 1 has to begin at 0, in this "
      "part alone");
}

void write_one_based(ViolationWriter& w) {
  w.finding().also = {Cause::kNumClassesMismatch};
  w.finding().summary +=
      fmt::format("; labels look 1-based: they run from 1 to {} {}", w.seen_max(), w.seen_where());
  const bool several = w.facts.seen && w.facts.seen->several;
  const DataSet* set = w.facts.sample && w.facts.sample->dataset ? &*w.facts.sample->dataset : nullptr;
  w.fix(
      "see first what has number 0: a list of names that numbers the labels may begin with one that is no "
      "class (a hidden folder, a header, a background)");
  if (several) {
    const std::string name = set && !set->name.empty() ? fmt::format("`{}`", set->name) : "this data set";
    w.fix(fmt::format("if the program's other data sets begin at 0: label - 1, in {} alone", name));
    w.fix("if they begin at 1, too: label - 1 in all of them");
  } else {
    w.fix("if nothing has it, they are counted from 1: labels = labels - 1, best once in the data set");
    w.fix(
        "at prediction time add it again where the number itself is wanted, not its place in a list: "
        "logits.argmax(1) + 1");
  }
  const std::string resize = w.enlarge(Situation::kClasses, {next(w.hi()), true, ""});
  w.finding().layer.has_value() ? w.finding().layer->needed.reset() : void();
  if (!resize.empty()) w.fix(fmt::format("only if there is a class 0 as well: {}", resize));
}

}  // namespace trapline::diagnose
