// The table of host messages: every sample is known by its own row, and what is none of ours stays unknown.
#include <gtest/gtest.h>
#include <re2/re2.h>

#include <set>
#include <string>

#include "diagnose/host/case.hpp"
#include "diagnose/host/errors.hpp"
#include "host_words.hpp"
#include "reading.hpp"

namespace trapline::diagnose {
namespace {

using nlohmann::json;

std::string first_exception(const HostErrorRow& row) {
  return std::string(row.exceptions.substr(0, row.exceptions.find('|')));
}

json frame(const char* code, bool user) {
  return {
      {"file", user ? "train.py" : "torch/nn/functional.py"}, {"line", 7}, {"code", code}, {"user", user}};
}

TEST(HostErrorTable, RowsAreWellFormed) {
  std::set<std::string_view> ids;
  ASSERT_GE(host_error_rows().size(), 100U);
  for (const HostErrorRow* row : host_error_rows()) {
    EXPECT_TRUE(ids.insert(row->id).second) << row->id;
    EXPECT_FALSE(row->samples.empty()) << row->id;
    const RE2 pattern(re2::StringPiece(row->pattern.data(), row->pattern.size()), RE2::Latin1);
    EXPECT_TRUE(pattern.ok()) << row->id << ": " << pattern.error();
    EXPECT_LE(pattern.NumberOfCapturingGroups(), 12) << row->id;
  }
}

TEST(HostErrorTable, EverySampleIsKnownByItsOwnRow) {
  for (const HostErrorRow* row : host_error_rows()) {
    if (row->when != nullptr) continue;  // the message alone is another row's
    for (const std::string_view sample : row->samples) {
      const HostErrorRow* found = find_host_error(first_exception(*row), sample);
      EXPECT_NE(found, nullptr) << row->id << ": " << sample;
      if (found == nullptr) continue;
      EXPECT_EQ(found->id, row->id) << sample;
    }
  }
}

TEST(HostErrorTable, EverySampleBecomesAFindingFromItsMessageAlone) {
  for (const HostErrorRow* row : host_error_rows()) {
    if (row->when != nullptr) continue;
    for (const std::string_view sample : row->samples) {
      const auto finding = diagnose_host_error({{"exception", first_exception(*row)}, {"message", sample}});
      EXPECT_TRUE(finding) << sample;
      if (!finding) continue;
      EXPECT_EQ(finding->cause, row->cause) << sample;
      EXPECT_EQ(finding->certainty, Certainty::kDetermined);
      EXPECT_EQ(finding->device_assert, false);
      EXPECT_FALSE(finding->summary.empty()) << sample;
      EXPECT_FALSE(finding->fix.empty()) << sample;
      EXPECT_EQ(finding->summary.find("[]"), std::string::npos) << finding->summary;
      EXPECT_EQ(finding->summary.find("  "), std::string::npos) << finding->summary;
      EXPECT_EQ(finding->summary.find('\n'), std::string::npos) << finding->summary;
    }
  }
}

TEST(HostErrorTable, OtherExceptionsAreNotOurs) {
  EXPECT_EQ(find_host_error("IndexError", "list index out of range"), nullptr);
  EXPECT_EQ(find_host_error("IndexError", "index 5 is out of bounds for axis 0 with size 3"),
            nullptr);  // NumPy
  EXPECT_EQ(find_host_error("KeyError", "'label'"), nullptr);
  EXPECT_EQ(find_host_error("ValueError", "shape mismatch"), nullptr);
  EXPECT_EQ(find_host_error("ValueError", "expected something else"), nullptr);
  EXPECT_EQ(find_host_error("RuntimeError", "CUDA error: device-side assert triggered"), nullptr);
  EXPECT_EQ(find_host_error("RuntimeError", "see: mat1 and mat2 shapes cannot be multiplied (1x2 and 3x4)"),
            nullptr);
  EXPECT_EQ(find_host_error("mylib.RuntimeError", "mat1 and mat2 shapes cannot be multiplied (1x2 and 3x4)"),
            nullptr);
  EXPECT_EQ(find_host_error("KeyError", "mat1 and mat2 shapes cannot be multiplied (1x2 and 3x4)"), nullptr);
}

TEST(HostErrorTable, GatherAndScatterKnowNoNegativeIndices) {
  const char* const message = "index 4 is out of bounds for dimension 1 with size 4";
  const auto indexing = diagnose_host_error({{"exception", "IndexError"}, {"message", message}});
  ASSERT_TRUE(indexing);
  EXPECT_EQ(indexing->valid->text, "[-4, 4)");
  const auto scatter = diagnose_host_error({{"exception", "RuntimeError"}, {"message", message}});
  ASSERT_TRUE(scatter);
  EXPECT_EQ(scatter->valid->text, "[0, 4)");
  EXPECT_EQ(scatter->summary,
            "index 4 is outside [0, 4) in dimension 1 (gather, scatter or, in an old PyTorch, x[index])");
}

TEST(HostErrorTable, WhatTheUserRaisesIsTheUsersOwn) {
  json facts{{"exception", "ValueError"},
             {"message", "Expected input batch_size (4) to match target batch_size (3)."}};
  facts["stack"] = json::array({frame("    raise ValueError(text)", true)});
  EXPECT_FALSE(diagnose_host_error(facts));
  facts["stack"] = json::array({frame("loss = f(x, y)", true), frame("    raise ValueError(text)", false)});
  EXPECT_TRUE(diagnose_host_error(facts));
}

TEST(HostErrorWords, BinaryTargetsOfAnotherShape) {
  const Finding f = explained(
      {{"exception", "ValueError"},
       {"message", "Target size (torch.Size([4])) must be the same as input size (torch.Size([4, 1]))"},
       {"operands", {operand("logits", "input", {4, 1}), operand("y", "target", {4})}}});
  EXPECT_EQ(
      f.summary,
      "binary_cross_entropy_with_logits: y has shape [4] but logits has shape [4, 1]; they must be the same");
  ASSERT_EQ(f.fix.size(), 2U);
  EXPECT_EQ(f.fix[0], "use `logits.squeeze(1)`");
  EXPECT_EQ(f.fix[1], "or use `y.unsqueeze(1)`");
  EXPECT_EQ(f.tensor->shape, (Shape{4}));
}

TEST(HostErrorWords, TargetsWithAValueForEachClass) {
  const Finding f = explained(
      {{"exception", "ValueError"},
       {"message", "Expected input batch_size (8) to match target batch_size (32)."},
       {"operands", {operand("logits", "input", {8, 4}), operand("labels", "target", {32}, "int64")}}});
  ASSERT_EQ(f.fix.size(), 1U);
  EXPECT_EQ(f.fix[0],
            "labels has a value for each class of each sample (8 x 4). Several labels a sample: "
            "F.binary_cross_entropy_with_logits(logits, labels.view(8, 4).float()); one-hot labels: "
            "labels.view(8, 4).argmax(1)");
}

// What the user has to change is the model, not a layer in an installed package.
TEST(HostErrorWords, ALayerInsideALibraryIsNotToBeWrittenAnew) {
  json facts{{"exception", "RuntimeError"},
             {"message",
              "Given normalized_shape=[16], expected input with shape [*, 16], but got input of size[2, 8]"},
             {"operands", {operand("x", "input", {2, 8})}}};
  EXPECT_NE(explained(facts).fix.back().find("make the layer fit"), std::string::npos);
  facts["library"] = {{"owner", "zuko"}, {"owners", {"zuko.nn.MLP"}}};
  const Finding f = explained(facts);
  for (const std::string& line : f.fix) EXPECT_EQ(line.find("make the layer fit"), std::string::npos) << line;
  EXPECT_NE(f.fix.back().find("is part of a library's model: give that model x of the size"),
            std::string::npos)
      << f.fix.back();
}

// Of two tensors of one shape the message alone does not tell which is refused.
TEST(HostErrorWords, ADistributionsParameterIsNotGuessed) {
  json facts{
      {"exception", "ValueError"},
      {"message",
       "Expected parameter scale (Tensor of shape (2,)) of distribution Normal(loc: torch.Size([2]), scale: "
       "torch.Size([2])) to satisfy the constraint GreaterThan(lower_bound=0.0), but found invalid values:\n"
       "operand([1., -1.])"},
      {"operands", {operand("a", "", {2}), operand("b", "", {2})}}};
  EXPECT_EQ(explained(facts).summary, "Normal: scale [2] must be > 0");
  facts["operands"][1]["as"] = "scale";
  facts["operands"][1]["user"] = true;
  facts["element"] = {{"index", {1}}, {"value", -1.0}, {"bad", 1}, {"total", 2}};
  const Finding f = explained(facts);
  EXPECT_EQ(f.summary, "Normal: scale=b[1] is -1, but must be > 0");
  EXPECT_EQ(f.element->index, std::vector<std::int64_t>{1});
}

const char kBuffer[] =
    "The expanded size of the tensor (80) must match the existing size (64) at non-singleton dimension 1.  "
    "Target sizes: [8, 80].  Tensor sizes: [1, 64]";

nlohmann::json too_long(int offset, int length) {
  return {
      {"exception", "RuntimeError"},
      {"message", kBuffer},
      {"position",
       {{"rows", 64 + offset},
        {"offset", offset},
        {"length", length},
        {"name", "bert.embeddings.position_embeddings"},
        {"setting", "max_position_embeddings"},
        {"value", 64}}},
      {"library", {{"owner", "transformers"}, {"owners", {"transformers.modeling_utils.PreTrainedModel"}}}},
      {"sample", {{"dataset_index", 19}, {"batch", 2}}}};
}

TEST(HostErrorWords, TextBeyondThePositionTable) {
  const auto finding = diagnose_host_error(too_long(0, 80));
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->cause, Cause::kPositionIndexOutOfRange);
  EXPECT_EQ(
      finding->summary,
      "the text has 80 tokens, but the position table `bert.embeddings.position_embeddings` has 64 rows "
      "(max_position_embeddings=64)");
  EXPECT_EQ(finding->fix.front(),
            "tokenizer(..., truncation=True, max_length=64), where the texts are tokenized");
  EXPECT_EQ(finding->sample->dataset_index, 19);
}

TEST(HostErrorWords, ABufferThatIsNoPositionTableStaysAShape) {
  const auto finding = diagnose_host_error(too_long(0, 96));  // the text is not what did not fit
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->cause, Cause::kShapeMismatch);
  const auto bare = diagnose_host_error({{"exception", "RuntimeError"}, {"message", kBuffer}});
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->cause, Cause::kShapeMismatch);
}

