// The words of host messages about numbers: no ids, scales of torch.normal, quantized layers, positions.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "host_words.hpp"

namespace trapline::diagnose {
namespace {

using nlohmann::json;

TEST(HostErrorWords, ALayerOfALibraryIsNotTheUsersToChange) {
  json facts{{"exception", "RuntimeError"},
             {"message", "mat1 and mat2 shapes cannot be multiplied (80x48 and 32x32)"},
             {"module",
              {{"name", "attn2.to_k"},
               {"type", "Linear"},
               {"attributes", {{"in_features", 32}, {"out_features", 32}}}}},
             {"operands", {operand("hidden", "input", {4, 20, 48})}}};
  const auto has = [](const Finding& f, std::string_view words) {
    return std::any_of(f.fix.begin(), f.fix.end(),
                       [&](const std::string& fix) { return fix.find(words) != std::string::npos; });
  };
  // A Linear takes what is last, however much stands before it.
  EXPECT_FALSE(has(explained(facts), "flatten"));
  EXPECT_TRUE(has(explained(facts), "`nn.Linear(48, 32)`"));
  facts["stack"] = {
      {{"file", "/x/train.py"}, {"line", 9}, {"function", "<module>"}, {"user", true}},
      {{"file", "/x/diffusers/attention.py"}, {"line", 7}, {"function", "forward"}, {"user", false}}};
  const Finding f = explained(facts);
  EXPECT_EQ(f.fix.front(),
            "`attn2.to_k` is part of a library's model: give that model hidden with 32 features, or make it "
            "for 48");
  EXPECT_FALSE(has(f, "nn.Linear("));
}

// What took inputs of its size before is not to be made anew for the one that has another.
TEST(HostErrorWords, ALayerThatWasTrainedKeepsItsSize) {
  json facts{
      {"exception", "RuntimeError"},
      {"message", "mat1 and mat2 shapes cannot be multiplied (1x90 and 40x5)"},
      {"module",
       {{"name", "head"}, {"type", "Linear"}, {"attributes", {{"in_features", 40}, {"out_features", 5}}}}},
      {"operands", {operand("x", "input", {1, 90})}}};
  EXPECT_EQ(explained(facts).fix.front(), "make `head` take what arrives: `nn.Linear(90, 5)`");
  facts["module"]["trained"] = true;
  EXPECT_EQ(explained(facts).fix,
            std::vector<std::string>{"`head` was trained with 40 features: give the model x of the size that "
                                     "it was trained with"});
  facts["in_hand"] = {{"sample", {{"batch", 3}, {"dataset_index", 7}}}};
  EXPECT_EQ(explained(facts).fix.front(),
            "the batches before had another size: bring this one to theirs (crop, pad or resize), so that "
            "`head` gets 40 features");
}

TEST(HostErrorWords, EinopsNamesTheSizesThatWereGiven) {
  const Finding f = explained(
      {{"exception", "RuntimeError"},
       {"message",
        " Error while processing rearrange-reduction pattern \"(n k) c -> n k c\".\n Input tensor shape: "
        "torch.Size([15, 8]). Additional info: {'n': 4, 'k': 5}.\n Shape mismatch, 15 != 20"}});
  EXPECT_EQ(f.cause, Cause::kShapeMismatch);
  EXPECT_EQ(
      f.summary,
      "einops: a dimension of the tensor [15, 8] is 15 long, but the sizes that were given ('n': 4, 'k': 5) "
      "make 20");
  EXPECT_EQ(f.fix.size(), 1U);
  const Finding dims = explained(
      {{"exception", "RuntimeError"}, {"message", "Wrong shape: expected 4 dims. Received 3-dim tensor."}});
  EXPECT_EQ(dims.summary, "einops: the pattern names 4 dimensions, the tensor has 3");
}

TEST(HostErrorWords, ANanThatTheBatchBringsIsNoneOfTheTraining) {
  json facts{{"exception", "ValueError"},
             {"message",
              "Expected parameter logits (Tensor of shape (4,)) of distribution Bernoulli(logits: "
              "torch.Size([4])) to satisfy the constraint Real(), but found invalid values:\n"
              "tensor([0.1, nan, 0.2, 0.3])"},
             {"element", {{"index", {1}}, {"value", "nan"}, {"bad", 1}, {"total", 4}}},
             {"weights", {{"name", ""}, {"bad", 0}, {"total", 2}}},
             {"sample", {{"batch", 2}, {"row", 1}, {"dataset_index", 9}, {"by", "row"}}}};
  const auto says_rate = [](const Finding& f) {
    return std::any_of(f.fix.begin(), f.fix.end(), [](const std::string& line) {
      return line.find("learning rate") != std::string::npos;
    });
  };
  EXPECT_TRUE(says_rate(explained(facts)));
  facts["sample"]["by"] = "rows";
  const Finding f = explained(facts);
  EXPECT_FALSE(says_rate(f));
  EXPECT_EQ(f.fix.front(),
            "the batch itself has NaN or Inf in that row: a missing value is filled in, or its row left out, "
            "where the data are read");
}

TEST(HostErrorWords, NumbersThatAreNotWholeAreNoIds) {
  json ids = operand("tokens", "input", {1, 20});
  json facts{
      {"exception", "RuntimeError"},
      {"message",
       "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but "
       "got torch.FloatTensor instead (while checking arguments for embedding)"},
      {"operands", {ids}}};
  EXPECT_EQ(explained(facts).fix.front(), "use `tokens.long()`");
  ids["whole"] = true;
  facts["operands"] = {ids};
  EXPECT_EQ(explained(facts).fix.front(), "use `tokens.long()`");
  ids["whole"] = false;
  facts["operands"] = {ids};
  EXPECT_EQ(explained(facts).fix,
            std::vector<std::string>{"tokens holds numbers that are not whole, so it holds no ids: give the "
                                     "call the tensor that does (a "
                                     "trial input: torch.randint(0, n, (1, 20)), n the rows of the table)"});
}

TEST(HostErrorWords, TheScaleThatNormalRefuses) {
  json facts{{"exception", "RuntimeError"},
             {"message", "normal expects all elements of std >= 0.0"},
             {"operands", {operand("sigma", "std", {8, 2})}},
             {"element", {{"index", {5, 1}}, {"value", -0.25}, {"bad", 1}, {"total", 16}}}};
  const Finding negative = explained(facts);
  EXPECT_EQ(negative.cause, Cause::kInvalidProbability);
  EXPECT_EQ(negative.summary, "normal: sigma[5, 1] is -0.25, but must be >= 0");
  EXPECT_EQ(negative.element->index, (std::vector<std::int64_t>{5, 1}));
  EXPECT_EQ(negative.fix.front(), "make it positive: `F.softplus(sigma) + 1e-6` or `sigma.exp()`");
  facts["element"] = {{"index", {0, 0}}, {"value", "nan"}, {"bad", 16}, {"total", 16}};
  facts["weights"] = {{"name", "actor.mlp.0.weight"}, {"bad", 64}, {"total", 64}};
  const Finding broken = explained(facts);
  EXPECT_EQ(broken.summary.find("normal: std=sigma [8, 2] holds NaN"), 0U) << broken.summary;
  EXPECT_NE(broken.summary.find("actor.mlp.0.weight"), std::string::npos) << broken.summary;
  EXPECT_EQ(
      explained({{"exception", "RuntimeError"}, {"message", "normal expects std >= 0.0, but found std -1"}})
          .summary,
      "normal: std is -1, but must be >= 0");
}

TEST(HostErrorWords, AFloatIntoAQuantizedLayer) {
  const Finding f = explained(
      {{"exception", "NotImplementedError"},
       {"message",
        "Could not run 'quantized::conv2d.new' with arguments from the 'CPU' backend. This could be "
        "because the "
        "operator doesn't exist for this backend"},
       {"operands", {operand("x", "input", {8, 3, 16, 16})}},
       {"module", {{"name", "conv"}, {"type", "Conv2d"}, {"attributes", json::object()}}}});
  EXPECT_EQ(f.cause, Cause::kDtypeMismatch);
  EXPECT_EQ(f.summary,
            "quantized conv2d: x is float32, but `conv` is quantized and takes a quantized tensor");
  EXPECT_EQ(
      f.fix.front(),
      "quantize it before the layer: torch.ao.quantization.QuantStub() in the model, called at the start of "
      "forward, before prepare and convert (DeQuantStub() behind the last quantized layer)");
  const Finding other = explained(
      {{"exception", "NotImplementedError"},
       {"message",
        "Could not run 'aten::add.out' with arguments from the 'QuantizedCPU' backend. This could be"}});
  EXPECT_EQ(other.cause, Cause::kDtypeMismatch);
  EXPECT_EQ(other.summary,
            "add: the input is quantized, and the operation has no kernel for quantized tensors");
  EXPECT_EQ(other.fix.front(),
            "dequantize it before the operation: DeQuantStub() in the model, or x.dequantize(); additions of "
            "quantized "
            "tensors go through torch.ao.nn.quantized.FloatFunctional");
}

TEST(HostErrorWords, AnInputThatStridesDoNotHalveEvenly) {
  const json library = {
      {{"file", "/x/train.py"}, {"line", 9}, {"function", "<module>"}, {"user", true}},
      {{"file", "/x/monai/segresnet.py"}, {"line", 7}, {"function", "forward"}, {"user", false}}};
  const std::string advice =
      "if the model goes down by strides and up again: its input needs sizes that are multiples of all its "
      "strides "
      "together (27 comes back as 28): pad or crop the input";
  const Finding sum = explained(
      {{"exception", "RuntimeError"},
       {"message",
        "The size of tensor a (28) must match the size of tensor b (27) at non-singleton dimension 2"},
       {"stack", library}});
  EXPECT_EQ(sum.fix, std::vector<std::string>{advice});
  const Finding joined =
      explained({{"exception", "RuntimeError"},
                 {"message",
                  "Sizes of tensors must match except in dimension 1. Expected size 28 but got size "
                  "27 for tensor number 1 in the list."},
                 {"stack", library}});
  EXPECT_EQ(joined.fix, std::vector<std::string>{advice});
  // 28 is nothing that 20 could come back as; and the user's own sum is the user's to change.
  const char* far =
      "The size of tensor a (28) must match the size of tensor b (21) at non-singleton dimension 2";
  EXPECT_NE(explained({{"exception", "RuntimeError"}, {"message", far}, {"stack", library}}).fix.front(),
            advice);
  const char* near =
      "The size of tensor a (28) must match the size of tensor b (27) at non-singleton dimension 2";
  EXPECT_NE(explained({{"exception", "RuntimeError"}, {"message", near}}).fix.front(), advice);
}

// No dimension of a table of positions can be another's: what it is added to is of another length.
TEST(HostErrorWords, ATableOfPositionsOfAnotherLength) {
  const auto fix = [](const char* call) {
    return explained({{"exception", "RuntimeError"},
                      {"message",
                       "The size of tensor a (105) must match the size of tensor b (77) at non-singleton "
                       "dimension 1"},
                      {"call", call}})
        .fix.at(0);
  };
  EXPECT_TRUE(
      fix("x + self.positional_embedding.to(cast_dtype)").starts_with("`self.positional_embedding` has"));
  EXPECT_TRUE(fix("hidden + pos_embed").starts_with("`pos_embed` has"));
  EXPECT_EQ(fix("x + position_encode(x)").find("position"), std::string::npos) << "a function";
  EXPECT_EQ(fix("x + self.embedding").find("position"), std::string::npos);
}

}  // namespace
}  // namespace trapline::diagnose
