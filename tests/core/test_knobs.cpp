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
    EXPECT_EQ(advice.find_first_of('{'), knob.advice.find("{column") == std::string_view::npos
                                             ? std::string::npos
                                             : advice.find("{column"))
        << advice;
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

TEST(Knobs, TheNearerRowOfOneLibraryWins) {
  LibraryFact library;
  library.owners = {"transformers.models.bert.modeling_bert.BertModel",
                    "transformers.modeling_utils.PreTrainedModel",
                    "sentence_transformers.sentence_transformer.model.SentenceTransformer"};
  EXPECT_EQ(knob_advice(Situation::kPositions, library, {"", "", "64"}),
            "model.max_seq_length = 64: longer texts are then cut off");
}

}  // namespace
}  // namespace trapline
