// What the autograd graph behind an argument looked like when the call was made. By the time a fault is
// raised the backward pass may have freed it, and the report wants the layer that computed the argument.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <typeinfo>
#include <vector>

namespace trapline::guard {

struct NotedNode {
  const std::type_info* type = nullptr;  // of the node's class: its name is made when somebody asks
  std::vector<int> next;                 // places in the graph; kBeyond: a node that was not noted
  using Weak = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  std::optional<Weak> variable;  // the parameter, where the node accumulates its gradient

  static constexpr int kBeyond = -1;
  at::Tensor lock_variable() const;  // undefined when it is gone
};

// Breadth first from the tensor's own node, which is the first; at most some 32 nodes.
using NotedGraph = std::vector<NotedNode>;

// nullptr where no node computed the tensor.
std::shared_ptr<const NotedGraph> note_graph(const at::Tensor& tensor);

struct NodeName;

// Whether one of these nodes is behind the tensor.
bool is_behind(const at::Tensor& tensor, const std::vector<NodeName>& names);

}  // namespace trapline::guard
