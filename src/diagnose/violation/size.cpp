// How many rows, classes or elements are wanted, how that is known, and what to do about it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "diagnose/frame.hpp"
#include "diagnose/markers.hpp"
#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {
namespace {

// How many elements would be beyond the size, were all values equally frequent.
double evenly_spread(const ViolationWriter& w) {
  const std::int64_t over = w.needed() - w.hi();
  return static_cast<double>(over) / static_cast<double>(w.needed()) *
         static_cast<double>(w.facts.scan.total);
}

}  // namespace

std::string_view ViolationWriter::unit(const Layer& layer) {
  if (layer.attribute.starts_with("out_")) return "outputs";
  return layer.attribute == "num_embeddings" ? "rows" : "entries";
}

std::optional<std::int64_t> ViolationWriter::seen_min() const {
  std::optional<std::int64_t> min;
  if (facts.seen) {
    min = facts.seen->min;
  } else if (facts.scan.min && is_integer(*facts.scan.min)) {
    min = std::get<std::int64_t>(*facts.scan.min);
  }
  if (min && facts.scan.also == *min) min.reset();
  return min;
}

std::int64_t ViolationWriter::seen_max() const {
  std::int64_t max = integer();
  const auto take = [&](std::int64_t value) {
    if (facts.scan.also != value) max = std::max(max, value);
  };
  if (facts.scan.max && is_integer(*facts.scan.max)) take(std::get<std::int64_t>(*facts.scan.max));
  if (facts.seen) take(facts.seen->max);
  for (const auto& [value, count] : facts.values) {
    if (is_integer(value)) take(std::get<std::int64_t>(value));
  }
  return max;
}

std::int64_t ViolationWriter::needed() const {
  const std::int64_t max = seen_max();
  return next(max < kAbsurdValue ? max : integer());
}

bool ViolationWriter::all_seen() const {
  return (facts.seen && facts.seen->dataset && !facts.seen->several) || !facts.source.empty();
}

bool ViolationWriter::is_rare() const {
  return is_class() && facts.seen && facts.seen->beyond && 4 * hi() * *facts.seen->beyond < facts.seen->count;
}

bool ViolationWriter::likely() const {
  if (facts.counted) return facts.counted->count > integer();
  if (is_rare()) return false;
  const std::int64_t over = needed() - hi();
  if (over > 2 && static_cast<double>(facts.scan.bad) < 0.1 * evenly_spread(*this)) return false;
  if (over <= std::max<std::int64_t>(2, hi() / 5)) return true;
  const auto kinds = static_cast<std::int64_t>(distinct());
  if (kinds < std::min<std::int64_t>(over, 3)) return false;
  // As frequent as evenly spread values would be, or nearly so.
  return static_cast<double>(facts.scan.bad) >= 0.3 * evenly_spread(*this);
}

bool ViolationWriter::counted_from_one() const {
  if (computes() || facts.counted || facts.integer("padding_idx") == 0) return false;
  if (facts.seen && facts.seen->kinds && 2 * *facts.seen->kinds < hi())
    return false;  // 0 may be rare as well
  return hi() > 1 && facts.seen && facts.seen->dataset && seen_min() == 1 && seen_max() == hi() && only(hi());
}

Need ViolationWriter::need() const {
  const std::int64_t least = needed();
  if (facts.counted && facts.counted->count >= least) return {facts.counted->count, true, facts.counted->of};
  // A search among n edges has n + 1 results, whichever of them this call has.
  if (facts.computed && facts.computed->edges && noun() != "index" && *facts.computed->edges + 1 >= least)
    return {*facts.computed->edges + 1, true, "the number of buckets"};
  return {least, all_seen() && likely(), ""};
}

bool ViolationWriter::fix_hidden_class() {
  if (!facts.counted || facts.counted->hidden.empty() || facts.counted->count > hi()) return false;
  finding().summary +=
      fmt::format("; the hidden folder {} is one of the data set's classes: without it there are {}",
                  facts.counted->hidden, facts.counted->count);
  fix(fmt::format(
      "if it is no class, remove the folder {}: folders are numbered by the alphabet, hidden ones first, "
      "so the classes behind it are one too high",
      facts.counted->hidden));
  fix_sample();
  return true;
}

