// Positions: a sequence beyond its table, by whichever operation it is met.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "diagnose/frame.hpp"
#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

bool name_has(const ViolationWriter& w, std::initializer_list<std::string_view> words) {
  if (!w.facts.layer) return false;
  const std::string name = lower(w.facts.layer->name);
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

}  // namespace

bool is_position_table(const ViolationWriter& w) {
  if (!w.facts.table.empty()) return w.facts.table == "position";
  return name_has(w, {"position", "wpe", "pos_emb", "posemb", "pos."});
}

std::string table_text(const ViolationWriter& w, std::string_view kind) {
  return w.layer().empty() ? fmt::format("the {}table", kind)
                           : fmt::format("the {}table {}", kind, w.layer());
}

namespace {

// Positions arrive one at a time, [4, 1] or [1]: a loop that generates.
bool one_at_a_time(const ViolationWriter& w) {
  const auto& shape = w.facts.tensor.shape;
  return w.facts.generation || (shape.size() >= 2 && shape.back() == 1) || w.facts.scan.total == 1;
}

void fix_generation(ViolationWriter& w, std::int64_t usable) {
  const std::optional<std::int64_t> prompt =
      w.facts.generation ? w.facts.generation->prompt : std::optional<std::int64_t>();
  const bool by_length = w.facts.generation && w.facts.generation->length && !w.facts.generation->wanted;
  if (by_length) {
    w.fix(fmt::format("{}={} instead of {}: it counts the {} as well, and there are {} positions",
                      w.facts.generation->trainer ? "generation_max_length" : "max_length", usable,
                      *w.facts.generation->length,
                      w.facts.generation->trainer ? "token that the decoder starts with" : "prompt", usable));
  } else if (prompt && *prompt < usable) {
    const std::string instead = w.facts.generation->wanted
                                    ? fmt::format(" instead of {}", *w.facts.generation->wanted)
                                    : std::string();
    const std::string before =
        *prompt == 1 ? "the token before them" : fmt::format("the prompt of {} tokens", *prompt);
    w.fix(fmt::format("max_new_tokens={}{}: with {} they fit into {} positions", usable - *prompt, instead,
                      before, usable));
  } else {
    w.fix(fmt::format("generate fewer tokens: prompt and new tokens together may be {}", usable));
  }
  if (w.facts.generation) return;  // the loop is not the user's
  w.fix(
      fmt::format("or, where only the last place of the output is read, give the model its last {} tokens in "
                  "each step, without a cache",
                  usable));
}

void fix_length(ViolationWriter& w, std::int64_t usable) {
  std::string knob = w.knob(Situation::kPositions);
  if (knob.find("okenizer(") != std::string::npos && !w.facts.tokenizes) knob.clear();  // there is none
  const bool text = w.facts.text.value_or(true);
  if (!knob.empty() && (text || w.facts.library.owner != "transformers")) {
    w.fix(knob);
  } else if (!text) {
    w.fix(fmt::format("if what is beyond may be left out, feed sequences of at most {}", usable));
  } else if (!w.facts.sequence.empty() && !w.facts.variable) {  // else the positions have to be cut, too
    w.fix(fmt::format(
        "if what is beyond may be left out, truncate to {0}: {1} = {1}[:, :{0}], where the batch is made",
        usable, w.facts.sequence));
  } else {
    w.fix(fmt::format("if what is beyond may be left out, truncate to {} where the batch is made", usable));
  }
  if (w.facts.virtual_tokens > 0) {
    w.fix(fmt::format("{} positions are left for a text: {} virtual tokens of the prompt come before it",
                      usable, w.facts.virtual_tokens));
  }
}

// Values beyond the table that do not count up from the beginning: time steps, coordinates.
bool are_values(const ViolationWriter& w, std::int64_t offset) {
  constexpr std::int64_t kRowsBefore = 2;  // of BART and its relatives, where the offset is not known
  return w.facts.counts_from && *w.facts.counts_from > offset + kRowsBefore && !one_at_a_time(w);
}

// As many of them as the table has rows, and none is 0: no sequence is too long.
bool count_from_one(const ViolationWriter& w, std::int64_t offset) {
  const auto& shape = w.facts.tensor.shape;
  return offset == 0 && w.facts.counts_from == 1 && !shape.empty() && shape.back() == w.hi() &&
         w.only(w.hi()) && !one_at_a_time(w) && !w.facts.kept;
}

// The tables of LayoutLM and its relatives.
bool are_coordinates(const ViolationWriter& w) {
  return name_has(w, {"x_pos", "y_pos", "h_pos", "w_pos", "2d"}) ||
         (w.facts.setting && w.facts.setting->name.find("2d") != std::string::npos);
}

// Coordinates: more rows would take what was not scaled, without a word. Steps are what they are.
void fix_values(ViolationWriter& w, std::string setting, std::int64_t needed) {
  const std::string look = fmt::format("{}: they go to {}, and the table has {} rows",
                                       w.look_at_computation("the positions"), needed - 1, w.hi());
  if (are_coordinates(w)) {
    constexpr std::int64_t kScale = 1000;  // LayoutLM's, with both ends
    if (w.hi() == kScale && w.seen_max() == kScale)
      return w.fix(
          "boxes that are scaled to 0..1000 need 1001 rows: give the model's config "
          "max_2d_position_embeddings=1024, as it is by default");
    return w.fix(look + "; coordinates are scaled to the range that the model was made for");
  }
  if (setting.empty() && w.facts.setting) setting = w.facts.setting->name;
  const std::string more =
      setting.empty()
          ? fmt::format("give the table a row for each step of the longest, {} at least, instead of {}",
                        needed, w.hi())
          : fmt::format(
                "make the model with {} as large as the longest has steps, {} at least, instead of {}",
                setting, needed, w.hi());
  w.fix(look + "; a count that goes on from call to call has to begin anew with each sequence");
  w.fix_sample();
  // One record that begins behind the table was never begun anew; the others fit.
  const bool of_record = w.facts.sample && w.facts.sample->dataset_index && !w.facts.sample->likely;
  if (of_record && w.facts.counts_from && *w.facts.counts_from >= w.hi() &&
      4 * w.facts.scan.bad < w.facts.scan.total)
    return;
  if (w.facts.grows)  // the tokens of a text, as a rule
    return w.fix(
        fmt::format("if they count what one sequence has alone, it may have {}, what it begins with and what "
                    "is generated together",
                    w.usable()));
  w.fix(fmt::format(
      "only if they count the steps of what may be so long (an episode, a series), and that is not "
      "cut before: {}, or cut what is longer",
      more));
}

// A dimension that is none of a sequence may be counted: another one would do. The second is the sequence's
// where the batch comes first, as most programs have it.
bool counts_another(const ViolationWriter& w) {
  if (!w.facts.ranged || w.facts.ranged->dim == 1) return false;
  const RangedFact& ranged = *w.facts.ranged;
  std::size_t at = 0;
  return std::ranges::any_of(ranged.shape,
                             [&](std::int64_t size) { return at++ != ranged.dim && size <= w.usable(); });
}

std::string counted_along(const RangedFact& ranged) {
  return fmt::format("dimension {} of `{}` [{}]", ranged.dim, ranged.name, fmt::join(ranged.shape, ", "));
}

std::string counting_line(const RangedFact& ranged) {
  return fmt::format("`{}` ({})", ranged.at.text, file_and_line(ranged.at.file, ranged.at.line));
}

// Rows for as many positions as the batch has samples would give each sample one of its own, without a word.
void fix_dimension(ViolationWriter& w) {
  const RangedFact& ranged = *w.facts.ranged;
  w.finding().sample.reset();
  w.fix(fmt::format("look at {}: that dimension is as large as the batch; the positions are those of the {}",
                    counting_line(ranged),
                    ranged.shape.size() == 2
                        ? fmt::format("other one, {} of them", ranged.shape.at(1 - ranged.dim))
                        : "dimension that is the sequence"));
}

// `(image // patch) ** 2 + 1`: as many as there are to be. What is made here follows from other numbers.
bool is_size_computed(const ViolationWriter& w) {
  return !w.facts.made.empty() && w.facts.made.back().computed && !w.facts.text.value_or(true) &&
         !w.facts.tokenizes;
}

void fix_computed_size(ViolationWriter& w, std::int64_t length) {
  const MadeAt& size = w.facts.made.front();
  w.fix(
      fmt::format("`{}` ({}) says how many places there are to be, {}, and here are {}: see that what makes "
                  "them (sizes, patches, strides) goes by the same numbers",
                  size.text, file_and_line(size.file, size.line), w.hi(), length));
}

// Neither more rows nor a shorter text puts the positions before it right.
void fix_counted(ViolationWriter& w) {
  w.finding().sample.reset();  // no text is to blame
  w.fix(
      fmt::format("look at where {} is computed: {} is its number only if {} tokens are before it, and the "
                  "keys and values "
                  "in `{}` are of {} at most; some are counted twice, or come from a request before",
                  w.own("the position"), w.value(), w.value(), w.facts.kept->name, w.facts.kept->tokens));
}

}  // namespace

