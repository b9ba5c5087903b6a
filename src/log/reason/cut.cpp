#include "log/reason/cut.hpp"

#include <vector>

#include "log/reason/decide.hpp"
#include "log/reason/doubts.hpp"

namespace trapline {

const Traceback* cut_traceback(const EventStream& stream) {
  for (const Traceback& traceback : stream.tracebacks()) {
    // A logger that shows where it was called is no error.
    if (!traceback.frames.empty() && !traceback.closed && !traceback.calm) return &traceback;
  }
  return nullptr;
}

Finding finding_of_cut(const EventStream& stream, const Traceback& traceback) {
  Finding finding;
  const SurfaceStatement surface = surface_of(&traceback, {});
  EventContext scene;
  scene.traceback = &traceback;
  scene.surface = surface;
  Decision decision;
  if (surface.statement == Statement::kLaunches) decision = decide_unseen_assert(scene);
  decision.device_assert.reset();
  decision.certainty = Certainty::kUnknown;  // the error that is missing may be any
  if (asserts_of_host(traceback.frames.back().frame.code)) {
    decision.cause = Cause::kNotCuda;
    decision.also = {Cause::kShapeMismatch};
    decision.certainty = Certainty::kLikely;
  }
  finding.cause = decision.cause;
  finding.also = decision.also;
  std::erase(finding.also, Cause::kInsufficientEvidence);
  finding.certainty = decision.certainty;
  finding.op = decision.op;
  finding.argument = decision.argument;
  for (const LogFrame& frame : traceback.frames) finding.stack.push_back(frame.frame);
  if (const LogFrame* user = traceback.deepest_user()) finding.origin = user->frame;
  if (stream.rank >= 0) finding.process = Process{stream.rank, {}, stream.host, {}};
  finding.evidence.push_back({stream.source, traceback.last, traceback.frames.back().frame.code});
  finding.summary = "the traceback is cut off before its error";
  if (!decision.op.empty()) finding.summary += "; its last frame is in " + decision.op;
  finding.fix.emplace_back("copy the log to its end");
  return finding;
}

}  // namespace trapline