std::string ViolationWriter::basis(const Need& need) const {
  if (!need.of.empty()) return fmt::format(": {} is {}", need.of, need.count);
  if (need.exact) {
    return facts.seen ? fmt::format(": {} go to {} {}", nouns(), need.count - 1, seen_where())
                      : std::string();
  }
  const std::string least = until().empty() ? std::string() : fmt::format("{} at least: ", need.count);
  const std::string things = seen_count() == 1 ? noun() : nouns();
  if (facts.seen && facts.seen->dataset && facts.source.empty())  // the program has not used all of them
    return fmt::format(" ({}{} is the highest of the {} {} of {} data set)", least, need.count - 1,
                       seen_count(), things, which_set());
  if (op().starts_with("multilabel_margin_loss"))  // what fills a row up was counted with them
    return fmt::format(" ({}{} is the highest of the {} seen)", least, need.count - 1, nouns());
  return fmt::format(" ({}{} is the highest of {}{} {} seen)", least, need.count - 1, of_the_last(),
                     seen_count(), things);
}

std::string_view ViolationWriter::of_the_last() const {
  const bool several = facts.seen && !facts.seen->dataset && facts.seen->count > facts.scan.total;
  return several ? "the last " : "";
}

std::int64_t ViolationWriter::seen_count() const {
  return std::max(facts.scan.total, facts.seen ? facts.seen->count : std::int64_t{0});
}

bool ViolationWriter::is_alone() const {
  constexpr std::int64_t kMany = 32;
  const auto& seen = facts.seen;
  return above() && integer() > hi() && !facts.counted && seen && seen->dataset && seen->beyond == 1 &&
         seen->count >= kMany;
}

std::string ViolationWriter::alone_text() const {
  return fmt::format("{} is the only one of the {} {} of {} data set above {}", value(), facts.seen->count,
                     nouns(), which_set(), hi() - 1);
}

bool ViolationWriter::of_one_record() const {
  const bool known =
      facts.sample && facts.sample->dataset_index && facts.sample->by.empty() && !facts.sample->likely;
  // Of several rows as many as one has, at most.
  const std::int64_t rows = facts.tensor.shape.size() > 1 ? facts.tensor.shape.front() : std::int64_t{8};
  const bool few = rows >= 4 && rows * facts.scan.bad <= facts.scan.total;
  const bool beyond =
      facts.scan.max && is_integer(*facts.scan.max) && std::get<std::int64_t>(*facts.scan.max) > hi();
  return noun() != "label" && noun() != "value" && above() && known && few && beyond && !facts.counted &&
         !is_token_table() && !many_beyond();
}

bool ViolationWriter::many_beyond() const {
  constexpr std::int64_t kSome = 3, kShare = 50;
  const auto& seen = facts.seen;
  if (!above() || !seen || !seen->dataset || !seen->beyond || !seen->kinds) return false;
  const std::int64_t places = seen->max + 1;
  return *seen->beyond >= kSome && kShare * *seen->beyond >= seen->count && places < 2 * hi() &&
         10 * *seen->kinds >= 9 * places;
}

std::string ViolationWriter::many_text() const {
  return fmt::format("{} of the {} {} of {} data set are above {}, up to {}", *facts.seen->beyond,
                     facts.seen->count, nouns(), which_set(), hi() - 1, facts.seen->max);
}

std::string_view ViolationWriter::which_set() const {
  return facts.seen->several || facts.seen->choice ? "this" : "the whole";
}

std::string ViolationWriter::seen_where() const {
  if (!facts.seen) return fmt::format("in the {} of this call", facts.scan.total);
  if (!facts.seen->dataset) return fmt::format("in the last {} seen", facts.seen->count);
  return fmt::format("in {} data set ({} {})", which_set(), facts.seen->count,
                     facts.seen->count == 1 ? noun() : nouns());
}