TEST(HostErrorWords, RowsBeforeTheFirstPosition) {
  const auto finding = diagnose_host_error(too_long(2, 80));
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->fix.front(),
            "tokenizer(..., truncation=True, max_length=64), where the texts are tokenized");
  EXPECT_NE(finding->fix.at(2).find("max_position_embeddings of 80 at least"), std::string::npos);
  EXPECT_EQ(finding->fix.back(), "look at sample 19 of the data set");
}

TEST(HostErrorWords, LinearLayerOfAnotherSize) {
  json facts{{"exception", "RuntimeError"},
             {"message", "mat1 and mat2 shapes cannot be multiplied (32x400 and 256x10)"},
             {"module",
              {{"name", "classifier.0"},
               {"type", "Linear"},
               {"attributes", {{"in_features", 256}, {"out_features", 10}}}}},
             {"operands", {operand("x", "input", {32, 400})}}};
  const Finding f = explained(facts);
  EXPECT_EQ(f.op, "linear");
  EXPECT_EQ(f.summary, "linear: x [32, 400] has 400 features but `classifier.0` Linear(256, 10) takes 256");
  EXPECT_EQ(f.layer->name, "classifier.0");
  EXPECT_EQ(f.layer->value, 256);
  EXPECT_EQ(f.layer->needed, 400);
  EXPECT_EQ(f.fix[0], "make `classifier.0` take what arrives: `nn.Linear(400, 10)`");
}

