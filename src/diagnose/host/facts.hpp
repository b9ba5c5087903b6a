// The facts of an exception that PyTorch raised on the host.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/finding.hpp"
#include "core/knobs.hpp"
#include "diagnose/host/check.hpp"
#include "diagnose/nan.hpp"
#include "diagnose/position.hpp"
#include "diagnose/watch.hpp"

namespace trapline::diagnose {

using Shape = std::vector<std::int64_t>;

// The module that keeps a tensor.
struct Holder {
  std::string name, attribute;  // "loss_fn.cross_entropy", "weight"; the name may be empty
  std::string kind;             // "parameter", "buffer", "plain" (an attribute that does not move)
  std::string type;             // its class
  std::string top;              // the outermost module that leads to it, as the user calls it; may be empty
  bool part = false;            // that is the model
  bool trains = false;          // that has parameters
  bool own = false;             // the class is the user's
  std::string container, container_type,
      container_of;  // "self.norms", "list", "Net": where the model keeps it
};

// The outermost module with parameters that was running.
struct ModelFacts {
  std::string name, type, device;  // the device of all its parameters; empty: they are on several
};

// A tensor that takes part in the failing call.
struct Operand {
  std::string name;  // as the user calls it on the failing line, "x"; or a qualified parameter, "fc.weight"
  std::string role;  // the name of the parameter it arrived in at the failing library call: "input", "target"
  Shape shape;
  std::string dtype, device;
  bool user = true;       // false: it has no name in the user's line (an intermediate of a Sequential)
  std::string from = {};  // the user's argument that it was made from: "edge_index"
  std::optional<Holder> held = std::nullopt;
  bool grad = false;                         // whether it requires grad, where that is asked
  std::optional<bool> whole = std::nullopt;  // of floats that integers are asked for: whether all are whole
  bool named() const { return user || !from.empty(); }
};

// The deepest nn.Module that was running.
struct ModuleFacts {
  std::string name;  // qualified from the outermost module, "classifier.0"; may be empty for a lone layer
  std::string type;
  std::map<std::string, std::int64_t, std::less<>> attributes;  // those that are integers
  bool trained = false;  // its weights have a gradient, or an optimizer stepped on them
  std::optional<std::int64_t> attribute(std::string_view key) const;
  // "`classifier.0` Linear(256, 10)", or "Linear(256, 10)" without a name.
  std::string text() const;
};

// Where a GPU is not there.
struct GpusFact {
  std::int64_t count = -1;      // of those that are
  std::int64_t index = -1;      // that was asked for
  std::int64_t stand_ins = -1;  // how many of them are those of --cpu
};

// The batch in hand, where it is shorter than the others.
struct ShortBatchFact {
  std::int64_t number = 0, rows = 0, size = 0;
};

// Samples that cannot be stacked: the shape of the first, or of most of them, and the other one.
struct UnevenFact {
  Shape usual, odd;
  std::int64_t entry = 0;  // the first that has the odd one
  std::string field;       // "image": which part of the samples
  bool most = false;       // all others but those that are odd have the usual one
};

// topk and kthvalue: how many were asked for, of what.
struct SelectionFact {
  std::string op;
  std::optional<std::int64_t> k, dim;
  std::string text;  // what `k` is in the call: "self.config.num_queries"
  std::string name;  // the tensor's, as the user or else the call has it
  std::optional<TensorInfo> tensor;
  bool user = true;  // the call is in the user's own code
  // Of the dimension that is looked along.
  std::optional<std::int64_t> size() const;
};

// Only `exception` and `message` are required.
struct HostError {
  std::string exception;  // type name: "RuntimeError"
  std::string message;
  std::string call;  // text of the failing expression: "self.fc(x)"
  std::vector<Operand> operands;
  std::vector<Operand> given;  // what the user's line names, whether it took part or not
  std::optional<ModuleFacts> module;
  std::optional<ModelFacts> model;
  std::optional<PositionFact> position;
  std::optional<GpusFact> gpus;
  std::optional<Element> element;  // the first one that is not finite
  std::optional<NanFact> nan;
  std::optional<WeightsFact> weights;
  std::optional<WatchFact> watch;
  std::optional<CheckFact> check;
  std::optional<SelectionFact> selection;
  std::optional<ShortBatchFact> batch;
  std::optional<UnevenFact> uneven;
  std::optional<Sample> in_hand;  // of the batch in hand, where those before it had other sizes
  LibraryFact library;
  std::vector<Frame> stack;  // outermost first
  std::optional<Frame> origin;
  std::optional<Sample> sample;
  std::optional<Process> process;
  std::optional<Progress> progress;
};

}  // namespace trapline::diagnose