std::string ViolationWriter::where_made(std::string_view also) const {
  if (facts.made.empty()) return {};
  const MadeAt& at = facts.made.back();
  if (at.text.ends_with("(...)")) return {};  // the call that makes the layer is no number
  if (at.text == facts.library.setting) return fmt::format(" ({})", file_and_line(at.file, at.line));
  const std::string where = file_and_line(at.file, at.line);
  // Several of one id, which is the size: what makes them may read the same number, which would move with it.
  if (!is_class() && at.read_line == 0 && facts.made.size() > 1 && facts.scan.bad > 1 && hi() > 1 &&
      only(hi()) && !need().exact)
    return {};
  if (at.read_line == 0) {
    // No list was counted: a number that makes the ids, too, would move with them and help nobody.
    const bool literal = at.text.find_first_not_of("0123456789") == std::string::npos;
    const bool counted = literal || !need().of.empty() || (is_class() && need().exact);
    const std::string unless = counted        ? std::string()
                               : also.empty() ? fmt::format(" unless the {} are made of it, too", nouns())
                                              : fmt::format(" unless {} by it, too", also);
    return fmt::format(", by `{}` ({}){}", at.text, where, unless);
  }
  const std::string read = at.read_file == at.file ? fmt::format("line {}", at.read_line)
                                                   : file_and_line(at.read_file, at.read_line);
  if (is_class())
    return fmt::format(", by `{}` ({}) unless {} are made by it, too: {} reads it", at.text, where, nouns(),
                       read);
  if (facts.made.size() == 1)
    return fmt::format(", by `{}` ({}), of which {} reads a part, too, that would change with it", at.text,
                       where, read);
  // What cuts texts, trains the tokenizer, or makes ids, by the same number moves with it: right, or not.
  return fmt::format(", by `{}` ({}), which {} reads, too: see whether that is to change with it", at.text,
                     where, read);
}

std::string ViolationWriter::resize(const Need& need) {
  if (layer().empty() || facts.library.fixed()) return {};
  set_needed(need);
  const Layer& owner = *facts.layer;
  const std::string sure = facts.layer_certain ? "" : " (the only layer of that size: a guess)";
  const std::string made = where_made();
  // By a product of it the setting cannot be told from the number of places.
  const bool computed = !need.exact && !facts.made.empty() && facts.made.back().computed;
  if (computed && facts.library.owner.empty())
    return fmt::format("give {} {}{}{}", layer(), larger(need, unit(owner)), made, sure);
  if (!facts.library.setting.empty()) {
    return fmt::format("create {} of {} with {} of {}{}{}{}", facts.library.maker, facts.library.owner,
                       facts.library.setting, larger(need), made, sure, basis(need));
  }
  if (!facts.library.owner.empty()) {
    return fmt::format("create {} of {} so that {} has {}{}{}{}", facts.library.maker, facts.library.owner,
                       layer(), how_many(need, unit(owner)), made, sure, basis(need));
  }
  if (!need.exact) {
    return fmt::format("give {} {}{}{}{}", layer(), larger(need, unit(owner)), made, basis(need), sure);
  }
  if (owner.attribute.empty() || owner.attribute.find('[') != std::string::npos) {
    return fmt::format("give {} {} {} instead of {}{}{}{}", layer(), need.count, unit(owner), hi(), made,
                       sure, basis(need));
  }
  const std::string argument = fmt::format("{}={}", owner.attribute, need.count);
  std::string call = fmt::format("..., {}", argument);
  const std::string before = fmt::format("{}={}", owner.attribute, owner.value.value_or(-1));
  if (const auto at = owner.arguments.find(before); at != std::string::npos) {
    call = owner.arguments;
    call.replace(at, before.size(), argument);
  }
  return fmt::format("change {} to {}({}){}{}{}", layer(), owner.type, call, made, sure, basis(need));
}

void ViolationWriter::set_needed(const Need& need) {
  // Ids of a whole data set may come from another table, or from a search that found nothing.
  const bool sure = !need.of.empty() || is_class();
  if (need.exact && sure && finding_.layer) finding_.layer->needed = need.count;
}