TEST(HostErrorWords, LinearLayerThatNeedsFlatten) {
  const Finding f = explained(
      {{"exception", "RuntimeError"},
       {"message", "mat1 and mat2 shapes cannot be multiplied (2560x5 and 400x10)"},
       {"operands", {operand("x", "input", {32, 16, 5, 5})}},
       {"module",
        {{"name", "fc"}, {"type", "Linear"}, {"attributes", {{"in_features", 400}, {"out_features", 10}}}}}});
  ASSERT_EQ(f.fix.size(), 1U);
  EXPECT_EQ(f.fix[0], "flatten first: `x.flatten(1)`");
}

TEST(HostErrorWords, ColumnOfLabels) {
  const Finding f = explained(
      {{"exception", "RuntimeError"},
       {"message", "0D or 1D target tensor expected, multi-target not supported"},
       {"operands", {operand("out", "input", {32, 10}), operand("y", "target", {32, 1}, "int64")}}});
  EXPECT_EQ(f.cause, Cause::kShapeMismatch);
  EXPECT_EQ(f.fix[0], "use `y.squeeze(1)`");
}

TEST(HostErrorWords, ScoresTransposed) {
  const Finding f =
      explained({{"exception", "ValueError"},
                 {"message", "Expected input batch_size (10) to match target batch_size (32)."},
                 {"operands", {operand("out", "input", {10, 32}), operand("y", "target", {32}, "int64")}}});
  EXPECT_NE(f.fix[0].find("`out.t()`"), std::string::npos);
}

