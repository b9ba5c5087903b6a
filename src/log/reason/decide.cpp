#include "log/reason/decide.hpp"

#include <re2/re2.h>

#include <algorithm>

#include "catalogue/patterns.hpp"
#include "catalogue/xids.hpp"
#include "diagnose/diagnose.hpp"
#include "log/reason/decide_assert.hpp"
#include "log/reason/decide_exception.hpp"
#include "log/reason/distributions.hpp"
#include "log/reason/doubts.hpp"
#include "log/reason/host_error.hpp"
#include "log/reason/topics.hpp"

namespace trapline {
namespace {

using enum Cause;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Cause cause_of_call(std::string_view op) {
  if (op == "embedding" || op == "embedding_bag") return kEmbeddingIndexOutOfRange;
  if (op.starts_with("nll_loss") || op == "cross_entropy") return kLabelOutOfRange;
  if (op == "binary_cross_entropy") return kLossInputOutOfRange;
  if (op == "multinomial") return kInvalidProbability;
  return kIndexOutOfRange;
}

void guess(Decision& d, Cause cause, std::vector<Cause> also, std::string_view why) {
  d.cause = cause;
  d.also = std::move(also);
  d.also.push_back(kInsufficientEvidence);
  d.also.push_back(kPoisonedContext);
  d.certainty = Certainty::kUnknown;
  d.because = why;
}

Decision decide_host_value(const Event& event, const EventContext& scene);

// The host says that an assertion fired, but its own line is not there.
Decision decide_report(const Event& event, const EventContext& scene) {
  Decision d;
  d.also = {kPoisonedContext};
  if (event.wording == nullptr || event.wording->kind != WordingKind::kFollower) d.device_assert = true;
  d.synchronous = scene.blocking;
  if (scene.other_run != nullptr) {
    EventContext other = scene;
    other.traceback = scene.other_traceback;
    const Decision there = decide_host_value(*scene.other_run, other);
    guess(d, there.cause, there.also, "another run of the program, on the CPU, says so");
    return d;
  }
  const SurfaceStatement& s = scene.surface;
  if (s.statement == Statement::kLaunches) {
    d.op = s.op;
    d.argument = s.argument;
    if (s.only_classes && s.op.starts_with("scatter")) {
      guess(d, kLabelOutOfRange, {kIndexOutOfRange, kNumClassesMismatch},
            "it surfaced where something is scattered over the classes");
      return d;
    }
    d.cause = cause_of_call(s.op);
    d.certainty = Certainty::kLikely;
    d.also = {kInsufficientEvidence, kPoisonedContext};
    const bool is_cost =  // a matcher's costs are indexed by the targets' classes
        scene.traceback != nullptr && speaks_of(*scene.traceback, Topic::kMatching);
    if (d.cause == kIndexOutOfRange && s.labels && (s.op != "index" || is_cost)) {
      d.cause = kLabelOutOfRange;
      d.also.insert(d.also.begin(), {kIndexOutOfRange, kNumClassesMismatch});
    }
    if (d.cause == kEmbeddingIndexOutOfRange) {
      decide_embedding(scene, d);
      d.also.push_back(kInsufficientEvidence);
    }
    d.because = "the statement at which it surfaced starts such an operation itself";
    return d;
  }
  if (scene.hints.has(Hint::kLabelsPrinted)) {
    guess(d, kLabelOutOfRange, {kNumClassesMismatch}, "a check in the program complains about labels");
  } else if (scene.blocking) {
    // Blocking launches: the frame is right, but it starts nothing that can assert by itself.
    d.also.clear();
    if (scene.traceback != nullptr && speaks_of(*scene.traceback, Topic::kSampling)) {
      guess(d, kInvalidProbability, {kIndexOutOfRange},
            "launches were blocking and it surfaced where tokens are sampled");
      d.also.pop_back();  // a blocking launch does not report an older assertion
    }
  } else if (s.statement == Statement::kReadsLoss && scene.hints.has(Hint::kVocabulary)) {
    guess(d, kEmbeddingIndexOutOfRange, {kLabelOutOfRange},
          "this is a language model, and its table is the first thing that ids reach");
  } else if (scene.traceback != nullptr && speaks_of(*scene.traceback, Topic::kLanguageModel) &&
             s.statement == Statement::kReadsLoss) {
    // Token ids reach a language model's loss as labels, too: either may be wrong.
    d.also = {kPoisonedContext, kEmbeddingIndexOutOfRange, kLabelOutOfRange};
  } else if (s.statement == Statement::kReadsLoss || s.statement == Statement::kInLoss) {
    guess(d, kLabelOutOfRange, {kNumClassesMismatch}, "it surfaced where the loss is read");
  } else if (s.statement == Statement::kEmbeds) {
    guess(d, kEmbeddingIndexOutOfRange, {kPositionIndexOutOfRange}, "it surfaced where embeddings are used");
  } else if (s.statement == Statement::kIndexes) {
    guess(d, kIndexOutOfRange, {}, "it surfaced where an index is handled");
  } else if (scene.traceback != nullptr && speaks_of(*scene.traceback, Topic::kBoxes)) {
    guess(d, kIndexOutOfRange, {}, "box assigners and samplers index by computed indices");
  } else if (s.statement != Statement::kCannotFail && scene.traceback != nullptr &&
             speaks_of(*scene.traceback, Topic::kSegmentation)) {
    guess(d, kLabelOutOfRange, {kNumClassesMismatch},
          "this is a segmentation program, and masks often hold values outside the classes");
  } else if (s.statement == Statement::kCannotFail ||
             (scene.traceback == nullptr &&
              (contains(event.text, "atchdog") || contains(event.text, "failed to synchronize") ||
               contains(event.text, "NCCL WARN Cuda failure")))) {
    d.cause = kPoisonedContext;
    d.also = {kInsufficientEvidence};
    // What came before such a statement, nothing tells; a watchdog has not even a program.
    d.certainty = s.statement == Statement::kCannotFail ? Certainty::kUnknown : Certainty::kLikely;
    d.because = "the statement at which it surfaced has no assertion of its own";
  }
  return d;
}

std::string_view operator_in(std::string_view code) {
  if (contains(code, " * ")) return "mul";
  if (contains(code, " + ")) return "add";
  if (contains(code, " - ")) return "sub";
  if (contains(code, " / ")) return "div";
  return {};
}

bool is_index(Cause cause) {
  return cause == kLabelOutOfRange || cause == kNumClassesMismatch || cause == kEmbeddingIndexOutOfRange ||
         cause == kPositionIndexOutOfRange || cause == kIndexOutOfRange;
}

// x86's "integer indefinite": what a conversion of NaN, or of a number beyond the type, gives.
bool is_cast_of_nan(const Event& event) {
  return contains(event.text, "-2147483648") || contains(event.text, "-9223372036854775808");
}

// "indices[0,529] = 529 is not in [0, 512)": an index that is the number of its own column is a position.
bool is_its_own_position(const Event& event) {
  static const RE2* const index =
      new RE2(R"re(\bindices\[(?:\d+,)+(\d+)\] = (\d+) is not in \[0,)re", RE2::Latin1);
  std::string column, value;
  return RE2::PartialMatch(event.text, *index, &column, &value) && column == value && column.size() > 1;
}

Decision decide_host_value(const Event& event, const EventContext& scene) {
  Decision d;
  const WordingRow& row = *event.wording;
  d.cause = row.cause;
  d.certainty = row.certainty;
  d.device_assert = false;
  d.synchronous = true;
  d.op = row.op;
  d.argument = row.argument;
  if (event.host != nullptr) {
    d.live = diagnose::finding_of(host_error_of(event, scene));
    if (d.live) d.cause = d.live->cause;
  }
  decide_distribution(event, d);
  if (is_index(d.cause) && is_cast_of_nan(event)) {
    d.also = {d.cause};
    d.cause = kNanToIndex;
    d.certainty = Certainty::kLikely;
    d.because = "the smallest integer is what NaN becomes when it is cast to one";
    d.live.reset();
  }
  const std::string framed = scene.traceback != nullptr ? op_of_frames(*scene.traceback) : std::string();
  switch (row.effect.refine) {
    case Refine::kNothing:
    case Refine::kHardwareByNumber:
      break;
    case Refine::kOpOfStatement:
      if (scene.surface.statement != Statement::kLaunches) break;
      d.op = scene.surface.op;
      if (scene.surface.labels && d.op.starts_with("scatter")) {
        d.cause = kLabelOutOfRange;
        d.also = {kIndexOutOfRange, kNumClassesMismatch};
        d.certainty = Certainty::kLikely;
        d.because = "the scattered index holds labels";
        if (d.live) {
          d.live->cause = kLabelOutOfRange;
          d.live->summary += "; the scattered index holds labels";
        }
      }
      break;
    case Refine::kTokenOrPosition:
      decide_embedding(scene, d);
      d.certainty = Certainty::kLikely;
      break;
    case Refine::kTableOrIndex:
      if (is_its_own_position(event)) {
        d.also = {kEmbeddingIndexOutOfRange, kIndexOutOfRange};
        d.cause = kPositionIndexOutOfRange;
        d.certainty = Certainty::kLikely;
        d.op = "embedding";
        break;
      }
      if (scene.traceback != nullptr && speaks_of(*scene.traceback, Topic::kPositions)) {
        d.also = {kEmbeddingIndexOutOfRange};
        d.cause = kPositionIndexOutOfRange;
        d.certainty = Certainty::kLikely;
        d.op = "embedding";
        break;
      }
      if (scene.hints.has(Hint::kTableLookup) || contains(event.text, "embedding") ||
          (scene.traceback != nullptr && speaks_of(*scene.traceback, Topic::kEmbeddings))) {
        d.cause = kEmbeddingIndexOutOfRange;
        d.op = "embedding";
      }
      break;
    case Refine::kLabelOrClasses:
      d.also = {kNumClassesMismatch};
      break;
    case Refine::kRowsOrClasses: {
      static const RE2* const sizes =
          new RE2(R"re(logits_size=\[(\d+),\d+\] labels_size=\[(\d+),\d+\])re", RE2::Latin1);
      std::string rows, label_rows;
      if (RE2::PartialMatch(event.text, *sizes, &rows, &label_rows) && rows == label_rows) {
        d.cause = kNumClassesMismatch;
        d.also = {kShapeMismatch};
        d.certainty = Certainty::kLikely;
      }
      break;
    }
    case Refine::kLinearInFrames:
      if (framed == "linear") d.op = framed;
      break;
    case Refine::kOperatorInCode:
      if (scene.traceback != nullptr && scene.traceback->deepest() != nullptr) {
        if (const std::string_view op = operator_in(scene.traceback->deepest()->frame.code); !op.empty())
          d.op = op;
      }
      break;
    case Refine::kOpOfFrames:
      if (!framed.empty()) d.op = framed;
      if (d.op.empty()) d.argument.clear();
      break;
    case Refine::kMethodInMessage: {
      static const RE2* const where =
          new RE2(R"re(argument for argument (\w+) in method wrapper_(?:CUDA_+)?_?(\w+?)\)?(?:$|[\s)]))re");
      RE2::PartialMatch(event.text, *where, &d.argument, &d.op);
      break;
    }
  }
  return d;
}

// The number of an Xid tells the GPU's own faults from those that a program causes.
void decide_xid(const std::string& text, Decision& d) {
  const XidRow* const xid = xid_in(text);
  if (xid == nullptr) return;
  d.because = xid->meaning;
  switch (xid->tells) {
    case XidTells::kHardware:
      d.certainty = Certainty::kDetermined;
      break;
    case XidTells::kDriver:
      break;
    case XidTells::kMemoryAccess:
      d.cause = kIllegalMemoryAccess;
      d.certainty = Certainty::kLikely;
      break;
    case XidTells::kProgram:
    case XidTells::kAfter:
    case XidTells::kNotice:
      d.cause = kInsufficientEvidence;
      d.certainty = Certainty::kUnknown;
      d.also = {kIllegalMemoryAccess, kHardwareOrDriver};
      break;
  }
}

// Whether the device may report it after the call that caused it has returned.
bool may_be_late(Cause cause) {
  return cause == kIllegalMemoryAccess || cause == kHardwareOrDriver || cause == kInsufficientEvidence;
}

Decision decide_wording(const Event& event, const EventContext& scene) {
  const WordingRow& row = *event.wording;
  Decision d;
  switch (row.kind) {
    case WordingKind::kDeviceAssert:
      return decide_report(event, scene);
    case WordingKind::kFollower:
      if (row.effect.meaning == Meaning::kOwn) return decide_report(event, scene);
      break;
    case WordingKind::kHostValue:
      return decide_host_value(event, scene);
    case WordingKind::kHost:
      if (event.host != nullptr) return decide_host_value(event, scene);
      break;
    default:
      break;
  }
  d.cause = row.cause;
  d.certainty = row.certainty;
  d.op = row.op;
  d.argument = row.argument;
  if (row.device_assert != Device::kUnknown) d.device_assert = row.device_assert == Device::kYes;
  d.synchronous = scene.blocking || (d.cause != kIllegalMemoryAccess && d.cause != kHardwareOrDriver);
  if (row.effect.refine == Refine::kHardwareByNumber) decide_xid(event.text, d);
  if (row.kind == WordingKind::kPeer) {
    d.op = event.op;
    // A launcher only tells that a process is gone. Of a rank that lost another one the link is never out of
    // the question, and of one that only waited the program itself is not: not all ranks need to have come
    // this way.
    if (!row.effect.by_launcher)
      d.also.push_back(row.cause == kPeerFailure ? kHardwareOrDriver : kPeerFailure);
    if (row.effect.by_launcher || row.effect.complaint == Complaint::kWaitedFor) d.also.push_back(kNotCuda);
  }
  if (d.cause == kHardwareOrDriver && d.certainty == Certainty::kLikely && row.kind == WordingKind::kFault)
    d.also = {kIllegalMemoryAccess, kInsufficientEvidence};
  if (d.cause == kArchMismatch && d.certainty == Certainty::kUnknown)
    d.also = {kHardwareOrDriver, kInsufficientEvidence};
  if (d.cause == kIllegalMemoryAccess) d.also = {kHardwareOrDriver};
  if (const MeaningRow* const meaning = find_meaning(row.effect.meaning)) {
    d.also.assign(meaning->others().begin(), meaning->others().end());
    d.synchronous = row.kind != WordingKind::kFault || scene.blocking || !may_be_late(d.cause);
  }
  // A library's own check: the call that made it is the operation.
  if (d.cause == kCustomKernelAssert && scene.traceback != nullptr && scene.traceback->deepest() != nullptr)
    d.op = scene.traceback->deepest()->frame.function;
  return d;
}

// A message of PyTorch's in a line that is no exception's: in another program it may be about a value that
// came from its GPU.
bool is_out_of_place(const Event& event, const Decision& d) {
  const WordingRow& row = *event.wording;
  return row.kind == WordingKind::kHost && row.effect.meaning == Meaning::kOwn && event.host == nullptr &&
         event.exception.empty() && d.cause == kNotCuda && d.certainty < Certainty::kLikely;
}

// Whether a row's words are a name or a path in the message of an exception that the row does not know.
bool is_only_named(const Event& event) {
  const WordingRow& row = *event.wording;
  const bool is_sure = row.certainty == Certainty::kDetermined || row.kind == WordingKind::kDeviceAssert;
  const std::string_view last = std::string_view(event.exception).substr(event.exception.rfind('.') + 1);
  return is_sure && (row.kind == WordingKind::kFault || row.kind == WordingKind::kDeviceAssert) &&
         is_of_program(event.exception) && !contains(row.sample, last);
}

}  // namespace

Decision decide(const Event& event, const EventContext& scene) {
  switch (event.kind) {
    case EventKind::kAssert:
      return decide_assert(event, scene);
    case EventKind::kWording: {
      if (is_only_named(event)) return decide_exception(event, scene);
      if (event.wording->effect.meaning == Meaning::kSomething && advises_option(event))
        return decide_exception(event, scene);
      Decision d = decide_wording(event, scene);
      // Who killed it is not known; that its peers lost it by that, is.
      if (event.wording->kind == WordingKind::kDeath && d.cause == kNotCuda && scene.beside_peers)
        d.certainty = Certainty::kLikely;
      if (is_out_of_place(event, d)) d.certainty = Certainty::kLikely;
      // Of a message that is legible in part the rest may say something else.
      if (is_short_text(event) && d.certainty < Certainty::kLikely) d.certainty = Certainty::kLikely;
      if (event.phrase_only && d.certainty < Certainty::kLikely) d.certainty = Certainty::kLikely;
      if (d.certainty == Certainty::kDetermined && (is_bare_number(event) || is_tiny_refusal(event))) {
        d.certainty = Certainty::kLikely;
        d.also.push_back(kNotCuda);
      }
      return d;
    }
    case EventKind::kException:
      return decide_exception(event, scene);
    case EventKind::kHostAssert:
      break;
  }
  Decision d;
  // What it asserts may well be what a GPU gave, or a size that went to it.
  d.cause = kNotCuda;
  d.certainty = Certainty::kLikely;
  d.device_assert = false;
  d.synchronous = true;
  return d;
}

Decision decide_unseen_assert(const EventContext& scene) { return decide_report({}, scene); }

Precedence precedence(const Event& event) {
  switch (event.kind) {
    case EventKind::kAssert:
      return Precedence::kAssert;
    case EventKind::kHostAssert:
      return Precedence::kHost;
    case EventKind::kException:
      return Precedence::kException;
    case EventKind::kWording:
      break;
  }
  switch (event.wording->kind) {
    case WordingKind::kFault:
    case WordingKind::kDeviceAssert:
    case WordingKind::kHostValue:
      return Precedence::kFailure;
    case WordingKind::kHost:
      return Precedence::kHost;
    case WordingKind::kFollower:
      // NCCL's way back through its calls: a line of what failed, its own or a peer's, tells more.
      if (contains(event.text, "NCCL INFO ")) return Precedence::kBeside;
      return Precedence::kFollower;
    case WordingKind::kPeer:
      return Precedence::kPeer;
    case WordingKind::kDeath:
      return event.wording->cause == kInsufficientEvidence ? Precedence::kEnded : Precedence::kDeath;
    case WordingKind::kTrouble:
      return Precedence::kTrouble;
    case WordingKind::kContext:
      if (event.wording->effect.refine == Refine::kHardwareByNumber) {
        const XidRow* const xid = xid_in(event.text);
        if (xid != nullptr && xid->tells == XidTells::kHardware) return Precedence::kFailure;
        // It says why a process died; what the process itself says tells more.
        if (xid != nullptr && (xid->tells == XidTells::kDriver || xid->tells == XidTells::kMemoryAccess))
          return Precedence::kDriver;
      }
      return event.wording->cause == kInsufficientEvidence ? Precedence::kNever : Precedence::kBeside;
    case WordingKind::kHint:
    case WordingKind::kEvidence:
      break;
  }
  return Precedence::kNever;
}

}  // namespace trapline