std::string ViolationWriter::until() const {
  if (all_seen()) return {};
  if (noun() == "label") return "as there are classes";
  if (noun() == "value") return "as there are values";
  if (is_token_table()) return "as the vocabulary is long";
  return noun() == "id" ? "as there are ids where they are made" : "as there can be indices";
}

std::string ViolationWriter::how_many(const Need& need, std::string_view of) const {
  const std::string things = of.empty() ? std::string() : fmt::format(" {}", of);
  if (need.exact) return std::to_string(need.count) + things;
  const std::string rule = until();
  return rule.empty() ? fmt::format("at least {}{}", need.count, things)
                      : fmt::format("as many{} {}", things, rule);
}

std::string ViolationWriter::larger(const Need& need, std::string_view of) const {
  const std::string rule = until();
  if (need.exact || rule.empty()) return fmt::format("{} instead of {}", how_many(need, of), hi());
  return fmt::format("more{}{} than {}: as many {}", of.empty() ? "" : " ", of, hi(), rule);
}

bool ViolationWriter::knob_counts(Situation situation) const {
  const auto with = [&](const char* n) { return knob_advice(situation, facts.library, {n, "", "", hi()}); };
  return with("1") != with("2");
}

std::string ViolationWriter::knob(Situation situation, const Need& need) const {
  const KnobValues values{need.exact ? std::to_string(need.count) : "N", value(), std::to_string(usable()),
                          hi()};
  std::string text = knob_advice(situation, facts.library, values);
  if (!knob_counts(situation)) return text;
  if (need.exact) return text + basis(need);
  return fmt::format("{}, N {}{}", text, how_many(need), basis(need));
}

std::string ViolationWriter::ignore_knob() const {
  std::string text = knob(Situation::kIgnore);
  if (text.empty()) return text;
  std::string advice = fmt::format("if {} marks what is not to count: {}", value(), text);
  // One setting holds one mark: what it leaves out now would count.
  const auto held = facts.library.settings.find("ignore_index");
  if (held == facts.library.settings.end() || held->second.size() != 1) return advice;
  const std::int64_t now = held->second.front();
  if (now < 0 || now == integer()) return advice;  // a default that nothing is marked with, as a rule
  return fmt::format("{}, and mark what it leaves out now ({}) with {}, too", advice, now, value());
}

std::string ViolationWriter::enlarge(Situation situation, const Need& need) {
  std::string text = knob(situation, need);
  if (text.empty()) return resize(need);
  set_needed(need);
  const auto said = facts.library.settings.find("num_labels");
  const std::int64_t most = said == facts.library.settings.end() || said->second.empty()
                                ? 0
                                : *std::ranges::max_element(said->second);
  if (text.find("num_labels") != std::string::npos && most > hi()) {  // set when the layer was made already
    return fmt::format(
        "the config says num_labels={}, but {} was made with {}: make that layer anew, nn.Linear(..., {}), "
        "and give its parameters to the optimizer",
        most, layer().empty() ? "the last layer" : layer(), hi(), std::max(need.count, most));
  }
  return text;
}

