// Text beyond the position table: models that keep buffers as long as the table fail at the buffer, with an
// error about its size. What the message lacks, the facts have: the table, and the length of the text.
#include <fmt/format.h>

#include "diagnose/host/case.hpp"
#include "diagnose/host/rows.hpp"

namespace trapline::diagnose {
namespace {

constexpr auto kPosition = Cause::kPositionIndexOutOfRange;

// The sizes of the message are those of the text and of the table.
bool beyond_table(const HostCase& c) {
  if (!c.position()) return false;
  const PositionFact& table = *c.position();
  const std::int64_t a = c.number(1), b = c.number(2), length = table.length.value_or(0);
  const std::int64_t text = std::max(a, b), buffer = std::min(a, b);
  return length > table.usable() && text == length && (buffer == table.rows || buffer == table.usable());
}

void write(const HostCase& c, Finding& f, const PositionFact& table) {
  const std::string name =
      table.name.empty() ? "the position table" : fmt::format("the position table `{}`", table.name);
  const std::int64_t length = table.length.value_or(0);
  f.also = {Cause::kShapeMismatch};
  f.summary = fmt::format("the text has {} tokens, but {} has {} rows{}", length, name, table.usable(),
                          table.setting.empty() ? "" : fmt::format(" ({}={})", table.setting, table.rows));
  if (table.offset > 0) {
    f.summary = fmt::format("the text has {} tokens, but {} has {} rows{}, of which {} are for positions",
                            length, name, table.rows,
                            table.setting.empty() ? "" : fmt::format(" ({})", table.setting), table.usable());
  }
  f.layer = Layer{table.name, "Embedding", "num_embeddings", table.rows, std::nullopt, {}};
  if (table.name.empty() || table.parameter) f.layer.reset();
  const std::string rows = std::to_string(table.usable());
  const std::string knob = knob_advice(Situation::kPositions, c.library(), {"N", "", rows});
  if (const std::string limit = limit_advice(table); !limit.empty()) f.fix.push_back(limit);
  f.fix.push_back(knob.empty()
                      ? fmt::format("truncate the text to {0} tokens where the batch is made: tokenizer(..., "
                                    "truncation=True, max_length={0}), or ids[:, :{0}]",
                                    rows)
                      : knob);
  f.fix.push_back(fmt::format("or split long texts into windows of {} tokens with some overlap", rows));
  if (table.limit_is_beyond()) return;
  f.fix.push_back(fmt::format("or make the model with {} {} at least (the new rows have to be trained)",
                              table.setting.empty() ? "a position table of" : table.setting + " of",
                              length + table.offset - (table.rows - table.value)));
}

void beyond(const HostCase& c, Finding& f) { write(c, f, *c.position()); }

// CLIP and its relatives look themselves, by the configuration's word.
void stated_by(const HostCase& c, Finding& f, const char* setting) {
  PositionFact table = c.position().value_or(PositionFact{});
  table.rows = table.value = c.number(2);
  table.offset = 0;
  table.length = c.number(1);
  table.setting = setting;
  write(c, f, table);
}

void stated(const HostCase& c, Finding& f) { stated_by(c, f, "max_position_embeddings"); }

void stated_as_block_size(const HostCase& c, Finding& f) { stated_by(c, f, "block_size"); }

void stated_as_max_seq_len(const HostCase& c, Finding& f) { stated_by(c, f, "max_seq_len"); }

}  // namespace

std::span<const HostErrorRow> position_rows() {
  static const auto* const rows = new std::vector<HostErrorRow>{
      {"positions.sizes",
       "RuntimeError",
       R"(The (?:expanded size of the tensor|size of tensor a) \((\d+)\) must match the (?:existing size|size of tensor b) \((\d+)\) at non-singleton dimension \d+)",
       "at non-singleton dimension",
       kPosition,
       "",
       "input_ids",
       beyond,
       {"The expanded size of the tensor (80) must match the existing size (64) at non-singleton dimension "
        "1.  "
        "Target sizes: [8, 80].  Tensor sizes: [1, 64]",
        "The size of tensor a (80) must match the size of tensor b (64) at non-singleton dimension 1"},
       beyond_table},
      {"positions.stated",
       "ValueError",
       R"(Sequence length must be less than max_position_embeddings \(got `sequence length`: (\d+) and max_position_embeddings: (\d+))",
       "Sequence length must be less than max_position_embeddings",
       kPosition,
       "",
       "input_ids",
       stated,
       {"Sequence length must be less than max_position_embeddings (got `sequence length`: 80 and "
        "max_position_embeddings: 64"}},
      // nanoGPT and minGPT, model.py, GPT.forward
      {"positions.nanogpt",
       "AssertionError",
       R"(Cannot forward sequence of length (\d+), block size is only (\d+))",
       "Cannot forward sequence of length",
       kPosition,
       "",
       "idx",
       stated_as_block_size,
       {"Cannot forward sequence of length 300, block size is only 256"}},
      // x_transformers/x_transformers.py, AbsolutePositionalEmbedding.forward
      {"positions.x_transformers",
       "AssertionError",
       R"(you are passing in a sequence length of (\d+) but your absolute positional embedding has a max sequence length of (\d+))",
       "absolute positional embedding has a max sequence length of",
       kPosition,
       "",
       "x",
       stated_as_max_seq_len,
       {"you are passing in a sequence length of 150 but your absolute positional embedding has a max "
        "sequence "
        "length of 128"}},
  };
  return *rows;
}

}  // namespace trapline::diagnose
