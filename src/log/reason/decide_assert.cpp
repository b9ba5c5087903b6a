#include "log/reason/decide_assert.hpp"

#include "log/reason/topics.hpp"

namespace trapline {
namespace {

using enum Cause;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

void label_because(Decision& d, std::string_view why) {
  d.also = {d.cause, kNumClassesMismatch};
  d.cause = kLabelOutOfRange;
  d.certainty = Certainty::kLikely;
  d.because = why;
}

// Since 1.13 ScatterGatherKernel.cu has one kernel for both.
constexpr std::string_view kGatherOrScatter = "gather or scatter";

void decide_index(const Event& event, const EventContext& scene, Decision& d) {
  const Traceback* const t = scene.traceback;
  if (t != nullptr && speaks_of(*t, Topic::kPositions)) {
    d.also = {d.cause};
    d.cause = kPositionIndexOutOfRange;
    d.certainty = Certainty::kLikely;
    d.because = "the frames handle positions";
  } else if (scene.hints.has(Hint::kNan)) {
    d.also = {d.cause, kLabelOutOfRange};
    d.cause = kNanToIndex;
    d.certainty = Certainty::kLikely;
    d.because = "NaN was printed before the index failed";
  } else if (scene.hints.has(Hint::kClassIds)) {
    d.also = {kLabelOutOfRange, d.cause};
    d.cause = kNumClassesMismatch;
    d.certainty = Certainty::kLikely;
    d.because = "the data set's category ids do not run from 1 to the number of classes";
  } else if (d.op == "index" && scene.hints.has(Hint::kDetection) && scene.hints.has(Hint::kFirstBatch) &&
             !scene.hints.has(Hint::kLaterBatch)) {
    label_because(d, "a detector's assigner indexes by class, and the first batch failed");
  } else if (d.op == "scatter") {
    const bool fill = event.assert_row != nullptr && (contains(event.assert_row->kernel, "ScatterFill") ||
                                                      contains(event.assert_row->kernel, "scatterFill") ||
                                                      (event.file_line >= 170 && event.file_line != 144));
    const bool labels = scene.surface.labels || scene.surface.statement == Statement::kReadsLoss ||
                        scene.hints.has(Hint::kSegmentation) ||
                        (t != nullptr && speaks_of(*t, Topic::kSegmentation));
    if (fill && labels)
      label_because(d, "scatter_ with a constant is one-hot encoding, and the surroundings speak of labels");
  } else if (d.op == "gather" || d.op == kGatherOrScatter) {
    const std::string_view call = scene.surface.op;
    if (call != "gather" && (d.op == "gather" || !call.starts_with("scatter"))) return;
    if (scene.surface.labels) {
      label_because(
          d, call == "gather" ? "the gathered index holds labels" : "the scattered index holds labels");
    }
    d.op = call;  // one kernel serves both: the statement at which it surfaced is such a call
  }
}

// What stands behind "Assertion `false` failed."
std::string_view behind_failed(std::string_view text) {
  const std::size_t at = text.find("failed");
  return at == std::string_view::npos ? std::string_view() : text.substr(at + 6);
}

// What a custom kernel's words are about. A condition is an expression: only labels are named in it; a
// message is a sentence.
Cause cause_told(std::string_view words, bool is_sentence) {
  if (speaks_of(words, Topic::kLabels)) return kLabelOutOfRange;
  if (!is_sentence) return kCustomKernelAssert;
  const std::string low = lower(words);
  if (speaks_of(words, Topic::kEmbeddings) || has_word(low, "ids") || has_word(low, "vocabulary"))
    return kEmbeddingIndexOutOfRange;
  if (has_word(low, "index") || has_word(low, "indices") || has_word(low, "idx")) return kIndexOutOfRange;
  return kCustomKernelAssert;
}

}  // namespace

void decide_embedding(const EventContext& scene, Decision& d) {
  const bool framed = scene.traceback != nullptr && speaks_of(*scene.traceback, Topic::kPositions);
  // Generated ids come from the model's own outputs and are inside its table; its learned positions are not
  // endless.
  const bool position = framed || scene.hints.has(Hint::kTooLong) || scene.hints.has(Hint::kGeneration);
  d.also = {kPositionIndexOutOfRange, kIndexOutOfRange};
  if (position) {
    d.also = {d.cause, kIndexOutOfRange};
    d.cause = kPositionIndexOutOfRange;
    d.because =
        framed ? "the frames look up positions"
        : scene.hints.has(Hint::kTooLong)
            ? "a message says that the sequence is longer than the model allows"
            : "generated ids stay inside the vocabulary, but the sequence grows beyond learned positions";
  }
  if (d.certainty == Certainty::kDetermined) d.certainty = Certainty::kLikely;
}

Decision decide_assert(const Event& event, const EventContext& scene) {
  Decision d;
  d.device_assert = true;
  d.synchronous = scene.blocking;
  const AssertRow* const row = event.assert_row;
  if (row == nullptr) {
    if (event.known_file) {
      d.also = {kPoisonedContext};
      return d;  // a new or unreadable assertion of a known file
    }
    d.cause = kCustomKernelAssert;
    // The compiler's own assert() names block and thread; a line without them may be the host's.
    d.certainty = event.places.empty() ? Certainty::kLikely : Certainty::kDetermined;
    if (event.places.empty()) d.also = {kNotCuda};
    if (event.cut) {  // what is missing could have told another story
      d.certainty = Certainty::kLikely;
      d.also = {kInsufficientEvidence};
    }
    // The kernel's own words may say more: a loss that tests its label. A condition that says nothing leaves
    // it to the message behind it.
    const bool is_mute = event.condition == "false" || event.condition == "0";
    if (const Cause told = cause_told(is_mute ? behind_failed(event.text) : event.condition, is_mute);
        told != kCustomKernelAssert) {
      d.also = {d.cause};
      d.cause = told;
      d.certainty = Certainty::kLikely;
      d.because = is_mute ? "the message behind the kernel's condition names it"
                          : "the custom kernel's condition tests a label";
    }
    return d;
  }
  d.cause = row->cause;
  d.certainty = row->certainty;
  d.op = row->op;
  d.argument = row->argument;
  if (!event.by_condition && d.certainty == Certainty::kDetermined) d.certainty = Certainty::kLikely;
  switch (d.cause) {
    case kLabelOutOfRange:
      d.also = {kNumClassesMismatch};
      break;
    case kEmbeddingIndexOutOfRange:
      if (row->certainty != Certainty::kDetermined) decide_embedding(scene, d);
      break;
    case kIndexOutOfRange:
      if (event.by_condition) decide_index(event, scene, d);
      if (d.cause == kIndexOutOfRange && d.op == "index") d.also = {kLabelOutOfRange, kNumClassesMismatch};
      if (d.cause == kIndexOutOfRange &&
          (d.op == "gather" || d.op.starts_with("scatter") || d.op == kGatherOrScatter))
        d.also = {kLabelOutOfRange};
      // That it may have been a label leaves the cause open, however sure the place is.
      if (!d.also.empty() && d.certainty == Certainty::kDetermined) d.certainty = Certainty::kLikely;
      break;
    case kLossInputOutOfRange:
    case kInvalidProbability:
      d.also = {kNanToIndex, kNonFiniteValue};  // a NaN fails the same comparison
      break;
    case kCompiledIndexAssert:
      d.also = {kEmbeddingIndexOutOfRange, kLabelOutOfRange};
      break;
    case kInsufficientEvidence:
      // torch._assert_async without its message: what was tested shows in the call.
      if (d.op == "_assert_async" && scene.traceback != nullptr &&
          speaks_of(*scene.traceback, Topic::kSampling)) {
        d.cause = kInvalidProbability;
        d.certainty = Certainty::kLikely;
        d.also = {kInsufficientEvidence};
        d.op = "multinomial";
        d.argument = "probs";
        d.because = "sampling tests its probabilities in this way";
      } else {
        d.op.clear();
        d.argument.clear();
      }
      break;
    default:
      break;
  }
  return d;
}

}  // namespace trapline