bool ViolationWriter::maybe_from_one() const {
  // What a division has cut into parts nobody counted.
  if (facts.computed && facts.computed->text.find(" / ") != std::string::npos) return false;
  if (facts.computed && facts.computed->text.find(" // ") != std::string::npos) return false;
  if (computes() || facts.counted || facts.integer("padding_idx") == 0 || op() == "ctc_loss") return false;
  if (is_token_table()) return false;  // 0 is a special token, as a rule, and seldom seen
  constexpr std::int64_t kSome = 8;
  if (hi() <= 1 || seen_count() < kSome) return false;
  // What a search gives ends at the size by itself, and who counts from 1 has the last number as often as
  // others.
  if (facts.computed && facts.computed->edges) return false;
  constexpr std::int64_t kTimes = 3;
  // Of a whole data set that has each number from 1 to the size, how often the last occurs tells nothing.
  const bool each = facts.seen && facts.seen->dataset && facts.seen->kinds == hi();
  if (!each && facts.scan.bad * kTimes * hi() < facts.scan.total) return false;
  // Both ends have to be there, hours from 5 to 24 say nothing of where hours begin; and all were seen, or so
  // many that a 0 would have shown.
  const bool many = seen_count() / 3 >= hi();
  // Who counts from 1 uses the places: few of them are the codes of a longer list.
  constexpr std::int64_t kEach = 5;
  const auto& seen = facts.seen;
  if (seen && seen->kinds && 2 * *seen->kinds < hi()) return false;
  if (seen && seen->here && facts.scan.total >= kEach * hi() && 2 * *seen->here < hi()) return false;
  constexpr std::int64_t kNear = 16;
  const bool begins = seen_min() == 1 || (many && seen_min() >= 1 && seen_min() <= hi() / kNear);
  // Of a whole data set that has nearly every number the 0 would be among them.
  const bool dense = all_seen() && (!seen || !seen->kinds || 10 * *seen->kinds >= 9 * hi());
  return begins && (many || dense) && seen_max() == hi() && only(hi());
}

std::string ViolationWriter::from_one(const std::string& name) const {
  return fmt::format(
      "if they are counted from 1 (no 0 among {}{} seen), number {} from 0 where they are made; where they "
      "number a list of names, see first what has number 0",
      of_the_last(), seen_count(), name);
}

int ViolationWriter::wrapped_bits() const {
  constexpr std::int64_t kReach = 32;
  std::int64_t known = 0;
  for (const auto& [value, count] : facts.values) {
    if (!is_integer(value)) return 0;
    known += count;
  }
  if (!above() || distinct() < 2 || known != facts.scan.bad)
    return 0;  // there are others, of which nothing is known
  for (const int bits : {8, 16, 32}) {
    const std::int64_t all = std::int64_t{1} << bits;
    if (hi() < all / 4 && std::ranges::all_of(facts.values, [&](const auto& pair) {
          const std::int64_t value = std::get<std::int64_t>(pair.first);
          return value < all && value >= all - std::min(kReach, hi());
        }))
      return bits;
  }
  return 0;
}

bool ViolationWriter::no_size() const {
  if (!above() || facts.counted) return false;
  if (is_alone() || are_codes() || wrapped_bits() != 0) return true;
  // Hardly one is valid, and none by far: they are of another kind.
  constexpr std::int64_t kFar = 2, kMost = 16;
  if (facts.scan.total >= kMost && 10 * facts.scan.bad >= 9 * facts.scan.total && needed() / kMost >= hi())
    return true;
  if (!only(integer())) return false;
  // A model that is too small for its tokenizer meets such an id, too; but then not in a record alone.
  constexpr std::int64_t kRare = 16;
  const bool rare = facts.sample && !facts.sample->likely && facts.scan.total >= kRare * facts.scan.bad;
  if (far_beyond() && (rare || !is_token_table())) return true;
  if (integer() < kFar * hi() || facts.scan.bad * kFar > facts.scan.total) return false;
  return marks_or_wraps(integer(), hi());
}

bool ViolationWriter::are_codes() const {
  constexpr std::int64_t kLarge = 1 << 20, kTimes = 256;
  return noun() == "id" && above() && !facts.counted && !only(integer()) && needed() >= kLarge &&
         needed() / kTimes >= hi();
}

bool ViolationWriter::far_beyond() const {
  constexpr std::int64_t kTimes = 16;
  return above() && only(integer()) && facts.scan.bad * 2 <= facts.scan.total && integer() / kTimes >= hi();
}

