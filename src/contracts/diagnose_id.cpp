// Ids of a table: token, category and position embeddings.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "contracts/case.hpp"

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

bool is_token_table(const Case& c) {
  return c.facts.table == "token" || name_has(c, {"wte", "token", "tok_", "word", "vocab"});
}

std::string table(const Case& c, std::string_view kind) {
  return c.layer().empty() ? fmt::format("the {}table", kind)
                           : fmt::format("the {}table {}", kind, c.layer());
}

void write_position(const Case& c) {
  const std::int64_t needed = c.needed();
  c.finding.cause = Cause::kPositionIndexOutOfRange;
  c.finding.also = {Cause::kEmbeddingIndexOutOfRange};
  c.finding.summary = fmt::format("{}, but {} has {} rows: the sequence of {} positions is too long",
                                  c.opening(), table(c, "position "), c.hi(), needed);
  c.fix(fmt::format(
      "truncate to max_length={0}: tokenizer(..., truncation=True, max_length={0}), or ids = ids[:, :{0}]",
      c.hi()));
  const std::string resize = c.resize(needed);
  c.fix(resize.empty()
            ? fmt::format("or give the position table {} rows (new rows have to be trained)", needed)
            : fmt::format("or {} (new rows have to be trained)", resize));
  c.fix(fmt::format("or split long inputs into windows of {} with some overlap", c.hi()));
  c.fix_sample();
}

// "pad_token_id" when a special id is the offending value.
std::string special_name(const Case& c) {
  for (const auto& [name, id] : c.facts.special_ids) {
    if (id == c.integer()) return name;
  }
  return {};
}

void fix_table(const Case& c, std::int64_t needed) {
  const std::string resize = c.resize(needed);
  const bool tokens = is_token_table(c) || !special_name(c).empty();
  if (tokens && !c.facts.resizable.empty()) {
    c.fix(fmt::format("{}.resize_token_embeddings(len(tokenizer))", c.facts.resizable));
  }
  if (!resize.empty()) {
    c.fix(resize);
  } else {
    c.fix(fmt::format("give the table {} rows: nn.Embedding({}, ...)", needed, needed));
  }
  if (is_token_table(c) && c.facts.resizable.empty()) {
    c.fix("or, with a Hugging Face model: model.resize_token_embeddings(len(tokenizer))");
  }
}

void write_negative(const Case& c) {
  constexpr std::int64_t kLossIgnore = -100;
  if (c.integer() == kLossIgnore) {
    c.finding.summary += "; -100 is the ignore label of losses: labels were passed where ids belong";
    c.fix("pass input_ids, not labels, to the model");
    c.fix("or, when labels are the ids: ids = labels.masked_fill(labels == -100, pad_token_id)");
    return;
  }
  if (c.integer() == -1) c.finding.summary += "; -1 looks like padding, which needs a row of its own";
  c.fix(fmt::format(
      "give padding a row: ids = ids.masked_fill(ids < 0, 0) with nn.Embedding({}, ..., padding_idx=0) "
      "and all other ids moved up by 1",
      next(c.hi())));
  c.fix("an embedding does not count negative ids from the end; correct them in the data set");
  c.fix_sample();
}

}  // namespace

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
  if (!c.above()) {
    write_negative(c);
    return;
  }
  const std::int64_t needed = c.needed();
  const std::string special = special_name(c);
  if (!special.empty()) {
    c.finding.summary += fmt::format("; {} is {}, which has no row", special, c.value());
    fix_table(c, needed);
    c.fix(fmt::format("or use an id that has a row: tokenizer.pad_token = tokenizer.eos_token"));
  } else {
    fix_table(c, needed);
    if (is_token_table(c)) {
      c.fix("load tokenizer and model from the same checkpoint: len(tokenizer) must not exceed the table");
    } else {
      c.fix(fmt::format(
          "or map ids that were not known at training time to a row of their own: {} of {} ids are "
          "outside {}",
          c.facts.scan.bad, c.facts.scan.total, c.range()));
    }
    if (c.integer() == c.hi()) c.fix(fmt::format("if ids are counted from 1 (1..{}): ids = ids - 1", c.hi()));
  }
  c.fix_sample();
}

}  // namespace trapline
