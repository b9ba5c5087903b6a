// Ids of a table: token, category and position embeddings.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "diagnose/markers.hpp"
#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {
namespace {

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
    const bool t5 = std::ranges::any_of(w.facts.library.owners, [](const std::string& owner) {
      return owner.find(".t5.") != std::string::npos || owner.find("T5") != std::string::npos;
    });
    if (const auto pad = special_with_row(w, {"pad_token_id"}); pad && t5) {
      w.fix(fmt::format("model.config.decoder_start_token_id = {}: the pad token, as T5 starts", *pad));
    }
    if (const auto bos = special_with_row(w, {"bos_token_id", "cls_token_id"})) {
      w.fix(fmt::format("model.config.decoder_start_token_id = {}: the token that begins a text", *bos));
    }
    if (w.finding().fix.empty()) {
      w.fix(
          "set model.config.decoder_start_token_id to the id of the token that begins a text in this "
          "vocabulary "
          "(bos, cls; T5 begins with its pad token)");
    }
    w.fix("the same in model.generation_config.decoder_start_token_id, which generate() reads");
  } else if (name == "pad_token_id") {
    w.fix("or use an id that has a row: tokenizer.pad_token = tokenizer.eos_token");
  } else {
    w.fix(
        fmt::format("{}set model.config.{} to an id below {}: the tokenizer that the model was trained with "
                    "has its {}",
                    w.finding().fix.empty() ? "" : "or ", name, w.hi(), name.substr(name.rfind('.') + 1)));
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
  // A few tokens are added; many more are another tokenizer's.
  const std::int64_t added = need.count - w.hi();
  const bool foreign_ids = w.facts.no_grad || (added > std::max<std::int64_t>(8, w.hi() / 8) &&
                                               8 * w.facts.scan.bad > w.facts.scan.total);
  if (need.exact && foreign_ids && !special) {  // rows that no training has seen are no use to it
    w.fix(fmt::format(
        "load tokenizer and model from the same checkpoint: {} is {}, and ids of another tokenizer "
        "mean other words, also where the table has them",
        need.of, need.count));
    return w.fix("only if tokens were added to this very tokenizer, and are trained afterwards: " + resize);
  }
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
    const std::string more = knob.empty() ? w.resize(need) : knob;
    if (!more.empty() && !w.no_size()) w.fix_if_meant(Situation::kIds, need, more);
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
  if (is_drawn(w)) return fix_drawn(w);
  if (write_pairs(w)) return;
  if (foreign(w)) {
    w.finding().summary +=
        fmt::format("; {} is {}: its vocabulary has no such id", w.facts.counted->of, w.facts.counted->count);
    w.fix(fmt::format(
        "{}: none above {} exists there: they were made by another tokenizer or vocabulary than the "
        "model's{}",
        look_at_computation(w), w.facts.counted->count - 1,
        w.all_bad()
            ? ""
            : ", chosen among more columns of scores than it has entries, or put in by a template that "
              "was given numbers"));
    return;
  }
  if (w.made_between()) return w.write_made_between();
  constexpr std::int64_t kMany = 8;
  if (w.all_bad() && w.only(w.integer()) && w.facts.scan.total >= kMany && w.integer() > w.hi() &&
      !w.facts.counted && special_name(w).empty()) {
    w.fix(fmt::format(
        "all {} are {}: look at what fills {} with it (a mask, a start): that has to be the number "
        "that the model was made with",
        w.facts.scan.total, w.value(), w.users()));
    return;
  }
  if (!special && w.are_codes()) {
    w.fix(fmt::format("{}: {}", look_at_computation(w), w.outside()));
    return w.guess(
        "if they are codes as a file or a protocol has them, number those that occur: row = {code: i for i, "
        "code in "
        "enumerate(sorted(set(codes)))}");
  }
  if (!special && (w.write_rest() || w.write_product())) return;
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
  const bool numbered = w.facts.seen && w.facts.seen->kinds == w.hi();  // and have gaps
  if (w.facts.partner && !numbered && !w.is_token_table() && w.seen_max() < w.facts.partner->places &&
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
  if (w.facts.pretrained && need.of.empty()) {
    w.fix_sample();
    return w.fix(
        fmt::format("{}: {}; the rows are vectors that the program has loaded: compare how rows and ids are "
                    "numbered, and how many "
                    "special rows stand before the first vector: where they differ by one all ids read "
                    "another's vector, and a "
                    "row more at the end hides it",
                    look_at_computation(w), w.outside()));
  }
  if (w.facts.sample && w.facts.sample->by == "function") {  // what the data hold may be right
    const auto& parts = w.facts.computed ? w.facts.computed->parts : std::vector<ComputedFact::Part>();
    const char* of_batch = parts.empty() ? " from what the batch holds" : "";
    w.fix(fmt::format("{}{}: {}", look_at_computation(w), of_batch, w.outside()));
    const bool offsets =
        std::ranges::any_of(parts, [](const auto& part) { return part.first.index.size() == 1; });
    const bool cut = w.facts.computed && !w.facts.computed->by.empty();  // by edges: nothing is added
    if (w.facts.tensor.shape.size() > 1 && !cut && (parts.empty() || offsets)) {
      const std::string offset =
          "where columns share a table, the offset of a column is the sum of the sizes before it, and 0 for "
          "the first: torch.cat([sizes.new_zeros(1), sizes.cumsum(0)[:-1]])";
      offsets ? w.fix(offset) : w.guess(offset);
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
  const std::string look = fmt::format("{}: {}{}", look_at_computation(w), w.outside(),
                                       w.wrapped_bits() != 0 ? of_unsigned(w) : "");
  if (made) w.fix(look);
  // A larger table hides a wrong id, and is right where ids are as they are meant: that is said first only
  // where the program has counted them.
  const bool counted = !need.of.empty() || w.of_nan();
  if (made || counted) {
    w.fix_size(Situation::kIds, otherwise);
    return;
  }
  // As many different ones as there are rows, from 1 on.
  if (w.many_beyond() && from_one && !w.all_seen() && w.facts.seen->kinds == w.hi()) {
    w.fix(w.from_one(w.in_code("ids")));
    w.fix_sample();
    w.fix(look);
    return;
  }
  if (w.many_beyond()) {
    w.fix(fmt::format("{}: no single record makes them", w.many_text()));
    w.fix_size(Situation::kIds, otherwise);
    w.fix_sample();
    w.fix(look);
    return;
  }
  w.fix_sample();
  w.fix(look);
  const bool open = w.fix_size(Situation::kIds, otherwise);
  if (open && from_one && !w.all_seen()) w.fix(w.from_one(w.in_code("ids")));
}

// Not at the end of its row, as padding is, nor at its beginning.
bool stands_inside(const ViolationWriter& w) {
  const auto& shape = w.facts.tensor.shape;
  if (shape.size() < 2 || w.facts.scan.first < 0 || shape.back() < 2) return false;
  const std::int64_t at = w.facts.scan.first % shape.back();
  return at > 0 && w.facts.scan.bad < shape.back() - at;
}

// As padding does.
bool ends_row(const ViolationWriter& w) { return w.facts.tensor.shape.size() > 1 && !stands_inside(w); }

// The negative ids mean something other than padding: arithmetic that went wrong, said without a guess.
void write_off_range(ViolationWriter& w) {
  const std::string min = w.facts.scan.min ? to_text(*w.facts.scan.min) : w.value();
  const std::string look = look_at_computation(w);
  const std::string max = w.facts.scan.max ? to_text(*w.facts.scan.max) : w.value();
  if (w.both_sides()) {
    w.finding().summary += fmt::format("; {} of {} ids lie on both sides of it, from {} to {}",
                                       w.facts.scan.bad, w.facts.scan.total, min, max);
    const std::int64_t below = std::get<std::int64_t>(*w.facts.scan.min);
    const std::int64_t beyond = std::get<std::int64_t>(*w.facts.scan.max) - w.hi() + 1;
    const std::int64_t reach = (w.hi() + 1) / 2;  // distances from -(n - 1) to n - 1
    const bool distances = below == -beyond && w.hi() % 2 == 1 && w.facts.tensor.shape.size() > 1;
    w.fix(distances
              ? fmt::format("{}: they go as far below as above: where they are distances between places, the "
                            "table has room for sequences of {}, and this one has {}",
                            look, reach, reach + beyond)
              : fmt::format("{}: numbers on both sides come of arithmetic, as a rule (an offset, or the part "
                            "of the table that is on this rank, that is subtracted and not masked)",
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
      w.fix(
          w.of_codes() +
          (w.facts.codes->edges
               ? ": a value beyond the edges, or on the lowest one, is in no bin: pd.cut(..., "
                 "include_lowest=True), edges that go from -inf to inf"
               : ": see what it is there; only what is really missing gets a row of its own (codes + 1, and "
                 "a table with one row more)"));
    } else if (is_position_table(w) && w.integer() == -1 && !w.all_bad()) {
      w.fix(
          "positions that are a count of the mask less 1 are -1 where a row is padded on the left: "
          "position_ids.masked_fill(attention_mask == 0, 0)");
    } else if (w.answers_nothing()) {
      w.fix(fmt::format(
          "{} gives it for what it does not find: see first what is done with it from there (a list has "
          "a last element for -1); then it is corrected, left out, or gets a row of its own",
          w.written_at()));
    } else if (w.is_filling()) {
      w.fix(w.look_at_filling());
    } else if (w.integer() == -1 && stands_inside(w) && !w.facts.computed) {
      w.fix(
          "if a look-up gives it for what it does not find (str.find, .get(key, -1)), correct that, or add "
          "it to "
          "the list");
    } else if (marks_nothing(w.integer()) && !w.all_bad() && !w.facts.drawn && !w.facts.computed &&
               !w.rounds_down()) {
      w.fix(
          fmt::format("see what {} stands for: something of its own (none yet, unknown) gets {}; what is not "
                      "to count is looked "
                      "up as another id, and left out of what becomes of it",
                      w.value(),
                      w.integer() == -1 ? "a row of its own, all ids + 1 and one row more"
                                        : "an id and a row of its own"));
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
  if (one && w.answers_nothing() && !w.all_bad() && !ends_row(w)) return w.write_not_found();
  w.write_floored();
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
  if (!one || !of_tokens || w.integer() != -1 || !pads || w.all_bad() || stands_inside(w))
    return write_off_range(w);
  w.finding().summary +=
      "; -1 may be padding, which needs a row of its own, or what a look-up gives that found nothing";
  if (w.is_filling()) w.fix(w.look_at_filling());
  const std::string name = w.in_code("ids");
  if (padding >= 0) {
    w.fix(fmt::format(
        "if -1 marks padding, pad with the table's padding_idx: {0} = {0}.masked_fill({0} == -1, {1})", name,
        padding));
  } else {
    w.fix(fmt::format(
        "if -1 marks padding: mask = {0} == -1; look {0}.masked_fill(mask, 0) up, and leave out what "
        "comes back there (a row of its own moves all other ids up by 1, wherever the table is "
        "called)",
        name));
  }
  w.fix(fmt::format("if not, {}: an embedding does not count negative ids from the end",
                    look_at_computation(w)));
  w.fix_sample();
}

}  // namespace

void diagnose_id(ViolationWriter& w) {
  if (w.hi() == 0) {
    w.finding().summary = fmt::format("{}, but {} is empty: it has 0 rows", w.opening(), table_text(w, ""));
    w.fix("create the table with its size: nn.Embedding(num_embeddings, dim)");
    w.fix("under FSDP or DeepSpeed, gather the weight before it is used: it has 0 rows while it is sharded");
    return;
  }
  if (w.above() && is_position_table(w)) {
    write_position(w);
    return;
  }
  w.finding().summary = fmt::format("{}, but {} has {} rows: valid ids are {}", w.opening(),
                                    table_text(w, ""), w.hi(), w.range());
  if (w.write_narrow()) return;
  if (!w.above()) return write_negative(w);
  if (w.both_sides()) return write_off_range(w);
  if (w.facts.filled && w.only(w.hi())) return write_filled(w);
  if (w.write_calendar() || w.write_end() || w.write_namesake() || w.write_other_head()) return;
  const std::string special = special_name(w);
  if (special.empty() && w.write_own_number()) return;
  if (!special.empty()) {
    w.finding().summary += fmt::format("; {} is {}, which has no row", special, w.value());
    // So far beyond it is the default of another vocabulary: no row is wanted for it.
    constexpr std::int64_t kTimes = 16;
    if (special != "decoder_start_token_id" && w.integer() / kTimes < w.hi()) fix_table(w, true);
    fix_special(w, special);
  } else {
    w.write_part();
    fix_table(w, false);
  }
  w.fix_sample();
}

}  // namespace trapline::diagnose
