// Captures and graphs: what a stream is given between begin and end, in the order in which it was given.
#include <cstdio>
#include <memory>

#include "runtime.hpp"

using namespace fakecuda;
using namespace fakecuda::runtime;

namespace {

// Both handles, cudaGraph_t and cudaGraphExec_t, are one of these.
struct Held {
  std::shared_ptr<Graph> graph;
};

Held* held(void* handle) { return static_cast<Held*>(handle); }

}  // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  FAKE_RT_ALIVE();
  if (handle == nullptr || handle == cudaStreamLegacy) return note(cudaErrorStreamCaptureUnsupported);
  const auto stream = stream_of(handle);
  const std::lock_guard lock(machine().mutex);
  if (stream->graph != nullptr) return note(cudaErrorIllegalState);
  stream->graph = std::make_shared<Graph>();
  stream->graph->mode = static_cast<int>(mode);
  stream->graph->owner = std::this_thread::get_id();
  machine().spoiled = false;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* out) {
  FAKE_RT_ALIVE();
  *out = nullptr;
  const auto stream = stream_of(handle);
  const auto graph = capture_of(stream);  // outlives the lock: what it holds may call the runtime
  const std::lock_guard lock(machine().mutex);
  if (graph == nullptr) return note(cudaErrorIllegalState);
  for (const auto& entry : machine().streams) {  // those that joined
    if (entry.second->graph == graph) entry.second->graph = nullptr;
  }
  if (machine().spoiled) return note(cudaErrorStreamCaptureInvalidated);
  *out = reinterpret_cast<cudaGraph_t>(new Held{graph});
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return cudaStreamGetCaptureInfo(handle, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                     size_t* count) {
  FAKE_RT_ALIVE();
  const auto captured = capture_of(stream_of(handle));
  *status = captured == nullptr ? cudaStreamCaptureStatusNone
            : machine().spoiled ? cudaStreamCaptureStatusInvalidated
                                : cudaStreamCaptureStatusActive;
  if (id != nullptr) *id = captured == nullptr ? 0 : reinterpret_cast<std::uintptr_t>(captured.get());
  if (graph != nullptr) *graph = nullptr;
  if (dependencies != nullptr) *dependencies = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = 0;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  const int before = capture_mode();
  capture_mode() = static_cast<int>(*mode);
  *mode = static_cast<cudaStreamCaptureMode>(before);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
  FAKE_RT_ALIVE();
  *out = reinterpret_cast<cudaGraphExec_t>(new Held{*held(graph)});
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t handle) {
  FAKE_RT_ALIVE();
  const auto stream = stream_of(handle);
  for (const Operation& operation : held(graph)->graph->operations) stream->enqueue(operation);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete held(graph);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete held(graph);
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (nodes != nullptr) return not_supported("cudaGraphGetNodes");
  *count = held(graph)->graph->operations.size();
  return cudaSuccess;
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return note(cudaErrorOperatingSystem);
  std::fprintf(file, "digraph { label=\"%zu operations\" }\n", held(graph)->graph->operations.size());
  std::fclose(file);
  return cudaSuccess;
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, const cudaGraphEdgeData*,
                             size_t, cudaGraphNodeParams*) {
  return not_supported("cudaGraphAddNode");
}
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle*, cudaGraph_t, unsigned, unsigned) {
  return not_supported("cudaGraphConditionalHandleCreate");
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*, size_t*) {
  return not_supported("cudaGraphNodeGetDependencies");
}
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t, cudaGraph_t, const cudaGraphNode_t*,
                                          const cudaGraphEdgeData*, size_t, cudaStreamCaptureMode) {
  return not_supported("cudaStreamBeginCaptureToGraph");
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t, cudaGraphNode_t*, const cudaGraphEdgeData*,
                                                size_t, unsigned) {
  return not_supported("cudaStreamUpdateCaptureDependencies");
}