void write_position(ViolationWriter& w) {
  const std::int64_t usable = w.usable();
  const std::int64_t offset = w.facts.position ? w.facts.position->offset : 0;
  // Of this call alone: positions of other sequences tell nothing about this one.
  const bool known = w.facts.scan.max && is_integer(*w.facts.scan.max);
  const std::int64_t last =
      next(known ? std::max(w.integer(), std::get<std::int64_t>(*w.facts.scan.max)) : w.integer()) - offset;
  const std::int64_t length =
      w.facts.position && w.facts.position->length ? std::max(*w.facts.position->length, last) : last;
  std::string name = table_text(w, "position ");
  // Positions that index a buffer: a layer with as many outputs has nothing to do with them.
  const bool other = w.facts.layer && w.facts.layer->attribute.starts_with("out_");
  if (other) {
    w.finding().layer.reset();
    name = "the position table";
  }
  if ((other || w.layer().empty()) && w.facts.position && !w.facts.position->name.empty()) {
    name = fmt::format("the position table `{}`", w.facts.position->name);
  }
  const bool values = are_values(w, offset);
  // Coordinates and time steps are no places in a text.
  w.finding().cause = values ? w.facts.contract->cause : Cause::kPositionIndexOutOfRange;
  w.finding().also = {values ? Cause::kPositionIndexOutOfRange : w.facts.contract->cause};
  std::string why = fmt::format("the sequence of {} positions is too long", length);
  if (values) why = fmt::format("positions go to {}", last + offset - 1);
  const bool from_one = count_from_one(w, offset);
  // A model that is used may be given the last tokens of a text that has grown.
  const bool slides = from_one && w.facts.no_grad;
  if (from_one)
    why = fmt::format("the {} positions {}", w.hi(), slides ? "begin at 1" : "are counted from 1");
  const bool batch = w.facts.ranged && w.facts.ranged->batch && counts_another(w);
  if (batch)
    why = fmt::format("the positions are counted along {}, the batch", counted_along(*w.facts.ranged));
  if (w.facts.kept)
    why = fmt::format("it is counted wrongly, as `{}` holds {} tokens before it at most", w.facts.kept->name,
                      w.facts.kept->tokens);
  w.finding().summary = fmt::format(
      "{}, but {} has {} rows{}: {}", w.opening(), name, w.facts.position ? w.facts.position->rows : w.hi(),
      offset > 0 ? fmt::format(", the first {} of them for other uses", offset) : std::string(), why);
  if (w.facts.kept) return fix_counted(w);
  if (batch) return fix_dimension(w);
  if (w.is_cut_short()) {
    w.finding().sample.reset();  // no text is to blame
    w.fix(fmt::format("{}: {}", w.look_at_computation("the positions"), w.outside()));
    return w.fix(w.cut_short_text());
  }
  if (slides)
    return w.fix(fmt::format(
        "number them from 0 where {} {} made: where these are the last {} tokens of a longer text, "
        "from 0 again in each window",
        w.facts.variable ? w.users() : "the positions", w.facts.variable ? "is" : "are", w.hi()));
  if (from_one)
    return w.fix(
        fmt::format("number them from 0 where {} {} made; where number 0 is kept for padding, give {} "
                    "one row more",
                    w.facts.variable ? w.users() : "the positions", w.facts.variable ? "is" : "are",
                    w.layer().empty() ? "the position table" : w.layer()));
  const bool one = one_at_a_time(w) || w.facts.grows;
  if (w.facts.indexed && w.layer().empty() && !values) {  // no parameter: it may be made of any size
    const auto& [table, at, entered] = *w.facts.indexed;
    w.fix(fmt::format(
        "look at `{} = {}` ({}), which gives the table its size, {}: it needs a row for each place of "
        "the longest sequence; where an earlier call has made it (a cache), a longer one has to make it "
        "anew",
        table, at.text, file_and_line(at.file, at.line), w.hi()));
    return w.fix_sample();
  }
  if (!one && counts_another(w))
    w.fix(fmt::format("see first that {} counts the dimension of the sequence: it is {}",
                      counting_line(*w.facts.ranged), counted_along(*w.facts.ranged)));
  if (!one && !values && is_size_computed(w)) {
    fix_computed_size(w, length);
    return w.fix_sample();
  }
  constexpr std::int64_t kUsualOffset = 8;  // RoBERTa has 2, BART 2
  if (offset > kUsualOffset && !values && !one) {
    w.fix(
        fmt::format("{0} of {3} rows stand before the first position, and leave {2} for a text: where "
                    "positions begin behind the "
                    "number that is kept for padding, see whether that is meant to be {1}, and not a small "
                    "one; if it is, the "
                    "table needs {4} rows at least",
                    offset, offset - 1, w.hi() - offset, w.facts.position ? w.facts.position->rows : w.hi(),
                    length + offset));
    return w.fix_sample();
  }
  const std::string limit =
      w.facts.position && !one && !values ? limit_advice(*w.facts.position) : std::string();
  if (!limit.empty()) w.fix(limit);
  const bool own = w.facts.variable && !one && !values && limit.empty() && !w.facts.ranged;
  if (own)
    w.fix(fmt::format("look at where {} {} made: of several texts in one row each has positions from 0 on",
                      w.users(), w.facts.variable ? "is" : "are"));
  if (w.facts.padded_to > 1 && length % w.facts.padded_to == 0)
    w.fix(fmt::format(
        "the collate function fills rows up to a multiple of {0} (pad_to_multiple_of={0}), and {1} "
        "is one: take a number that {2} is a multiple of, or leave it out",
        w.facts.padded_to, length, usable));
  // Two or three beyond are tokens that are put around a text: cut off, the text would lose its end.
  constexpr std::int64_t kAround = 3;
  const bool is_text = w.facts.tokenizes || w.facts.text.value_or(false);
  const bool around =
      !one && !values && limit.empty() && length > usable && length - usable <= kAround && is_text;
  if (one && !values) {
    fix_generation(w, usable);
  } else if (!values && !around) {
    fix_length(w, usable);
  }
  std::string setting = w.facts.position ? w.facts.position->setting : std::string();
  const bool kept = around && offset > 0 && length - usable <= offset;
  const std::string lead =
      kept     ? fmt::format("the {} rows for other uses are counted in its size: ", offset)
      : around ? fmt::format("{} beyond may be {}, which the limit has to count: ", length - usable,
                             w.facts.tokenizes ? "the tokens that begin and end a text"
                                               : "what is put around each sequence")
               : std::string("or ");
  const auto& generation = w.facts.generation;
  std::int64_t most = length;
  if (generation && generation->wanted && generation->prompt) {
    most = std::max(length, *generation->prompt + *generation->wanted - 1);  // the last is not fed
  } else if (generation && generation->length) {
    most = std::max(length, *generation->length - 1);
  }
  if (values) {
    fix_values(w, setting, last + offset);
    return w.fix_sample();
  }
  if (!limit.empty() && w.facts.position->limit_is_beyond()) {
    // The table is not what is wrong.
  } else if (!setting.empty()) {
    w.fix(
        fmt::format("{}give the model as many positions as the longest sequence has where it is made, {}={} "
                    "at least (new rows have to be trained)",
                    lead, setting, most + offset - (w.facts.position->rows - w.facts.position->value)));
  } else if (w.facts.setting) {
    w.fix(
        fmt::format("{}give the model as many positions as the longest sequence has where it is made: "
                    "config.{}={} made this table, {} at least (new rows have to be trained)",
                    lead, w.facts.setting->name, w.facts.setting->value, most + offset));
  } else {
    w.fix(
        fmt::format("{}give the position table a row for each place of the longest sequence, {} at least{}{}",
                    lead, most + offset, w.where_made("the sequences are cut"),
                    w.layer().empty() ? "" : " (new rows have to be trained)"));  // else it may be computed
  }
  // A tokenizer that truncates leaves room for them; whoever cuts the batch loses what ends the sequence.
  if (around && w.facts.tokenizes) fix_length(w, usable);
  // What a decoder is given may be the target, which cannot be read in pieces.
  const bool decodes = w.layer().find("decoder") != std::string::npos;
  if (!values && !one && !around && !decodes && w.facts.text.value_or(true)) {
    w.fix(fmt::format("or, of long texts, split into windows of {} with some overlap", usable));
  }
  w.fix_sample();
}

}  // namespace trapline::diagnose
