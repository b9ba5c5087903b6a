// The table of libraries: rows are well formed, patterns match what they should, placeholders are filled.
#include <gtest/gtest.h>

#include <string>

#include "core/knobs.hpp"

namespace trapline {
namespace {

TEST(Knobs, RowsAreWellFormed) {
  for (const Knob& knob : knobs()) {
    EXPECT_NE(knob.who.find('.'), std::string_view::npos) << knob.who << ": a dotted class or function";
    EXPECT_NE(knob.who.front(), '*') << knob.who << ": a library has a name";
    EXPECT_FALSE(knob.advice.empty()) << knob.who;
    LibraryFact library;
    std::string name(knob.who);
    for (std::size_t at = name.find('*'); at != std::string::npos; at = name.find('*', at)) name[at] = 'x';
    library.owners = library.callers = {name};
    const std::string advice = knob_advice(knob.situation, library, {"7", "-1", "512"});
    EXPECT_FALSE(advice.empty()) << knob.who;
    for (const char* placeholder : {"{n}", "{label}", "{rows}"})
      EXPECT_EQ(advice.find(placeholder), std::string::npos) << advice;
  }
}

TEST(Knobs, APatternMatchesTheWholeName) {
  EXPECT_TRUE(matches("a.*.C", "a.b.c.C"));
  EXPECT_TRUE(matches("a.*", "a."));
  EXPECT_TRUE(matches("a*b*c", "aXbYbc"));
  EXPECT_FALSE(matches("a.C", "a.CC"));
  EXPECT_FALSE(matches("a.*.C", "a.C"));
  EXPECT_FALSE(matches("a", ""));
  EXPECT_FALSE(matches("*a*a*a*a*a*b", std::string(4096, 'a')));
}

TEST(Knobs, TheOwnerGoesBeforeTheCallerButForIgnoredLabels) {
  LibraryFact library;
  library.owners = {"segmentation_models_pytorch.decoders.unet.model.Unet",
                    "segmentation_models_pytorch.base.model.SegmentationModel"};
  library.callers = {"segmentation_models_pytorch.losses.dice.DiceLoss"};
  EXPECT_EQ(knob_advice(Situation::kClasses, library, {"4", "", ""}),
            "create the model with classes=4: smp.Unet(..., classes=4)");
  EXPECT_EQ(knob_advice(Situation::kIgnore, library, {"", "255", ""}), "DiceLoss(..., ignore_index=255)");
  EXPECT_EQ(knob_advice(Situation::kPositions, library, {"", "", "512"}), "");
}

TEST(Knobs, WhoMadeAModelOfAnotherLibraryGoesFirst) {
  LibraryFact library;
  library.owners = {"transformers.models.bert.modeling_bert.BertForSequenceClassification",
                    "transformers.modeling_utils.PreTrainedModel"};
  EXPECT_EQ(knob_advice(Situation::kClasses, library, {"4", "", ""}),
            "from_pretrained(..., num_labels=4), or num_labels in the config");
  library.callers = {"simpletransformers.classification.classification_model.ClassificationModel"};
  EXPECT_EQ(knob_advice(Situation::kClasses, library, {"4", "", ""}),
            "ClassificationModel(..., num_labels=4)");
}

// transformers' masked image modelling: the head has a row for each code, num_labels makes another one.
TEST(Knobs, ASettingOfAnotherSizeIsNotTheOne) {
  LibraryFact library;
  library.owners = {"transformers.models.beit.modeling_beit.BeitForMaskedImageModeling",
                    "transformers.modeling_utils.PreTrainedModel"};
  const KnobValues values{"33", "", "", 32};
  EXPECT_NE(knob_advice(Situation::kClasses, library, values), "") << "nothing is known";
  library.settings = {{"num_labels", {32}}};
  EXPECT_NE(knob_advice(Situation::kClasses, library, values), "") << "it is of that size";
  library.made_of = {"num_labels"};
  EXPECT_NE(knob_advice(Situation::kClasses, library, values), "") << "and makes the head";
  library.made_of = {"vocab_size"};
  EXPECT_EQ(knob_advice(Situation::kClasses, library, values), "") << "the same size by chance";
  library.made_of.reset();
  library.settings = {{"num_labels", {2}}};
  EXPECT_EQ(knob_advice(Situation::kClasses, library, values), "");
}

TEST(Knobs, ANumberThatStandsInTheSourceHasNoKnob) {
  LibraryFact library;
  library.owners = {"transformers.modeling_utils.PreTrainedModel"};
  library.made_of.emplace();
  library.settings = {{"num_labels", {2}}};
  EXPECT_TRUE(library.fixed());
  EXPECT_EQ(knob_advice(Situation::kClasses, library, {"3", "", "", 2}), "");
}

TEST(Knobs, ARowMayBeAboutOneLayer) {
  LibraryFact library;
  library.owners = {
      "diffusers.models.unets.unet_2d_condition.UNet2DConditionModel:down_blocks.1.attentions.0."
      "transformer_blocks.0.attn2.to_k"};
  EXPECT_EQ(
      knob_advice(Situation::kWidth, library, {"48", "", "32"}),
      "the text is 48 wide: create the model with cross_attention_dim=48, or take the text encoder that "
      "it was made for (32 wide)");
  library.owners = {"diffusers.models.unets.unet_2d_condition.UNet2DConditionModel:time_embedding.linear_1"};
  EXPECT_EQ(knob_advice(Situation::kWidth, library, {"48", "", "32"}), "");
}

TEST(Knobs, OfAGraphOnlyWhatIsIndexedByTheEdges) {
  LibraryFact library;
  const std::string lifts = "torch_geometric.nn.conv.message_passing.MessagePassing._index_select_safe";
  const std::string passing = "torch_geometric.nn.conv.message_passing.MessagePassing";
  library.callers = {lifts, "torch_geometric.nn.conv.sage_conv.SAGEConv", passing};
  EXPECT_TRUE(knob_advice(Situation::kIndex, library, {"8", "", ""})
                  .starts_with("edge_index counts the rows of x from 0"));
  library.callers = {"torch_geometric.nn.conv.rgcn_conv.FastRGCNConv.message",
                     "torch_geometric.nn.conv.rgcn_conv.FastRGCNConv", passing};
  EXPECT_TRUE(knob_advice(Situation::kIndex, library, {"8", "", ""})
                  .starts_with("create the layer with num_relations=8"));
  library.callers = {lifts, passing, "torch_geometric.nn.models.lightgcn.LightGCN"};
  EXPECT_TRUE(knob_advice(Situation::kIndex, library, {"68", "", ""}).starts_with("LightGCN(num_nodes=68"));
  library.callers = {"torch_geometric.nn.conv.sage_conv.SAGEConv.message", passing};
  EXPECT_EQ(knob_advice(Situation::kIndex, library, {"8", "", ""}), "");
}

TEST(Knobs, TheNearerRowOfOneLibraryWins) {
  LibraryFact library;
  library.owners = {"transformers.models.bert.modeling_bert.BertModel",
                    "transformers.modeling_utils.PreTrainedModel",
                    "sentence_transformers.sentence_transformer.model.SentenceTransformer"};
  EXPECT_EQ(knob_advice(Situation::kPositions, library, {"", "", "64"}),
            "model.max_seq_length = 64: longer texts are then cut off");
}

TEST(Knobs, ADecoderReadsTheLabels) {
  LibraryFact library;
  library.owners = {"transformers.models.bart.modeling_bart.BartDecoder",
                    "transformers.modeling_utils.PreTrainedModel"};
  EXPECT_NE(knob_advice(Situation::kPositions, library, {"", "", "64"}).find("text_target=..."),
            std::string::npos);
  library.owners[0] = "transformers.models.bart.modeling_bart.BartEncoder";
  EXPECT_EQ(knob_advice(Situation::kPositions, library, {"", "", "64"}).find("text_target=..."),
            std::string::npos);
}

TEST(Knobs, AnIndexOfALossIsNoLabelUnlessTheLossHasClasses) {
  LibraryFact library;
  library.callers = {"pytorch_metric_learning.losses.triplet_margin_loss.TripletMarginLoss"};
  EXPECT_EQ(knob_advice(Situation::kIndex, library, {"24", "23", ""}), "");
  library.callers = {"pytorch_metric_learning.losses.arcface_loss.ArcFaceLoss",
                     "pytorch_metric_learning.losses.large_margin_softmax_loss.LargeMarginSoftmaxLoss"};
  EXPECT_EQ(knob_advice(Situation::kIndex, library, {"24", "23", ""}),
            "create the loss with num_classes=24: the labels are its classes");
}

TEST(Knobs, ACrfHasNoHoles) {
  LibraryFact library;
  library.callers = {"torchcrf.CRF"};
  EXPECT_NE(
      knob_advice(Situation::kIgnore, library, {"", "-100", ""}).find("its mask may only end a sequence"),
      std::string::npos);
}

}  // namespace
}  // namespace trapline