bool ViolationWriter::write_renumber(const std::string& look) {
  if (!facts.seen || !facts.seen->dataset || facts.seen->several || !facts.seen->kinds) return false;
  if (is_class() || hi() < 3 || *facts.seen->kinds != hi() || maybe_from_one()) return false;
  // One gap among many may as well be one number too far.
  constexpr std::int64_t kShare = 16;
  if (kShare * (facts.seen->max + 1 - hi()) < hi()) return false;
  fix(look);
  fix(fmt::format(
      "the whole data set has just {} different ones, from {} to {}: if each has a place of its own, number "
      "them from 0 without gaps (the numbers of a longer list, or of several columns together, leave gaps); "
      "a larger size would have places that nothing uses",
      hi(), facts.seen->min, facts.seen->max));
  return true;
}

std::string ViolationWriter::of_codes() const {
  return fmt::format("`{}` (line {}) has -1 for a {}", facts.codes->text, facts.codes->line,
                     facts.codes->edges      ? "value that is missing or in no bin"
                     : !facts.codes->unknown ? "missing value"
                     : facts.codes->missing  ? "value that is missing or none of the categories"
                                             : "value that is not in the index");
}

std::string ViolationWriter::if_meant() const {
  // Asks for what was intended, which the data cannot tell: a wrong value is in them, too. What a library
  // indexes by labels may have more places than classes.
  if (facts.table == "labels" && !facts.library.caller.empty())
    return fmt::format("if {} is to be a class: ", value());
  const std::string kind = noun();
  const char* things = kind == "label"   ? "classes"
                       : kind == "id"    ? "ids"
                       : kind == "value" ? "values"
                                         : "elements";
  const bool used = facts.no_grad && kind == "id" && !facts.library.fixed();
  const std::string own =  // they may be left over from a list that was longer, as well
      kind == "id" ? fmt::format(", and these are not of an older or another {}",
                                 is_token_table() ? "vocabulary" : "numbering")
                   : std::string();
  return fmt::format("if there are meant to be more than {} {}{}{}: ", hi(), things, own,
                     used ? ", and the model is trained anew" : "");
}

bool ViolationWriter::fix_size(Situation situation, const std::string& otherwise) {
  if (of_nan()) {  // what has room for it would hide it
    fix(
        fmt::format("{}: mend it, or leave it out, before {} is computed of it (a search among edges puts "
                    "NaN behind the last one)",
                    broken(), own("the index")));
    return false;
  }
  if (is_alone() || (!is_class() && no_size())) return false;
  if (is_of_groups()) return false;
  if (is_end_of_cut() || of_one_record()) return false;
  if (is_moved()) write_moved();
  if (is_sparse()) {
    write_sparse();
    return false;
  }
  const Need wanted = need();
  if (wanted.of.empty() && write_counted_size()) return false;
  if (facts.no_grad && noun() == "id" && wanted.of.empty() && !facts.library.fixed()) {
    fix("a larger table helps only where training sees these ids, too, as a row that it has not seen holds "
        "random numbers: look at what the model was made and trained with, and at what makes these ids");
    return false;
  }
  // What a library indexes may be another tensor than a layer that is only as large.
  const bool guess = situation == Situation::kIndex && !facts.layer_certain &&
                     !facts.library.caller.empty() && knob(situation, wanted).empty();
  // Numbers that choose among outputs say nothing of how many there are to be: only a count does.
  const bool chooses = situation == Situation::kIndex && noun() == "index" && wanted.of.empty() &&
                       facts.layer && facts.layer->attribute.starts_with("out_") &&
                       knob(situation, wanted).empty();
  const std::string known = guess || chooses ? std::string() : enlarge(situation, wanted);
  if (known.empty() && facts.library.fixed() && !layer().empty()) {
    fix(fmt::format("{} has {} {} in every {} of {}: correct the data: {}", layer(), hi(), unit(*facts.layer),
                    facts.library.maker, facts.library.owner, outside()));
    return false;
  }
  const bool instruction = !knob(situation, wanted).empty() && !knob_counts(situation);
  const bool open = wanted.of.empty() && !instruction;
  if (known.empty() && otherwise.empty()) return false;
  const std::string& text = known.empty() ? otherwise : known;
  open ? fix_if_meant(situation, wanted, text) : fix(text);
  return open;
}

}  // namespace trapline::diagnose