TEST(HostErrorWords, BroadcastNamesBothSides) {
  const Finding f = explained({{"exception", "RuntimeError"},
                               {"message",
                                "The size of tensor a (10) must match the size of tensor b (32) at "
                                "non-singleton dimension 1"},
                               {"operands", {operand("x", "", {32, 10}), operand("w", "", {32})}}});
  EXPECT_EQ(f.summary, "x [32, 10] and w [32] cannot be broadcast: 10 against 32 in dimension 1");
  EXPECT_EQ(f.fix[0], "use `w.unsqueeze(1)`");
}

TEST(HostErrorWords, ViewOfAnotherNumberOfElements) {
  const Finding f = explained({{"exception", "RuntimeError"},
                               {"message", "shape '[32, 256]' is invalid for input of size 12800"},
                               {"operands", {operand("x", "", {32, 16, 5, 5})}}});
  EXPECT_EQ(f.summary, "view: x [32, 16, 5, 5] has 12800 elements, which do not fill the shape [32, 256]");
  EXPECT_EQ(f.fix[0], "use `x.flatten(1)`: it gives [32, 400]");
}

TEST(HostErrorWords, DevicesOfBothSides) {
  const Finding f = explained(
      {{"exception", "RuntimeError"},
       {"message",
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! "
        "(when checking argument for argument index in method wrapper_CUDA__index_select)"},
       {"operands",
        {operand("table", "self", {10, 4}, "float32", "cuda:0"),
         operand("ids", "index", {3}, "int64", "cpu")}}});
  EXPECT_EQ(f.cause, Cause::kDeviceMismatch);
  EXPECT_EQ(f.op, "index_select");
  EXPECT_EQ(f.argument, "index");
  EXPECT_EQ(f.summary, "index_select: ids is on cpu but table is on cuda:0");
  EXPECT_EQ(f.fix[0], "use `ids.to(table.device)`");
}

