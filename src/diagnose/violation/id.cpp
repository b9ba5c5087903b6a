// Ids of a table: token, category and position embeddings.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "diagnose/violation/writer.hpp"

namespace trapline {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

bool name_has(const Case& c, std::initializer_list<std::string_view> words) {
  if (!c.facts.layer) return false;
  const std::string name = lower(c.facts.layer->name);
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

bool is_position_table(const Case& c) {
  if (!c.facts.table.empty()) return c.facts.table == "position";
  return name_has(c, {"position", "wpe", "pos_emb", "embed_pos", "posemb", "pos."});
}

std::string table(const Case& c, std::string_view kind) {
  return c.layer().empty() ? fmt::format("the {}table", kind)
                           : fmt::format("the {}table {}", kind, c.layer());
}

// Positions arrive one at a time, [4, 1]: a loop that generates.
bool one_at_a_time(const Case& c) {
  return c.facts.generation || (c.facts.tensor.shape.size() >= 2 && c.facts.tensor.shape.back() == 1);
}

void fix_generation(const Case& c, std::int64_t usable) {
  const std::optional<std::int64_t> prompt =
      c.facts.generation ? c.facts.generation->prompt : std::optional<std::int64_t>();
  if (prompt && *prompt < usable) {
    const std::string instead = c.facts.generation->wanted
                                    ? fmt::format(" instead of {}", *c.facts.generation->wanted)
                                    : std::string();
    c.fix(
        fmt::format("max_new_tokens={0}{1}: at most {2} - {3}, for {2} positions and a prompt of {3} tokens",
                    usable - *prompt, instead, usable, *prompt));
  } else {
    c.fix(fmt::format("generate fewer tokens: prompt and new tokens together may be {}", usable));
  }
  if (c.facts.generation) return;  // the loop is not the user's
  c.fix(
      fmt::format("or go on with the last part only: ids = ids[:, -{}:] in each step, without a cache of the "
                  "positions before it",
                  usable / 2));
}

void fix_length(const Case& c, std::int64_t usable) {
  const std::string knob = c.knob(Situation::kPositions);
  const bool text = c.facts.text.value_or(true);
  if (!knob.empty() && (text || c.facts.library.owner != "transformers")) {
    c.fix(knob);
  } else if (!text) {
    c.fix(fmt::format("feed sequences of at most {}", usable));
  } else if (!c.facts.sequence.empty()) {
    c.fix(fmt::format("truncate to {0}: {1} = {1}[:, :{0}], where the batch is made", usable,
                      c.facts.sequence));
  } else {
    c.fix(fmt::format("truncate to {} where the batch is made", usable));
  }
  if (c.facts.virtual_tokens > 0) {
    c.fix(fmt::format("{} positions are left for a text: {} virtual tokens of the prompt come before it",
                      usable, c.facts.virtual_tokens));
  }
}

// Values beyond the table that do not count up from the beginning: time steps, coordinates.
bool are_values(const Case& c, std::int64_t offset) {
  constexpr std::int64_t kRowsBefore = 2;  // of BART and its relatives, where the offset is not known
  return c.facts.counts_from && *c.facts.counts_from > offset + kRowsBefore && !one_at_a_time(c);
}

// "config.type_vocab_size=1 made this table".
void fix_setting(const Case& c) {
  const SettingFact& setting = *c.facts.setting;
  const Need need = c.need();
  c.fix(fmt::format("config.{}={} made this table: make the model with {}{}, or keep {} below {}",
                    setting.name, setting.value, need.text(), c.basis(need), c.users(), c.hi()));
  if (setting.name == "type_vocab_size" && setting.value == 1) {
    c.fix("or pass no token_type_ids: this model has one segment only");
  }
}

// "pad_token_id" when a special id is the offending value. T5 starts with its pad token: then it is that one.
std::string special_name(const Case& c) {
  if (const auto pad = c.facts.special_ids.find("pad_token_id");
      pad != c.facts.special_ids.end() && pad->second == c.integer()) {
    return pad->first;
  }
  for (const auto& [name, id] : c.facts.special_ids) {
    if (id == c.integer()) return name;
  }
  return {};
}

bool hugging_face(const Case& c) {
  return !c.facts.resizable.empty() || c.facts.library.owner == "transformers";
}

std::optional<std::int64_t> special_with_row(const Case& c, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = c.facts.special_ids.find(name);
    if (found != c.facts.special_ids.end() && found->second >= 0 && found->second < c.hi()) {
      return found->second;
    }
  }
  return std::nullopt;
}

// The setting that holds the value, and what to put there.
void fix_special(const Case& c, const std::string& name) {
  if (!hugging_face(c)) {
    c.fix(fmt::format("or, if a row below {} is used by nothing else, give {} that id", c.hi(), name));
    return;
  }
  if (name == "decoder_start_token_id") {
    if (const auto pad = special_with_row(c, {"pad_token_id"})) {
      c.fix(fmt::format("model.config.decoder_start_token_id = {}: the pad token, as T5 starts", *pad));
    }
    if (const auto bos = special_with_row(c, {"bos_token_id", "cls_token_id"})) {
      c.fix(fmt::format("model.config.decoder_start_token_id = {}: the token that begins a text", *bos));
    }
    if (c.finding.fix.empty()) {
      c.fix("model.config.decoder_start_token_id = tokenizer.pad_token_id (T5) or tokenizer.bos_token_id");
    }
    c.fix("the same in model.generation_config.decoder_start_token_id, which generate() reads");
  } else if (name == "pad_token_id") {
    c.fix("or use an id that has a row: tokenizer.pad_token = tokenizer.eos_token");
  } else {
    c.fix(
        fmt::format("or set model.config.{0} to an id below {1}: the tokenizer that the model was trained "
                    "with has its {0}",
                    name, c.hi()));
  }
}

// The tokenizer, or the vocabulary, is no larger than the table: the id is not from it.
bool foreign(const Case& c) { return c.facts.counted && c.facts.counted->count <= c.integer(); }

// "look at where `ids` is computed"
std::string look_at_computation(const Case& c) {
  return fmt::format("look at where {} {} computed", c.users(), c.facts.variable ? "is" : "are");
}

// The words of a model of Hugging Face: its table follows the tokenizer, where that is known.
void fix_vocabulary(const Case& c, const Need& need, bool special) {
  const std::string knob = c.knob(Situation::kIds, need);
  const std::string resize = fmt::format("{}.resize_token_embeddings(len(tokenizer))", c.facts.resizable);
  if (need.exact) {
    c.fix(knob.empty() ? resize + c.basis(need) : knob);
    if (c.finding.layer) c.finding.layer->needed = need.count;
    return;
  }
  const std::string all =
      knob.empty() ? fmt::format("{}, {} rows{}", resize, need.text(), c.basis(need)) : knob;
  if (special) return c.fix(all);
  c.fix(fmt::format("if tokens were added to the tokenizer: {}", all));
  c.fix(
      "if not, load tokenizer and model from the same checkpoint: len(tokenizer) must not exceed the table");
}

// 255 alone, far above the others.
std::string of_uint8(const Case& c) {
  constexpr std::int64_t kMost = 255;
  return c.only(kMost) ? "; 255 is also what -1 becomes in uint8, and a usual fill value" : "";
}

// A special token that has no row: it is meant to have one, or to be another.
void fix_table(const Case& c, bool special) {
  if (foreign(c)) {
    c.finding.summary += fmt::format("; {} is {}, so the id does not come from there", c.facts.counted->of,
                                     c.facts.counted->count);
    c.fix(
        fmt::format("make the ids with the tokenizer or vocabulary of this model: none above {} exists there",
                    c.facts.counted->count - 1));
    return;
  }
  const Need need = c.need();
  if (c.facts.setting && !c.is_token_table()) return fix_setting(c);
  if (!c.facts.resizable.empty() && (c.is_token_table() || !special_name(c).empty())) {
    return fix_vocabulary(c, need, special);
  }
  const std::string otherwise =
      need.exact
          ? fmt::format("give the table {0} rows: nn.Embedding({0}, ...){1}", need.count, c.basis(need))
          : fmt::format("give the table {} rows{}{}", need.text(), c.basis(need), c.how_to_count());
  if (special) {
    const std::string larger = c.enlarge(Situation::kIds, need);
    return c.fix(larger.empty() ? otherwise : larger);
  }
  if (!c.likely()) {
    c.fix_sample();
    c.fix(fmt::format("{}: {}{}", look_at_computation(c), c.outside(), of_uint8(c)));
    c.fix_size(Situation::kIds, otherwise);
    return;
  }
  if (c.maybe_from_one() && c.all_seen()) c.fix(c.from_one(c.in_code("ids")));
  if (!c.fix_size(Situation::kIds, otherwise)) return;
  if (c.maybe_from_one() && !c.all_seen()) c.fix(c.from_one(c.in_code("ids")));
  c.fix(fmt::format("if not, {}: {}", look_at_computation(c), c.outside()));
}

// The negative ids mean something other than padding: arithmetic that went wrong, said without a guess.
void write_off_range(const Case& c) {
  const std::string min = c.facts.scan.min ? to_text(*c.facts.scan.min) : c.value();
  const std::string look = look_at_computation(c);
  const std::string max = c.facts.scan.max ? to_text(*c.facts.scan.max) : c.value();
  if (c.both_sides()) {
    c.finding.summary += fmt::format("; {} of {} ids lie on both sides of it, from {} to {}",
                                     c.facts.scan.bad, c.facts.scan.total, min, max);
    c.fix(
        fmt::format("{}: an offset, or the part of the table that is on this rank, is subtracted wrongly or "
                    "not masked",
                    look));
  } else if (c.distinct() > 1) {
    c.fix(fmt::format(
        "negative ids have no row: {} of {} are negative (min {}): {}; several different ones come "
        "from an offset or other arithmetic, not from padding",
        c.facts.scan.bad, c.facts.scan.total, min, look));
  } else {
    c.fix(fmt::format("a negative id has no row: {} of {} {} negative ({}): {}", c.facts.scan.bad,
                      c.facts.scan.total, c.facts.scan.bad == 1 ? "is" : "are", min, look));
    c.fix(
        fmt::format("if {} marks what is not to count, use an id that has a row, and leave out what becomes "
                    "of those elements",
                    c.value()));
  }
  c.fix_sample();
}

void write_negative(const Case& c) {
  constexpr std::int64_t kLossIgnore = -100;
  const bool one = c.distinct() == 1 && c.only(c.integer()) && !c.both_sides();
  const bool of_tokens = c.is_token_table() || (c.facts.table.empty() && !is_position_table(c));
  if (one && of_tokens && c.integer() == kLossIgnore) {
    c.finding.summary += "; -100 is the ignore label of losses";
    c.fix("if these are labels that were passed by mistake: pass input_ids");
    c.fix(
        "if the ids are made of labels, as a decoder's are: ids = labels.masked_fill(labels == -100, "
        "pad_token_id)");
    return;
  }
  // nn.Embedding makes the last row of padding_idx=-1, which is a word's.
  std::int64_t padding = c.facts.integer("padding_idx").value_or(-1);
  const bool wrapped = padding == c.hi() - 1;
  if (wrapped && hugging_face(c)) {
    c.finding.summary += "; -1 looks like padding, and the model was made with no padding token of its own";
    c.fix(
        "give the model the tokenizer's padding before it is made: config.pad_token_id = "
        "tokenizer.pad_token_id");
    c.fix("and pad with it: tokenizer.pad(...), or ids.masked_fill(ids == -1, tokenizer.pad_token_id)");
    return c.fix_sample();
  }
  if (wrapped) padding = -1;
  const bool at_rest = !c.facts.source.empty();
  const bool own = c.facts.library.owner.empty() && !is_position_table(c);
  if (!one || !of_tokens || c.integer() != -1 || !own || !(at_rest || padding >= 0 || c.is_token_table())) {
    return write_off_range(c);
  }
  c.finding.summary += "; -1 looks like padding, which needs a row of its own";
  const std::string name = c.in_code("ids");
  if (padding >= 0) {
    c.fix(fmt::format(
        "if -1 marks padding, pad with the table's padding_idx: {0} = {0}.masked_fill({0} == -1, {1})", name,
        padding));
  } else {
    c.fix(
        fmt::format("if -1 marks padding, give it a row: {0} = ({0} + 1), with -1 as 0, and "
                    "nn.Embedding({1}, ..., padding_idx=0): all other ids move up by 1",
                    name, next(c.hi())));
  }
  c.fix(fmt::format("if not, {}: an embedding does not count negative ids from the end",
                    look_at_computation(c)));
  c.fix_sample();
}

}  // namespace

