// One host error being explained: the captures of its message and typed, forgiving access to its facts.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/finding.hpp"
#include "core/knobs.hpp"

namespace trapline {

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
  bool grad = false;  // whether it requires grad, where that is asked
  bool named() const { return user || !from.empty(); }
};

// The deepest nn.Module that was running.
struct ModuleFacts {
  std::string name;  // qualified from the outermost module, "classifier.0"; may be empty for a lone layer
  std::string type;
  nlohmann::json attributes;
  std::optional<std::int64_t> attribute(std::string_view key) const;
  // "`classifier.0` Linear(256, 10)", or "Linear(256, 10)" without a name.
  std::string text() const;
};

// The position table of the module that ran, and the length of the text that it was given.
struct PositionTable {
  std::int64_t rows = 0, offset = 0, length = 0;
  std::string name, setting;
  std::int64_t value = 0;  // of the setting: the rows, or less where others are added to it
  std::int64_t usable() const { return rows - offset; }
};

class HostCase {
 public:
  HostCase(const nlohmann::json& facts, std::vector<std::string> captures);

  const std::string& capture(std::size_t group) const;  // 1-based; empty when the group took no part
  std::int64_t number(std::size_t group) const;         // 0 when it is none
  Shape shape(std::size_t group) const;                 // integers in the capture

  const std::vector<Operand>& operands() const { return operands_; }
  const std::optional<ModuleFacts>& module() const { return module_; }
  const std::optional<ModelFacts>& model() const { return model_; }
  const std::optional<PositionTable>& position() const { return position_; }
  const LibraryFact& library() const { return library_; }
  const std::string& call() const { return call_; }
  const std::string& message() const { return message_; }
  // The torch.nn.functional function on the stack, outermost first met: "mse_loss"; empty when there is none.
  const std::string& functional() const { return functional_; }

  // The facts as they came, for what other rooms read.
  const nlohmann::json& facts() const { return *facts_; }

  // Whether a frame of the stack is in a file whose path ends so: "_utils/collate.py".
  bool passes_through(std::string_view file_suffix) const;

  // Whether the code nearest to the exception, apart from PyTorch's own, is a library's; and its line.
  bool raised_in_library() const { return raised_in_library_; }
  const std::string& raised_at() const { return raised_at_; }

  const Operand* by_role(std::string_view role) const;
  const Operand* by_shape(const Shape& shape) const;
  // The user's operand that arrived in `role`, else the one of this shape.
  const Operand* find(std::string_view role, const Shape& shape) const;
  // Its name, or `fallback`.
  std::string name(std::string_view role, const Shape& shape, std::string_view fallback) const;
  std::string name(std::string_view role, std::string_view fallback) const;
  // "loss_fn(out, y)" when the call is known, else `fallback`.
  std::string call_or(std::string_view fallback) const;

 private:
  void read_raiser(const nlohmann::json& facts);

  const nlohmann::json* facts_;  // outlive the case
  std::vector<std::string> captures_, files_;
  std::vector<Operand> operands_;
  std::optional<ModuleFacts> module_;
  std::optional<ModelFacts> model_;
  std::optional<PositionTable> position_;
  LibraryFact library_;
  std::string call_, message_, functional_, raised_at_;
  bool raised_in_library_ = false;
};

// At most `length` bytes, never cutting a UTF-8 character in two.
std::string clip(std::string_view text, std::size_t length);

std::string to_text(const Shape& shape);   // "[32, 10]"
Shape parse_shape(std::string_view text);  // every integer in it
std::int64_t numel(const Shape& shape);    // saturates

// The call that gives a tensor of shape `from` the shape `to` without inventing data: "x.squeeze(1)",
// "x.flatten(1)", "x.permute(0, 3, 1, 2)", "x.reshape(32, 10)"; empty when there is none.
std::string call_that_fits(std::string_view name, const Shape& from, const Shape& to);

}  // namespace trapline