TEST(HostErrorWords, LayerOnAnotherDevice) {
  json weight = operand("head.weight", "weight", {3, 32}, "float32", "cuda:0");
  weight["user"] = false;
  const Finding f = explained(
      {{"exception", "RuntimeError"},
       {"message",
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"},
       {"module",
        {{"name", "head"}, {"type", "Linear"}, {"attributes", {{"in_features", 32}, {"out_features", 3}}}}},
       {"operands", {operand("features", "input", {16, 32}), weight}}});
  EXPECT_EQ(f.op, "linear");
  EXPECT_EQ(f.summary, "linear: features is on cpu but head.weight is on cuda:0");
  ASSERT_EQ(f.fix.size(), 2U);  // moving one layer moves the error to the next
  EXPECT_EQ(f.fix[0], "use `features.to(\"cuda:0\")`");
  EXPECT_EQ(f.fix[1], "features is on cpu, head.weight is on cuda:0");
}

TEST(HostErrorWords, TargetsOfTheAdaptiveSoftmax) {
  const auto f = diagnose_host_error(
      {{"exception", "RuntimeError"},
       {"message", "Target values should be in [0, 19], but values in range [1, 25] were found. "}});
  ASSERT_TRUE(f);
  EXPECT_EQ(f->summary, "AdaptiveLogSoftmaxWithLoss: target holds values from 1 to 25, but n_classes is 20");
  EXPECT_EQ(f->valid->text, "[0, 19]");
  EXPECT_EQ(f->fix.front(),
            "if there are meant to be more than 20 classes: AdaptiveLogSoftmaxWithLoss(..., n_classes=N), N "
            "as many as there are classes, 26 at least");
}

TEST(HostErrorWords, LabelsAsFloat) {
  const Finding f = explained(
      {{"exception", "RuntimeError"},
       {"message", "expected scalar type Long but found Float"},
       {"stack", {{{"file", "/x/torch/nn/functional.py"}, {"line", 1}, {"function", "cross_entropy"}}}},
       {"operands", {operand("out", "input", {4, 3}), operand("y", "target", {4})}}});
  EXPECT_EQ(f.cause, Cause::kDtypeMismatch);
  EXPECT_EQ(f.summary, "cross_entropy: y holds class numbers as float32; they must be int64");
  EXPECT_EQ(f.fix[0], "use `y.long()`, best once in the data set");
}

TEST(HostErrorWords, WhatSurroundsANanOfADistribution) {
  json facts = {
      {"exception", "ValueError"},
      {"message",
       "Expected parameter logits (Tensor of shape (1, 3)) of distribution Categorical(logits: "
       "torch.Size([1, 3])) to satisfy the constraint IndependentConstraint(Real(), 1), but found invalid "
       "values:\ntensor([[nan, nan, nan]])"},
      {"element", {{"index", {0, 0}}, {"value", "nan"}, {"bad", 3}, {"total", 3}}},
      {"weights", {{"name", ""}, {"bad", 0}, {"total", 8}}},
      {"nan",
       {{"input", {{"name", "obs"}, {"index", {0, 2}}, {"value", "nan"}, {"module", "policy"}}},
        {"situation", "policy"}}}};
  const Finding f = explained(facts);
  EXPECT_EQ(f.summary,
            "Categorical: logits [1, 3] holds NaN in row 0; the model's weights are finite, the input of "
            "`policy` is "
            "NaN: obs[0, 2]");
  EXPECT_EQ(f.element->index, (std::vector<std::int64_t>{0, 0}));
  for (const std::string& line : f.fix) EXPECT_EQ(line.find("learning rate"), std::string::npos) << line;
  facts["nan"] = {
      {"made", {{"op", "div"}, {"text", "scores / scores.sum(1)"}}}};  // of no contract's argument
  EXPECT_TRUE(
      explained(facts).summary.ends_with("`div` made it of finite numbers in `scores / scores.sum(1)`"));
  facts.erase("nan");
  facts.erase("weights");
  EXPECT_NE(explained(facts).fix.back().find("if the loss grew before it was NaN"), std::string::npos);
}

TEST(HostErrorWords, TopkIsNotOfWhatGoesIntoTheCallBefore) {
  json facts = {{"exception", "RuntimeError"},
                {"message", "selected index k out of range"},
                {"call", "torch.cdist(centres, xyz).topk(k, dim=-1)"},
                {"operands", {operand("centres", "", {8, 64, 3})}}};
  EXPECT_EQ(explained(facts).summary, "topk: k is larger than the dimension (or negative)");
  EXPECT_EQ(explained(facts).fix.front().find("centres"), std::string::npos);
  facts["call"] = "centres.topk(9)";
  EXPECT_EQ(explained(facts).summary, "topk: k is larger than the dimension of centres [8, 64, 3]");
}

TEST(HostErrorWords, LossWithItsArgumentsSwapped) {
  json labels = operand("t", "input", {16});
  labels["dtype"] = "int64";
  json facts = {
      {"exception", "NotImplementedError"},
      {"message", "\"log_softmax_lastdim_kernel_impl\" not implemented for 'Long'"},
      {"stack", {{{"file", "/x/torch/nn/functional.py"}, {"line", 1}, {"function", "cross_entropy"}}}},
      {"operands", {labels, operand("p", "target", {16, 3})}}};
  const Finding f = explained(facts);
  EXPECT_EQ(
      f.summary,
      "cross_entropy: the arguments are the wrong way round: t is int64 [16], and p is float32 [16, 3]");
  EXPECT_EQ(f.fix, std::vector<std::string>{"the logits go first, the labels second: `(p, t)`"});
  facts["operands"][1]["dtype"] = "int64";
  EXPECT_EQ(explained(facts).fix.front(), "use `t.float()`") << "nothing there could be the logits";
}

TEST(HostErrorWords, HostIndexIsToldApartFromADeviceAssert) {
  const Finding f = explained(
      {{"exception", "IndexError"}, {"message", "index 10 is out of bounds for dimension 0 with size 10"}});
  EXPECT_EQ(f.cause, Cause::kIndexOutOfRange);
  EXPECT_EQ(std::get<std::int64_t>(*f.element->value), 10);
  EXPECT_EQ(f.valid->text, "[-10, 10)");
  EXPECT_NE(f.fix[0].find("off-by-one"), std::string::npos);
}

TEST(HostErrorWords, NumpyOfADeviceTensor) {
  const Finding f = explained({{"exception", "TypeError"},
                               {"message",
                                "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy "
                                "the tensor to host memory first."},
                               {"operands", {operand("pred", "", {3}, "float32", "cuda:0")}}});
  EXPECT_EQ(f.fix[0], "use `pred.detach().cpu().numpy()`");
}

TEST(HostErrorWords, NanInADistribution) {
  const Finding f =
      explained({{"exception", "ValueError"},
                 {"message",
                  "Expected parameter probs (Tensor of shape (2, 3)) of distribution Categorical(probs: "
                  "torch.Size([2, 3])) to satisfy the constraint Simplex(), but found invalid "
                  "values:\ntensor([[nan, nan, nan]])"}});
  EXPECT_EQ(f.cause, Cause::kInvalidProbability);
  EXPECT_EQ(f.summary, "Categorical: probs [2, 3] holds NaN in row 0");
  EXPECT_EQ(f.valid->text, ">= 0, the sum of each row 1");
}

TEST(HostErrorWords, TheRowOfADistributionWithNan) {
  const auto summary = [](const char* values) {
    return explained(
               {{"exception", "ValueError"},
                {"message", std::string("Expected parameter logits (Tensor of shape (9, 2)) of distribution "
                                        "Categorical(logits: torch.Size([9, 2])) to satisfy the constraint "
                                        "IndependentConstraint(Real(), 1), but found invalid values:\n") +
                                values}})
        .summary;
  };
  EXPECT_EQ(summary("tensor([[-1., -inf],\n        [ 0.,  1.],\n        [nan, nan]])"),
            "Categorical: logits [9, 2] holds NaN in row 2");
  EXPECT_EQ(summary("tensor([[-1., -inf],\n        ...,\n        [nan, nan]])"),
            "Categorical: logits [9, 2] holds NaN");
}

TEST(HostErrorWords, WhatADistributionTakes) {
  const Finding f =
      explained({{"exception", "ValueError"},
                 {"message",
                  "Expected parameter logits (Tensor of shape (2, 2)) of distribution Categorical(logits: "
                  "torch.Size([2, 2])) "
                  "to satisfy the constraint IndependentConstraint(Real(), 1), but found invalid values:\n"
                  "tensor([[-inf, 0.],\n        [nan, nan]], grad_fn=<SubBackward0>)"}});
  EXPECT_EQ(f.valid->text, "numbers, not NaN");
  EXPECT_EQ(
      f.fix.front(),
      "a row in which every logit is -inf becomes NaN: a mask that leaves no choice; keep at least one in "
      "each row");
}

TEST(HostErrors, OnlyNaNIsNoRealNumberAlsoWhereALogHasLostTheValues) {
  const Finding f = explained({{"exception", "ValueError"},
                               {"message",
                                "Expected parameter logits (Tensor of shape (2, 2)) of distribution "
                                "Categorical(logits: torch.Size([2, 2])) to satisfy the constraint "
                                "IndependentConstraint(Real(), 1), but found invalid values:"}});
  EXPECT_EQ(f.summary, "Categorical: logits [2, 2] holds NaN");
}

Finding of_message(const std::string& message, json more = json::object()) {
  more["exception"] = "RuntimeError";
  more["message"] = message;
  const auto finding = diagnose_host_error(more);
  EXPECT_TRUE(finding) << message;
  return finding.value_or(Finding{});
}

TEST(HostErrors, WhatCannotBeStackedIsPaddedOnlyWhereItIsALength) {
  const auto stacked = [](const std::string& one, const std::string& other) {
    return of_message("stack expects each tensor to be equal size, but got [" + one + "] at entry 0 and [" +
                      other + "] at entry 4");
  };
  EXPECT_TRUE(stacked("3, 16, 16", "1, 16, 16").fix.at(0).starts_with("pictures with 3 and 1 channels"));
  for (const std::string& fix : stacked("3, 16, 16", "1, 16, 16").fix)
    EXPECT_FALSE(fix.find("pad_sequence") != fix.npos);
  EXPECT_TRUE(stacked("7, 2", "9, 2").fix.at(0).starts_with("pad to one length"));
  EXPECT_EQ(stacked("3, 16, 20", "3, 16, 24").fix,
            std::vector<std::string>{"resize, crop or pad each to one shape before stacking"});
}

TEST(HostErrors, AMaskWithARowForEachSampleIsAPaddingMask) {
  const auto masked = [](const std::string& given, const std::string& wanted) {
    return of_message("The shape of the 2D attn_mask is torch.Size([" + given + "]), but should be (" +
                      wanted + ").");
  };
  EXPECT_TRUE(masked("6, 12", "12, 12").fix.at(0).find("`key_padding_mask=`") != std::string::npos);
  EXPECT_TRUE(masked("4, 4", "3, 3").fix.at(0).starts_with("make a mask of shape [3, 3]"));
}

TEST(HostErrors, AnEmptySampleOfAPackedSequence) {
  const Finding finding = of_message(
      "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0");
  EXPECT_EQ(finding.summary, "pack_padded_sequence: an element of lengths is 0: a sample is empty");
  EXPECT_EQ(finding.fix.at(1), "to find it: print((lengths <= 0).nonzero())");
}

}  // namespace
}  // namespace trapline::diagnose