void write_position(const Case& c) {
  const std::int64_t usable = c.usable();
  const std::int64_t offset = c.facts.position ? c.facts.position->offset : 0;
  // Of this call alone: positions of other sequences tell nothing about this one.
  const bool known = c.facts.scan.max && is_integer(*c.facts.scan.max);
  const std::int64_t last =
      next(known ? std::max(c.integer(), std::get<std::int64_t>(*c.facts.scan.max)) : c.integer()) - offset;
  const std::int64_t length =
      c.facts.position && c.facts.position->length ? std::max(*c.facts.position->length, last) : last;
  c.finding.cause = Cause::kPositionIndexOutOfRange;
  c.finding.also = {c.facts.contract->cause};
  std::string name = table(c, "position ");
  if (c.layer().empty() && c.facts.position && !c.facts.position->name.empty()) {
    name = fmt::format("the position table `{}`", c.facts.position->name);
  }
  const bool values = are_values(c, offset);
  c.finding.summary = fmt::format(
      "{}, but {} has {} rows{}: {}", c.opening(), name, c.facts.position ? c.facts.position->rows : c.hi(),
      offset > 0 ? fmt::format(", the first {} of them for other uses", offset) : std::string(),
      values ? fmt::format("positions go to {}", last + offset - 1)
             : fmt::format("the sequence of {} positions is too long", length));
  const bool one = one_at_a_time(c) || c.facts.grows;
  if (one) {
    fix_generation(c, usable);
  } else if (!values) {
    fix_length(c, usable);
  }
  std::string setting = c.facts.position ? c.facts.position->setting : std::string();
  const bool counted = c.facts.generation && c.facts.generation->prompt && c.facts.generation->wanted;
  const std::int64_t most =
      counted ? std::max(length, *c.facts.generation->prompt + *c.facts.generation->wanted) : length;
  if (values) {
    c.fix(fmt::format("keep them below {}: look at where {} {} computed", c.hi(),
                      c.facts.variable ? c.users() : "the positions", c.facts.variable ? "is" : "are"));
  }
  if (!setting.empty()) {
    c.fix(
        fmt::format("or give the model more positions where it is made, {}={} at least (new rows have to be "
                    "trained)",
                    setting, most + offset - (c.facts.position->rows - c.facts.position->value)));
  } else if (c.facts.setting) {
    c.fix(
        fmt::format("or give the model more positions where it is made: config.{}={} made this table, {} at "
                    "least (new rows have to be trained)",
                    c.facts.setting->name, c.facts.setting->value, most + offset));
  } else {
    c.fix(fmt::format("or give the position table at least {} rows (new rows have to be trained)",
                      most + offset));
  }
  if (!values && !one && c.facts.text.value_or(true)) {
    c.fix(fmt::format("or split long inputs into windows of {} with some overlap", usable));
  }
  c.fix_sample();
}

void diagnose_id(const Case& c) {
  if (c.hi() == 0) {
    c.finding.summary = fmt::format("{}, but {} is empty: it has 0 rows", c.opening(), table(c, ""));
    c.fix("create the table with its size: nn.Embedding(num_embeddings, dim)");
    c.fix("under FSDP or DeepSpeed, gather the weight before it is used: it has 0 rows while it is sharded");
    return;
  }
  if (c.above() && is_position_table(c)) {
    write_position(c);
    return;
  }
  c.finding.summary =
      fmt::format("{}, but {} has {} rows: valid ids are {}", c.opening(), table(c, ""), c.hi(), c.range());
  if (!c.above()) return write_negative(c);
  if (c.both_sides()) return write_off_range(c);
  const std::string special = special_name(c);
  if (!special.empty()) {
    c.finding.summary += fmt::format("; {} is {}, which has no row", special, c.value());
    if (special != "decoder_start_token_id") fix_table(c, true);
    fix_special(c, special);
  } else {
    c.write_part();
    fix_table(c, false);
  }
  c.fix_sample();
}

}  // namespace trapline
