// The words: for each hint the exact summary and the first fix. Those about labels are in test_label.cpp.
#include <gtest/gtest.h>

#include <limits>

#include "violation_facts.hpp"

namespace trapline::diagnose {
namespace {

// Padding stands beside what it pads.
TEST(DiagnoseIndex, AnIndexOfWhichAllIsTheSameIsNotPadding) {
  const ViolationFacts facts = ViolationFacts("gather.index", -1, 3).below().scan("bad", 32).scan("max", -1);
  const Finding finding = diagnose(facts);
  ASSERT_FALSE(finding.fix.empty());
  EXPECT_EQ(
      finding.fix.front(),
      "look at where the index is computed: all 32 are -1: a search that found nothing, or numbers that are "
      "NaN");
  for (const std::string& fix : finding.fix) EXPECT_EQ(fix.find("padding"), std::string::npos) << fix;
}

TEST(DiagnoseNan, TheCastIsTheOrigin) {
  ViolationFacts facts = ViolationFacts("embedding.indices", "-9223372036854775808", 10)
                             .below()
                             .with("origin", {{"file", "/p/train.py"}, {"line", 80}})
                             .with("nan_cast", {{"bad", 1},
                                                {"frame",
                                                 {{"file", "/p/train.py"},
                                                  {"line", 31},
                                                  {"function", "age_group"},
                                                  {"code", "    return (age / 10).long()"}}}});
  expect(facts, Cause::kNanToIndex,
         "embedding: input[3] is -9223372036854775808: NaN or Inf was cast to an integer in `age_group` "
         "(train.py:31)",
         "NaN goes into the cast in `return (age / 10).long()`: 0/0, the log or root "
         "of a negative number, a value that .map() or a merge has no entry for, or beyond the edges of "
         "pd.cut(), or one that is missing in the "
         "data");
  const Finding finding = diagnose(facts);
  EXPECT_EQ(finding.origin->line, 31);
  EXPECT_EQ(finding.surfaced->line, 80);
  facts.object.erase("nan_cast");
  EXPECT_EQ(diagnose(facts).cause, Cause::kNanToIndex);
  EXPECT_EQ(diagnose(facts).origin->line, 80);
}

TEST(DiagnoseNan, ALabelIsNotMadeUp) {
  const Finding finding =
      diagnose(ViolationFacts("nll_loss_forward.target", "-9223372036854775808", 10).below());
  EXPECT_EQ(finding.cause, Cause::kNanToIndex);
  EXPECT_EQ(finding.fix[0],
            "find the cast (.long(), .int(), .to(torch.int64), .astype(int)) that makes `target`: NaN or Inf "
            "goes into it, "
            "of 0/0 or log(0); or a missing label: see why it has none, and leave out what really has none, "
            "before");
  EXPECT_EQ(finding.fix[1],
            "only where a record that really has no label is to stay: labels = torch.nan_to_num(labels, "
            "nan=-100) before the cast, which the loss leaves out");
  for (const std::string& line : finding.fix) {
    EXPECT_EQ(line.find("category"), std::string::npos) << line;
    EXPECT_EQ(line.find("fill"), std::string::npos) << line;
  }
}

TEST(DiagnoseNan, ACastThatWasComputedWith) {
  const auto cause = [](const char* value) {
    return diagnose(ViolationFacts("embedding.indices", value, 10).below()).cause;
  };
  EXPECT_EQ(cause("-9223372036854775800"), Cause::kNanToIndex) << "row * 8 + column";
  EXPECT_EQ(cause("-2147483640"), Cause::kNanToIndex);
  EXPECT_EQ(cause("-9223371036854775800"), Cause::kEmbeddingIndexOutOfRange) << "garbage";
  EXPECT_EQ(cause("-2000000000"), Cause::kEmbeddingIndexOutOfRange);
  EXPECT_EQ(cause("-2147483649"), Cause::kEmbeddingIndexOutOfRange);
  EXPECT_EQ(diagnose(ViolationFacts("embedding.indices", "-9223372036854775800", 10).below()).summary,
            "embedding: input[3] is -9223372036854775800, which is what a cast to an integer makes of NaN or "
            "Inf, with something added to it");
}

TEST(DiagnoseNan, ACastThatWasSeenIsBelievedWhateverTheValue) {
  // Other machines than x86 make 0 or the largest integer of NaN.
  const ViolationFacts facts =
      ViolationFacts("embedding.indices", 2147483647, 10)
          .with("nan_cast", {{"bad", 1}, {"frame", {{"file", "a.py"}, {"line", 5}}}});
  expect(facts, Cause::kNanToIndex,
         "embedding: input[3] is 2147483647: NaN or Inf was cast to an integer in a.py:5",
         "NaN goes into the cast in a.py:5: 0/0, the log or root "
         "of a negative number, a value that .map() or a merge has no entry for, or beyond the edges of "
         "pd.cut(), or one that is missing in the "
         "data");
}

TEST(DiagnoseId, SpecialId) {
  expect(ViolationFacts("embedding.indices", 5000, 5000)
             .layer("words", "Embedding", "num_embeddings")
             .with("special_ids", {{"pad_token_id", 5000}}),
         Cause::kEmbeddingIndexOutOfRange,
         "embedding: input[3] is 5000, but the table `words` has 5000 rows: valid ids are [0, 5000); "
         "pad_token_id is "
         "5000, which has no row",
         "give `words` more rows than 5000: as many as the vocabulary is long (5001 at least: 5000 is the "
         "highest of 32 ids seen)");
  expect(
      ViolationFacts("embedding.indices", 5000, 5000)
          .layer("bert.words", "Embedding", "num_embeddings")
          .with("resizable", "bert"),
      Cause::kEmbeddingIndexOutOfRange,
      "embedding: input[3] is 5000, but the table `bert.words` has 5000 rows: valid ids are [0, 5000)",
      "if the program makes ids itself (letters, time steps, codes): look at where the ids are computed: 1 "
      "of 32 is outside [0, 5000)");
}

TEST(DiagnoseId, GarbageElsewhereIsNoSize) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const ViolationFacts facts = ViolationFacts("embedding.indices", 5000, 5000)
                                   .layer("words", "Embedding", "num_embeddings")
                                   .scan("max", most);
  const Finding finding = diagnose(facts);
  ASSERT_FALSE(finding.fix.empty());
  EXPECT_EQ(finding.fix.back(),
            "see which of the two is meant: `words` has 5000 rows, and 5000 is the highest of 32 ids "
            "seen");
  ASSERT_TRUE(finding.layer.has_value());
  EXPECT_FALSE(finding.layer->needed) << "one batch is no count";
}

TEST(DiagnoseId, PositionTable) {
  const ViolationFacts facts = ViolationFacts("embedding.indices", 64, 64)
                                   .scan("max", 79)
                                   .layer("position", "Embedding", "num_embeddings");
  expect(facts, Cause::kPositionIndexOutOfRange,
         "embedding: input[3] is 64, but the position table `position` has 64 rows: the sequence of 80 "
         "positions is "
         "too long",
         "if what is beyond may be left out, truncate to 64 where the batch is made");
  EXPECT_FALSE(diagnose(facts).layer->needed) << "another batch may be longer";
}

TEST(DiagnoseId, LossLabelsAsIds) {
  expect(ViolationFacts("embedding.indices", -100, 9).below(), Cause::kEmbeddingIndexOutOfRange,
         "embedding: input[3] is -100, but the table has 9 rows: valid ids are [0, 9); -100 is the ignore "
         "label of "
         "losses",
         "if these are labels that were passed by mistake: pass input_ids");
}

TEST(DiagnoseIndex, GatherCountsNoNegatives) {
  const json args = {{"self", {{"shape", {8, 20}}, {"dtype", "float32"}}}, {"dim", -1}};
  expect(
      ViolationFacts("gather.index", -2, 20).below().with("args", args), Cause::kIndexOutOfRange,
      "gather: index[3] is -2, but dimension 1 of the input has 20 elements: valid indices are [0, 20)",
      "gather does not count negative indices from the end: look at where the index is computed: 1 of 32 "
      "is outside [0, 20), -2 is the lowest; see what -2 stands for: something that is missing, or a count "
      "that went below 0");
  const ViolationFacts last = ViolationFacts("gather.index", 20, 20).scan("min", 1).with("args", args);
  expect(last, Cause::kIndexOutOfRange,
         "gather: index[3] is 20, but dimension 1 of the input has 20 elements: valid indices are [0, 20)",
         "look at where the index is computed: 1 of 32 is outside [0, 20), 20 is the highest");
  ViolationFacts whole = last;
  whole.with("seen", {{"min", 1}, {"max", 20}, {"count", 400}, {"source", "dataset"}});
  EXPECT_EQ(
      diagnose(whole).fix.at(1),
      "if they are counted from 1 (no 0 among 400 seen), number index from 0 where they are made; where they "
      "number a list of names, see first what has number 0");
}

TEST(DiagnoseCounts, WhatTheyAddUpTo) {
  expect(ViolationFacts("masked_scatter.mask", 1, 576).scan("bad", 2).scan("reason", 9),
         Cause::kShapeMismatch, "masked_scatter: the mask takes 578 elements, but source has 576",
         "in multimodal models: input_ids must have one placeholder token for each feature of the encoder: "
         "count "
         "them row by row, mask.reshape(len(mask), -1).sum(1)");
  expect(ViolationFacts("repeat_interleave.repeats", 2, 5).scan("reason", 10), Cause::kShapeMismatch,
         "repeat_interleave: repeats add up to less than output_size=5",
         "output_size=int(repeats.sum()), or leave output_size out (the sum is then read from the device)");
  expect(ViolationFacts("segment_reduce.lengths", 4, 9).scan("reason", 9), Cause::kShapeMismatch,
         "segment_reduce: lengths[3] is 4: with it the segments are longer than the 9 elements of data",
         "compute the lengths from the data that is reduced: lengths.sum(-1) must equal data.size(axis)");
  expect(
      ViolationFacts("repeat_interleave.repeats", -1, 5).below(), Cause::kIndexOutOfRange,
      "repeat_interleave: repeats[3] is -1, but it must not be negative",
      "look at where the counts are computed: 1 of 32 is negative: where more is taken off than there was (a "
      "shift, a rounding), 0 in its place is right; it would hide a difference the wrong way round (an end "
      "that "
      "lies before its begin), and a look-up that found nothing (-1)");
}

// hi is one more than the specified elements, of which there are 5; a row has 3 columns.
TEST(DiagnoseCounts, CompressedIndices) {
  const auto said = [](std::int64_t value, int reason) {
    ViolationFacts facts("_validate_compressed_sparse_indices.compressed_idx", value, 6);
    facts.object["args"]["dim"] = 3;
    const Finding finding = diagnose(facts.scan("reason", reason));
    EXPECT_EQ(finding.cause, Cause::kIndexOutOfRange);
    EXPECT_EQ(finding.valid->text, "0 first, ascending, 5 last");
    EXPECT_EQ(finding.fix.at(1),
              "or let PyTorch do it: torch.sparse_coo_tensor(indices, values, size).to_sparse_csr()");
    return finding.summary.substr(finding.summary.find(" is ") + 4);
  };
  EXPECT_EQ(said(1, 8), "1, but the first one has to be 0");
  EXPECT_EQ(said(2, 7), "2, less than the one before it: compressed_indices must ascend");
  EXPECT_EQ(said(9, 2), "9, but there are only 5 specified elements");
  EXPECT_EQ(said(4, 9), "4: it takes more elements than fit; 3 is the most");
  EXPECT_EQ(said(4, 10), "4, but the last one has to be 5: there are 5 specified elements");
}

TEST(DiagnoseCounts, EndsAndPivots) {
  expect(ViolationFacts("_grouped_mm.offs", 9, 9), Cause::kIndexOutOfRange,
         "grouped_mm: offs[3] is 9, but there are only 8 rows to cut",
         "offs = group_sizes.cumsum(0, dtype=torch.int32), with group_sizes of the same batch");
  EXPECT_EQ(diagnose(ViolationFacts("segment_reduce.offsets", 2, 9).scan("reason", 7)).summary,
            "segment_reduce: offsets[3] is 2, less than the one before it: offsets must ascend");
  expect(ViolationFacts("lu_unpack.LU_pivots", 0, 4).scan("lo", 1).below(), Cause::kIndexOutOfRange,
         "lu_unpack: LU_pivots[3] is 0, but pivots of a matrix with 3 rows are 1 to 3",
         "pass what torch.linalg.lu_factor(A) returned, unchanged: LU, pivots = ...; lu_unpack(LU, pivots)");
}

TEST(DiagnoseCounts, TheRangeIsSaidInItsOwnWords) {
  EXPECT_EQ(diagnose(ViolationFacts("lu_unpack.LU_pivots", 4, 4).scan("lo", 1)).valid->text, "[1, 3]");
  EXPECT_EQ(diagnose(ViolationFacts("_grouped_mm.offs", 9, 9)).valid->text, "ascending, 0 to 8");
  EXPECT_EQ(diagnose(ViolationFacts("masked_scatter.mask", 1, 1).scan("reason", 9)).valid->text,
            "at most 1 element set");
  EXPECT_EQ(diagnose(ViolationFacts("repeat_interleave.repeats", 1, 5).scan("reason", 10)).valid->text,
            ">= 0, sum 5");
  EXPECT_EQ(diagnose(ViolationFacts("multilabel_margin_loss_forward.target", 3, 3)).valid->text,
            "[0, 3), up to the first -1 of a row");
}

TEST(DiagnoseNumbers, Binomial) {
  EXPECT_EQ(diagnose(ViolationFacts("binomial.count", -1.0, 0).scan("reason", 5)).summary,
            "binomial: count[3] is -1, but a count must not be negative");
  EXPECT_EQ(diagnose(ViolationFacts("binomial.prob", 1.5, 1)).fix.front(),
            "look at where the prob is computed: 1 of 32 is outside [0, 1]; raw scores go into "
            "Binomial(total_count, logits=logits)");
}

TEST(DiagnoseNumbers, ANegativeCountOrRateIsNotMadeZero) {
  const Finding count = diagnose(ViolationFacts("binomial.count", -3.0, 0).scan("reason", 5));
  EXPECT_EQ(count.fix.front(), "look at where the count is computed: 1 of 32 is negative");
  ViolationFacts rate = ViolationFacts("poisson.self", -3.0, 0).scan("reason", 1).scan("min", -3.0);
  EXPECT_EQ(
      diagnose(rate).fix.front(),
      "look at where the rate is computed: 1 of 32 is negative; what a layer puts out becomes a rate in the "
      "same "
      "way as for its loss: torch.exp(x) where that takes a logarithm (nn.PoissonNLLLoss does by default)");
  rate.scan("value", -1e-7).scan("min", -1e-7);
  EXPECT_EQ(diagnose(rate).fix.front(), "rate.clamp(min=0): only rounding makes it negative");
}

TEST(DiagnoseLossInput, MissingSigmoidAndNan) {
  expect(
      ViolationFacts("binary_cross_entropy.self", 1.75, 1).scan("min", -2.5).with("squashed", "raw"),
      Cause::kLossInputOutOfRange,
      "binary_cross_entropy: input[3] is 1.75, but binary_cross_entropy takes probabilities in [0, 1]: the "
      "sigmoid "
      "is missing",
      "F.binary_cross_entropy_with_logits(input, target), or nn.BCEWithLogitsLoss(): takes the raw scores");
  expect(ViolationFacts("binary_cross_entropy.self", "nan", 1).scan("reason", 3).scan("max", 0.5),
         Cause::kLossInputOutOfRange,
         "binary_cross_entropy: input[3] is nan: the input is already NaN before the loss; this is not "
         "a missing sigmoid",
         "find where the NaN begins: torch.autograd.set_detect_anomaly(True), or assert "
         "torch.isfinite(x).all() after "
         "each layer, backwards from `input`");
}

TEST(DiagnoseLossInput, Targets) {
  EXPECT_EQ(diagnose(ViolationFacts("binary_cross_entropy.target", 255.0, 1).scan("min", 0.0)).fix.front(),
            "pixels go to 255 and have to be divided by it; a mark has to be left out of input and target");
  EXPECT_EQ(diagnose(ViolationFacts("binary_cross_entropy.target", 2.0, 1).scan("min", 1.0)).fix.front(),
            "if no target of the data is 0 (none of these 32 is), the two classes are called 1 and 2: target "
            "= target - 1");
  EXPECT_EQ(
      diagnose(ViolationFacts("binary_cross_entropy.target", -1.0, 1).scan("min", -1.0).scan("max", 1.0))
          .fix.front(),
      "if no target of the data is 0 (none of these 32 is), the two classes are called -1 and 1: target = "
      "(target + 1) / 2");
}

TEST(DiagnoseLossInput, ProbabilitiesThatWereComputedWrongly) {
  ViolationFacts facts =
      ViolationFacts("binary_cross_entropy.self", 1.75, 1).scan("min", 0.25).scan("max", 1.75);
  facts.with("variable", {{"name", "score"}, {"index", {3}}});
  expect(facts, Cause::kLossInputOutOfRange,
         "binary_cross_entropy: input[3] is 1.75, but binary_cross_entropy takes probabilities in "
         "[0, 1]",
         "look at where `score` is computed: 1 of 32 is above 1, 1.75 is the highest");
  EXPECT_EQ(diagnose(ViolationFacts("bernoulli.out.self", 1.0001, 1).scan("min", 0.0).scan("max", 1.0001))
                .fix.front(),
            "p.clamp(0, 1): only rounding leaves the range");
}

TEST(DiagnoseLossInput, AMaskWithAVoidLabel) {
  const Finding finding = diagnose(
      ViolationFacts("binary_cross_entropy.target", 255.0, 1).scan("min", 0.0).with("values", {{255.0, 1}}));
  ASSERT_EQ(finding.fix.size(), 1U);  // nothing tells whether a 1 stands beside it
  EXPECT_EQ(finding.fix[0],
            "pixels go to 255 and have to be divided by it; a mark has to be left out of input and target");
}

TEST(DiagnoseCounts, NegativeValuesOfBincount) {
  EXPECT_EQ(diagnose(ViolationFacts("bincount.self", -1, 0).below()).fix,
            (std::vector<std::string>{
                "find where it comes from: 1 of 32 is negative",
                "bincount has no place for a mark: what -1 stands for has to be left out before, or counted "
                "as a number of its own"}));
}

TEST(DiagnoseProbability, WeightsThatAreNanAlready) {
  const ViolationFacts facts =
      ViolationFacts("poisson.self", "nan", 0)
          .scan("reason", 3)
          .with("weights", {{"name", "policy.body.0.weight"}, {"bad", 4}, {"total", 4}});
  expect(
      facts, Cause::kInvalidProbability,
      "poisson: input[3] is nan: the NaN was made before the sampling; the weights are NaN or Inf already: 4 "
      "of 4 parameters, `policy.body.0.weight` first",
      "if an earlier step broke the weights, stop at the first bad loss: assert torch.isfinite(loss) before "
      "loss.backward(); where no loss was bad, look at what else writes them: load_state_dict, an average of "
      "models, a copy");
}

TEST(DiagnoseProbability, NamesTheRow) {
  const json shape = {{"shape", {8, 10}}, {"dtype", "float32"}};
  expect(ViolationFacts("multinomial.self", "nan", 1)
             .scan("reason", 3)
             .with("index", {2, 7})
             .with("tensor", shape),
         Cause::kInvalidProbability,
         "multinomial: input[2, 7] is nan: row 2 of the probabilities is not finite",
         "check the logits: assert (logits < float('inf')).all() before softmax; float16 overflows: "
         "torch.softmax(logits.float(), dim=-1)");
  EXPECT_EQ(diagnose(ViolationFacts("multinomial.self", 0.0, 1)
                         .scan("reason", 6)
                         .with("index", {2, 0})
                         .with("tensor", shape))
                .summary,
            "multinomial: row 2 of the probabilities has sum 0: nothing can be drawn from it");
}

TEST(Diagnose, EveryRowHasWords) {
  for (const Contract& contract : contracts()) {
    for (int reason = 0; reason <= static_cast<int>(Reason::kFirstNotZero); ++reason) {
      for (const std::int64_t hi : {0, 1, 10}) {
        const json value = contract.dtypes == Dtypes::kFloating ? json("nan") : json(11);
        const Finding finding =
            diagnose(ViolationFacts(contract.id.data(), value, hi).scan("reason", reason));
        EXPECT_EQ(finding.summary.rfind(finding.op + ": ", 0), 0U) << contract.id;
        EXPECT_FALSE(finding.fix.empty()) << contract.id;
        EXPECT_EQ(finding.certainty, Certainty::kProven);
        EXPECT_EQ(finding.device_assert, contract.device_assert) << contract.id;
      }
    }
  }
}

TEST(Diagnose, MembersOfTheWrongTypeAreLeftOut) {
  const ViolationFacts good = label(195, 195);
  for (const char* name :
       {"index", "tensor", "values", "seen", "origin", "stack", "layer", "table", "special_ids", "sample",
        "process", "progress", "nan_cast", "history", "args", "surfaced"}) {
    for (const json& value : {json(nullptr), json(7), json("x"), json::array({1, "x", nullptr}),
                              json({{"shape", {1e300}}, {"min", "99999999999999999999"}, {"frame", 3}})}) {
      ViolationFacts facts = good;
      EXPECT_EQ(diagnose(facts.with(name, value)).summary.rfind("cross_entropy: target", 0), 0U) << name;
    }
  }
  ViolationFacts extreme = good;
  extreme.scan("max", 18446744073709551615ULL).scan("hi", "9223372036854775807").scan("total", -5);
  EXPECT_FALSE(diagnose(extreme).summary.empty());
}

}  // namespace
}  // namespace trapline::diagnose
