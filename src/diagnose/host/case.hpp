// One host error being explained: its facts, and the captures of its message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/finding.hpp"
#include "core/knobs.hpp"
#include "diagnose/host/facts.hpp"

namespace trapline::diagnose {

class HostCase {
 public:
  // The facts outlive the case.
  HostCase(const HostError& facts, std::vector<std::string> captures)
      : facts_(&facts), captures_(std::move(captures)) {}

  const std::string& capture(std::size_t group) const;  // 1-based; empty when the group took no part
  std::int64_t number(std::size_t group) const;         // 0 when it is none
  Shape shape(std::size_t group) const;                 // integers in the capture

  const HostError& facts() const { return *facts_; }
  const std::vector<Operand>& operands() const { return facts_->operands; }
  const std::optional<ModuleFacts>& module() const { return facts_->module; }
  const std::optional<ModelFacts>& model() const { return facts_->model; }
  const std::optional<PositionFact>& position() const { return facts_->position; }
  const std::optional<SelectionFact>& selection() const { return facts_->selection; }
  const LibraryFact& library() const { return facts_->library; }
  const std::string& call() const { return facts_->call; }
  const std::string& message() const { return facts_->message; }

  // The torch.nn.functional function on the stack, outermost first met: "mse_loss"; empty when there is none.
  std::string functional() const;
  // Whether a frame of the stack is in a file whose path ends so: "_utils/collate.py".
  bool passes_through(std::string_view file_suffix) const;
  // Whether the code nearest to the exception, apart from PyTorch's own, is a library's; and its line.
  bool raised_in_library() const;
  std::string raised_at() const;

  // What is to be done about the sizes of the layer: `call` makes one of the user's own fit; a library's
  // layer is nothing that the user can write anew.
  std::string make_fit(const std::string& call, std::string_view input) const;

  // What is to be done about the input of a layer that took others before; empty where that is not known.
  std::string as_before(std::string_view input, std::string_view size) const;

  const Operand* by_role(std::string_view role) const;
  const Operand* by_shape(const Shape& shape) const;
  // The user's operand that arrived in `role`, else the one of this shape.
  const Operand* find(std::string_view role, const Shape& shape) const;
  // Its name, or `fallback`.
  std::string name(std::string_view role, const Shape& shape, std::string_view fallback) const;
  std::string name(std::string_view role, std::string_view fallback) const;
  // ": x [16, 5], y [16]", what the user's line names; empty when that is nothing.
  std::string given() const;
  // "loss_fn(out, y)" when the call is known, else `fallback`.
  std::string call_or(std::string_view fallback) const;

 private:
  const Frame* raiser() const;

  const HostError* facts_;
  std::vector<std::string> captures_;
};

// The advice for two sizes inside a library's model of which the larger is what strides of 2 and more make of
// the smaller and back: its input does not halve evenly. Empty for others.
std::string strides_advice(const HostCase& host_case, std::int64_t one, std::int64_t other);

// At most `length` bytes, never cutting a UTF-8 character in two.
std::string clip(std::string_view text, std::size_t length);

using trapline::to_text;
std::string to_text(const Shape& shape);   // "[32, 10]"
Shape parse_shape(std::string_view text);  // every integer in it
std::int64_t numel(const Shape& shape);    // saturates

// The call that gives a tensor of shape `from` the shape `to` without inventing data: "x.squeeze(1)",
// "x.flatten(1)", "x.permute(0, 3, 1, 2)", "x.reshape(32, 10)"; empty when there is none.
std::string call_that_fits(std::string_view name, const Shape& from, const Shape& to);

}  // namespace trapline::diagnose
