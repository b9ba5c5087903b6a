// How a program went on after an error that it printed.
#include <re2/re2.h>

#include <string>
#include <string_view>

#include "log/events/event_stream.hpp"

namespace trapline {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

// mmcv's loader (runner/checkpoint.py) tells what did not fit and goes on, where it raises nothing.
bool EventStream::is_loaders_note(const WordingRow& row, const Line& origin) const {
  constexpr std::int64_t kNear = 40;  // lines
  const bool is_state = row.cause == Cause::kIncompleteCheckpoint || row.cause == Cause::kShapeMismatch;
  return is_state && loaders_note_ > 0 && origin.number - loaders_note_ < kNear && !frames_.closed_now();
}

// "Traceback (most recent call last)" is no more of a failure than the exception that it leads to.
void EventStream::warn_head(int traceback) {
  for (Event& head : events_) {
    const bool is_weak = head.wording != nullptr && head.wording->effect.meaning == Meaning::kErrorLine;
    head.warned = head.warned || (is_weak && traceback >= 0 && head.traceback == traceback);
  }
}

// CPython's PyErr_FormatUnraisable: of destructors and callbacks, which nobody can catch from. Only what
// begins right behind its line: where lines are missing, the exception may be another.
bool EventStream::is_unraisable(const Line& origin) const {
  if (unraisable_ == 0 || !frames_.closed_now()) return false;
  const int current = frames_.current();
  const std::int64_t first =
      current < 0 ? origin.number : frames_.tracebacks()[static_cast<std::size_t>(current)].first;
  return first == unraisable_ + 1;
}

// A program that says how it goes on after an exception: a server that answers (vllm/exceptions.py,
// fastapi/exceptions.py: what a client asked was refused), ComfyUI (nodes.py) without a node.
void EventStream::note_going_on(std::string_view text, const Line& origin) {
  constexpr std::int64_t kJustBefore = 5;  // lines
  if (text.starts_with("Exception ignored ")) unraisable_ = origin.number;
  const bool is_answer = contains(text, "HTTP/1.1");
  const bool is_node = contains(text, "Cannot import ") && contains(text, " module for custom nodes");
  // huggingface_hub: utils/_http.py
  const bool is_other_way = contains(text, "alling back to ") || contains(text, "rying to resume") ||
                            (contains(text, "etrying in ") && contains(text, "[Retry "));
  if (contains(text, "loaded state dict do not match exactly") && !contains(text, "Error"))
    loaders_note_ = origin.number;
  if (is_other_way) {
    for (Event& event : events_) {
      if (event.wording == nullptr || event.number + 2 < origin.number) continue;
      // ONNX Runtime takes its next provider (onnxruntime_inference_collection.py).
      const Meaning meaning = event.wording->effect.meaning;
      const bool is_provider = meaning == Meaning::kToolkit && contains(text, "and retrying");
      if (meaning == Meaning::kErrorLine || is_provider) event.warned = true;
    }
  }
  if (!is_answer && !is_node) return;
  static const RE2* const answer = new RE2(R"re(HTTP/1\.1\S*"?\s*(?:\S*m)?([24])\d\d\b)re", RE2::Latin1);
  std::string kind;
  if (is_answer && !RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *answer, &kind)) return;
  for (Event& event : events_) {
    const std::string_view name = event.exception;
    const bool is_refusal = name.ends_with("VLLMValidationError") ||
                            name.ends_with("RequestValidationError") || name.ends_with("HTTPException");
    const bool is_near = event.kind == EventKind::kException && event.number + kJustBefore >= origin.number;
    // uvicorn's frame around it (uvicorn/protocols/http/h11_impl.py)
    const bool is_around = event.wording != nullptr && event.wording->effect.meaning == Meaning::kErrorLine &&
                           contains(event.text, "Exception in ASGI application");
    if (is_refusal || (is_answer && is_around) || (is_near && (is_node || kind == "4"))) {
      event.warned = true;
      warn_head(event.traceback);
    }
  }
}

}  // namespace trapline
