// Ids of a table: token, category and position embeddings.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "diagnose/markers.hpp"
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

bool is_position_table(const ViolationWriter& w) {
  if (!w.facts.table.empty()) return w.facts.table == "position";
  return name_has(w, {"position", "wpe", "pos_emb", "embed_pos", "posemb", "pos."});
}

std::string table(const ViolationWriter& w, std::string_view kind) {
  return w.layer().empty() ? fmt::format("the {}table", kind)
                           : fmt::format("the {}table {}", kind, w.layer());
}

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
    w.fix(
        fmt::format("max_new_tokens={0}{1}: at most {2} - {3}, for {2} positions and a prompt of {3} tokens",
                    usable - *prompt, instead, usable, *prompt));
  } else {
    w.fix(fmt::format("generate fewer tokens: prompt and new tokens together may be {}", usable));
  }
  if (w.facts.generation) return;  // the loop is not the user's
  w.fix(
      fmt::format("or, where the loop keeps the whole text, give the model its last {} tokens in each step, "
                  "without a cache",
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
  } else if (!w.facts.sequence.empty()) {
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

// "pad_token_id" when a special id is the offending value. T5 starts with its pad token: then it is that one.
std::string special_name(const ViolationWriter& w) {
  if (const auto pad = w.facts.special_ids.find("pad_token_id");
      pad != w.facts.special_ids.end() && pad->second == w.integer()) {
    return pad->first;
  }
  for (const auto& [name, id] : w.facts.special_ids) {
    if (id == w.integer()) return name;
  }
  return {};
}

bool hugging_face(const ViolationWriter& w) {
  return !w.facts.resizable.empty() || w.facts.library.owner == "transformers";
}

std::optional<std::int64_t> special_with_row(const ViolationWriter& w,
                                             std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = w.facts.special_ids.find(name);
    if (found != w.facts.special_ids.end() && found->second >= 0 && found->second < w.hi()) {
      return found->second;
    }
  }
  return std::nullopt;
}

// The setting that holds the value, and what to put there.
void fix_special(ViolationWriter& w, const std::string& name) {
  if (!hugging_face(w)) {
    w.fix(fmt::format("or, if a row below {} is used by nothing else, give {} that id", w.hi(), name));
    return;
  }
  if (name == "decoder_start_token_id") {
    if (const auto pad = special_with_row(w, {"pad_token_id"})) {
      w.fix(fmt::format("model.config.decoder_start_token_id = {}: the pad token, as T5 starts", *pad));
    }
    if (const auto bos = special_with_row(w, {"bos_token_id", "cls_token_id"})) {
      w.fix(fmt::format("model.config.decoder_start_token_id = {}: the token that begins a text", *bos));
    }
    if (w.finding().fix.empty()) {
      w.fix("model.config.decoder_start_token_id = tokenizer.pad_token_id (T5) or tokenizer.bos_token_id");
    }
    w.fix("the same in model.generation_config.decoder_start_token_id, which generate() reads");
  } else if (name == "pad_token_id") {
    w.fix("or use an id that has a row: tokenizer.pad_token = tokenizer.eos_token");
  } else {
    w.fix(
        fmt::format("or set model.config.{0} to an id below {1}: the tokenizer that the model was trained "
                    "with has its {0}",
                    name, w.hi()));
  }
}

// The tokenizer, or the vocabulary, is no larger than the table: the id is not from it.
bool foreign(const ViolationWriter& w) { return w.facts.counted && w.facts.counted->count <= w.integer(); }

// "look at where `ids` is computed"
std::string look_at_computation(const ViolationWriter& w) { return w.look_at_computation("the ids"); }

// The words of a model of Hugging Face: its table follows the tokenizer, where that is known.
void fix_vocabulary(ViolationWriter& w, const Need& need, bool special) {
  const std::string knob = w.knob(Situation::kIds, need);
  const std::string resize = fmt::format("{}.resize_token_embeddings(len(tokenizer))", w.facts.resizable);
  if (need.exact && knob.empty() && need.of.starts_with("max(")) {  // len() is less, and would not help
    w.fix(fmt::format(
        "the numbers of the vocabulary have a gap, or an entry stands twice in its file: {} is {}; mend it, "
        "or {}.resize_token_embeddings({})",
        need.of, need.count, w.facts.resizable, need.count));
    if (w.finding().layer) w.finding().layer->needed = need.count;
    return;
  }
  if (need.exact) {
    w.fix(knob.empty() ? resize + w.basis(need) : knob);
    if (w.finding().layer) w.finding().layer->needed = need.count;
    return;
  }
  const std::string all =
      knob.empty() ? fmt::format("{}, {}{}", resize, w.how_many(need, "rows"), w.basis(need)) : knob;
  if (special) return w.fix(all);
  if (!w.facts.tokenizes) {  // the program makes its ids itself
    w.fix_sample();
    w.fix(fmt::format("{}: {}", look_at_computation(w), w.outside()));
    if (const std::string more = knob.empty() ? w.resize(need) : knob; !more.empty())
      w.fix(w.if_meant() + more);
    return;
  }
  // No tokenizer is in reach, else its length would be known.
  w.fix(fmt::format("if the program makes ids itself (letters, time steps, codes): {}: {}",
                    look_at_computation(w), w.outside()));
  // Rows that no training has seen are no use to a model that is only used.
  if (!w.facts.no_grad) w.fix(fmt::format("if tokens were added to the tokenizer: {}", all));
  w.fix(
      "if not, and the ids are the tokenizer's: load tokenizer and model from the same checkpoint: "
      "len(tokenizer) must not exceed the table");
}

void fix_table(ViolationWriter& w, bool special) {
  if (foreign(w)) {
    w.finding().summary += fmt::format("; {} is {}, so the id does not come from there", w.facts.counted->of,
                                       w.facts.counted->count);
    w.fix(
        fmt::format("make the ids with the tokenizer or vocabulary of this model: none above {} exists there",
                    w.facts.counted->count - 1));
    return;
  }
  if (is_drawn(w)) return fix_drawn(w);
  const bool own = w.knob(Situation::kIds, w.need()).empty();  // a library knows what its tables are
  // Each table has a column of its own: they are no parts of one.
  const bool columns = w.facts.variable && w.facts.variable->index.size() > w.facts.index.size();
  if (own && !columns && w.facts.siblings && w.integer() < w.facts.siblings->rows) {
    w.fix(
        fmt::format("if the {} tables of this list are parts of one with {} rows, leave out the ids that "
                    "this part does not hold, and count the others from its first: more rows in a part "
                    "would be wrong",
                    w.facts.siblings->count, w.facts.siblings->rows));
  }
  if (w.facts.partner && w.seen_max() < w.facts.partner->places &&
      w.facts.scan.bad * 2 >= w.facts.scan.total && w.facts.scan.total > 1) {
    w.fix(
        fmt::format("`{}` has {} rows, room for all of these ids: see that the sizes of the two tables, or "
                    "their ids, are not mixed up",
                    w.facts.partner->name, w.facts.partner->places));
  }
  const Need need = w.need();
  const bool meant = need.of.empty() && own && !special;
  if (meant && w.write_renumber(fmt::format("{}: {}", look_at_computation(w), w.outside()))) return;
  if (w.facts.setting && !w.is_token_table()) return fix_setting(w);
  if (!w.facts.resizable.empty() && (w.is_token_table() || !special_name(w).empty())) {
    return fix_vocabulary(w, need, special);
  }
  const std::string otherwise =
      need.exact
          ? fmt::format("give the table {0} rows: nn.Embedding({0}, ...){1}", need.count, w.basis(need))
          : fmt::format("give the table {}{}", w.how_many(need, "rows"), w.basis(need));
  if (special) {
    const std::string larger = w.enlarge(Situation::kIds, need);
    return w.fix(larger.empty() ? otherwise : larger);
  }
  if (w.facts.sample && w.facts.sample->by == "function") {  // what the data hold may be right
    const auto& parts = w.facts.computed ? w.facts.computed->parts : std::vector<ComputedFact::Part>();
    const char* of_batch = parts.empty() ? " from what the batch holds" : "";
    w.fix(fmt::format("{}{}: {}", look_at_computation(w), of_batch, w.outside()));
    const bool offsets =
        std::ranges::any_of(parts, [](const auto& part) { return part.first.index.size() == 1; });
    if (w.facts.tensor.shape.size() > 1 && (parts.empty() || offsets)) {
      w.fix(
          "where columns share a table, the offset of a column is the sum of the sizes before it, and 0 for "
          "the first: torch.cat([sizes.new_zeros(1), sizes.cumsum(0)[:-1]])");
    }
    w.fix_size(Situation::kIds, otherwise);
    return;
  }
  if (!w.likely()) {
    w.fix_sample();
    w.fix(fmt::format("{}: {}{}", look_at_computation(w), w.outside(), of_unsigned(w)));
    w.fix_size(Situation::kIds, otherwise);
    return;
  }
  // A library that keeps number 0 for itself counts from 1 by right; its row says so.
  const bool from_one =
      w.maybe_from_one() && w.knob(Situation::kIds, need).find("0 is ") == std::string::npos &&
      (w.facts.library.caller.empty() || w.facts.variable);  // else the library numbers them
  if (from_one && w.all_seen()) w.fix(w.from_one(w.in_code("ids")));
  // All of them, and no batch has them: the program makes them, and a larger table would hide why.
  const bool made = w.facts.source.empty() && !w.facts.sample && w.facts.scan.bad == w.facts.scan.total &&
                    w.knob(Situation::kIds, need).empty();
  const std::string look = fmt::format("{}: {}", look_at_computation(w), w.outside());
  if (made) w.fix(look);
  // A larger table hides a wrong id, and is right where ids are as they are meant: that is said first only
  // where the program has counted them.
  const bool counted = !need.of.empty() || (w.facts.sample && w.facts.sample->by == "rows");
  if (made || counted) {
    w.fix_size(Situation::kIds, otherwise);
    return;
  }
  w.fix_sample();
  w.fix(look);
  const bool open = w.fix_size(Situation::kIds, otherwise);
  if (open && from_one && !w.all_seen()) w.fix(w.from_one(w.in_code("ids")));
}

// The negative ids mean something other than padding: arithmetic that went wrong, said without a guess.
void write_off_range(ViolationWriter& w) {
  const std::string min = w.facts.scan.min ? to_text(*w.facts.scan.min) : w.value();
  const std::string look = look_at_computation(w);
  const std::string max = w.facts.scan.max ? to_text(*w.facts.scan.max) : w.value();
  if (w.both_sides()) {
    w.finding().summary += fmt::format("; {} of {} ids lie on both sides of it, from {} to {}",
                                       w.facts.scan.bad, w.facts.scan.total, min, max);
    w.fix(
        fmt::format("{}: an offset, or the part of the table that is on this rank, is subtracted wrongly or "
                    "not masked",
                    look));
  } else if (w.distinct() > 1) {
    w.fix(fmt::format(
        "negative ids have no row: {} of {} are negative (min {}): {}; several different ones come "
        "from an offset or other arithmetic, not from padding",
        w.facts.scan.bad, w.facts.scan.total, min, look));
  } else {
    w.fix(fmt::format("a negative id has no row: {} of {} {} negative ({}): {}{}", w.facts.scan.bad,
                      w.facts.scan.total, w.facts.scan.bad == 1 ? "is" : "are", min, look, of_signed(w)));
    if (w.one_taken_off()) {
      w.fix(
          "what is 0 there, before 1 is taken off, has no number, as a rule: give it a row of its own, "
          "correct "
          "it, or leave such records out");
    } else if (w.facts.codes && w.integer() == -1) {
      w.fix(w.of_codes() + "; it needs a row of its own: codes + 1, and a table with one row more");
    } else if (is_position_table(w) && w.integer() == -1 && !w.all_bad()) {
      w.fix(
          "positions that are a count of the mask less 1 are -1 where a row is padded on the left: "
          "position_ids.masked_fill(attention_mask == 0, 0)");
    } else if (marks_nothing(w.integer()) && !w.all_bad() && !w.facts.drawn && !w.facts.computed) {
      w.fix(fmt::format(
          "if {} marks what is not to count, use an id that has a row, and leave out what becomes "
          "of those elements",
          w.value()));
    }
  }
  w.fix_sample();
}

void write_negative(ViolationWriter& w) {
  constexpr std::int64_t kLossIgnore = -100;
  const bool one = w.distinct() == 1 && w.only(w.integer()) && !w.both_sides();
  const bool of_tokens = w.is_token_table() || (w.facts.table.empty() && !is_position_table(w));
  if (one && of_tokens && w.integer() == kLossIgnore) {
    w.finding().summary += "; -100 is the ignore label of losses";
    w.fix("if these are labels that were passed by mistake: pass input_ids");
    w.fix(
        "if the ids are made of labels, as a decoder's are: ids = labels.masked_fill(labels == -100, "
        "pad_token_id)");
    return;
  }
  // nn.Embedding makes the last row of padding_idx=-1, which is a word's.
  std::int64_t padding = w.facts.integer("padding_idx").value_or(-1);
  const bool wrapped = padding == w.hi() - 1;
  if (wrapped && hugging_face(w)) {
    w.finding().summary += "; -1 looks like padding, and the model was made with no padding token of its own";
    w.fix(
        "give the model the tokenizer's padding before it is made: config.pad_token_id = "
        "tokenizer.pad_token_id");
    w.fix("and pad with it: tokenizer.pad(...), or ids.masked_fill(ids == -1, tokenizer.pad_token_id)");
    return w.fix_sample();
  }
  if (wrapped) padding = -1;
  const bool at_rest = !w.facts.source.empty();
  const bool own = w.facts.library.owner.empty() && !is_position_table(w);
  const bool pads = own && (at_rest || padding >= 0 || w.is_token_table());
  // Padding stands beside what it pads.
  if (!one || !of_tokens || w.integer() != -1 || !pads || w.all_bad()) return write_off_range(w);
  w.finding().summary +=
      "; -1 may be padding, which needs a row of its own, or what a look-up gives that found nothing";
  const std::string name = w.in_code("ids");
  if (padding >= 0) {
    w.fix(fmt::format(
        "if -1 marks padding, pad with the table's padding_idx: {0} = {0}.masked_fill({0} == -1, {1})", name,
        padding));
  } else {
    w.fix(
        fmt::format("if -1 marks padding, give it a row: {0} = ({0} + 1), with -1 as 0, and "
                    "nn.Embedding({1}, ..., padding_idx=0): all other ids move up by 1",
                    name, next(w.hi())));
  }
  w.fix(fmt::format("if not, {}: an embedding does not count negative ids from the end",
                    look_at_computation(w)));
  w.fix_sample();
}

// The tables of LayoutLM and its relatives.
bool are_coordinates(const ViolationWriter& w) {
  return name_has(w, {"x_pos", "y_pos", "h_pos", "w_pos", "2d"}) ||
         (w.facts.setting && w.facts.setting->name.find("2d") != std::string::npos);
}

// Coordinates: more rows would take what was not scaled, without a word. Steps are what they are.
void fix_values(ViolationWriter& w, std::string setting, std::int64_t needed) {
  const std::string look =
      fmt::format("keep them below {}: look at where {} {} computed", w.hi(),
                  w.facts.variable ? w.users() : "the positions", w.facts.variable ? "is" : "are");
  if (are_coordinates(w)) {
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
  w.fix(look);
  w.fix_sample();
  w.fix(fmt::format(
      "only if they count the steps of what may be so long (an episode, a series), and that is not "
      "cut before: {}, or cut what is longer",
      more));
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
  std::string name = table(w, "position ");
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
  w.finding().summary = fmt::format(
      "{}, but {} has {} rows{}: {}", w.opening(), name, w.facts.position ? w.facts.position->rows : w.hi(),
      offset > 0 ? fmt::format(", the first {} of them for other uses", offset) : std::string(),
      values ? fmt::format("positions go to {}", last + offset - 1)
             : fmt::format("the sequence of {} positions is too long", length));
  const bool one = one_at_a_time(w) || w.facts.grows;
  const std::string limit =
      w.facts.position && !one && !values ? limit_advice(*w.facts.position) : std::string();
  if (!limit.empty()) w.fix(limit);
  // Two or three beyond are tokens that are put around a text: cut off, the text would lose its end.
  constexpr std::int64_t kAround = 3;
  const bool is_text = w.facts.tokenizes || w.facts.text.value_or(false);
  const bool around =
      !one && !values && limit.empty() && length > usable && length - usable <= kAround && is_text;
  if (one) {
    fix_generation(w, usable);
  } else if (!values && !around) {
    fix_length(w, usable);
  }
  std::string setting = w.facts.position ? w.facts.position->setting : std::string();
  const std::string lead =
      around ? fmt::format("{} beyond may be {}, which the limit has to count: ", length - usable,
                           w.facts.tokenizes ? "the tokens that begin and end a text"
                                             : "what is put around each sequence")
             : std::string("or ");
  const auto& generation = w.facts.generation;
  std::int64_t most = length;
  if (generation && generation->wanted && generation->prompt) {
    most = std::max(length, *generation->prompt + *generation->wanted);
  } else if (generation && generation->length) {
    most = std::max(length, *generation->length);
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
    w.fix(fmt::format(
        "{}give the position table a row for each place of the longest sequence, {} at least{} (new "
        "rows have to be trained)",
        lead, most + offset, w.where_made()));
  }
  if (around) fix_length(w, usable);
  // What a decoder is given may be the target, which cannot be read in pieces.
  const bool decodes = w.layer().find("decoder") != std::string::npos;
  if (!values && !one && !around && !decodes && w.facts.text.value_or(true)) {
    w.fix(fmt::format("or, of long texts, split into windows of {} with some overlap", usable));
  }
  w.fix_sample();
}

void diagnose_id(ViolationWriter& w) {
  if (w.hi() == 0) {
    w.finding().summary = fmt::format("{}, but {} is empty: it has 0 rows", w.opening(), table(w, ""));
    w.fix("create the table with its size: nn.Embedding(num_embeddings, dim)");
    w.fix("under FSDP or DeepSpeed, gather the weight before it is used: it has 0 rows while it is sharded");
    return;
  }
  if (w.above() && is_position_table(w)) {
    write_position(w);
    return;
  }
  w.finding().summary =
      fmt::format("{}, but {} has {} rows: valid ids are {}", w.opening(), table(w, ""), w.hi(), w.range());
  if (!w.above()) return write_negative(w);
  if (w.both_sides()) return write_off_range(w);
  if (w.write_namesake()) return;
  const std::string special = special_name(w);
  if (!special.empty()) {
    w.finding().summary += fmt::format("; {} is {}, which has no row", special, w.value());
    if (special != "decoder_start_token_id") fix_table(w, true);
    fix_special(w, special);
  } else {
    w.write_part();
    fix_table(w, false);
  }
  w.fix_sample();
}

}  // namespace trapline::diagnose
