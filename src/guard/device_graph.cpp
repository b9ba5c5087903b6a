#include "guard/device_graph.hpp"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <unordered_set>

#include "guard/device_records.hpp"

namespace trapline::guard {
namespace {

using torch::autograd::AccumulateGrad;
using torch::autograd::Node;

constexpr std::size_t kMaxNoted = 32;
constexpr std::size_t kMaxWalked = 1 << 16;

// The tensor keeps its node alive. (How grad_fn() points at it depends on torch's version.)
Node* node_of(const at::Tensor& tensor) {
  return tensor.defined() && tensor.requires_grad() ? tensor.grad_fn().get() : nullptr;
}

int place_of(std::vector<Node*>& nodes, Node* node) {
  const auto found = std::find(nodes.begin(), nodes.end(), node);
  if (found != nodes.end()) return static_cast<int>(found - nodes.begin());
  if (nodes.size() == kMaxNoted) return NotedNode::kBeyond;
  nodes.push_back(node);
  return static_cast<int>(nodes.size()) - 1;
}

}  // namespace

at::Tensor NotedNode::lock_variable() const {
  if (!variable) return {};
  auto strong = variable->lock();
  return strong ? at::Tensor(std::move(strong)) : at::Tensor();
}

std::shared_ptr<const NotedGraph> note_graph(const at::Tensor& tensor) {
  Node* root = node_of(tensor);
  if (root == nullptr) return nullptr;
  auto graph = std::make_shared<NotedGraph>();
  std::vector<Node*> nodes{root};  // alive as long as the root is
  nodes.reserve(kMaxNoted);
  graph->reserve(kMaxNoted);
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    const Node& node = *nodes[at];
    NotedNode& noted = graph->emplace_back();
    noted.type = &typeid(node);
    if (*noted.type == typeid(AccumulateGrad)) {
      const at::Tensor& variable = static_cast<const AccumulateGrad&>(node).variable;
      if (variable.defined()) noted.variable.emplace(variable.getIntrusivePtr());
    }
    noted.next.reserve(node.next_edges().size());
    for (const auto& edge : node.next_edges()) {
      if (edge.is_valid()) noted.next.push_back(place_of(nodes, edge.function.get()));
    }
  }
  return graph;
}

bool is_behind(const at::Tensor& tensor, const std::vector<NodeName>& names) {
  Node* root = node_of(tensor);
  if (root == nullptr || names.empty()) return false;
  const auto is_named = [&](const Node& node) {
    return std::any_of(names.begin(), names.end(), [&](const NodeName& name) {
      return node.thread_id() == name.thread && node.sequence_nr() == name.number;
    });
  };
  // Behind a node are only those that were made before it; of its own thread, those with smaller numbers.
  const auto may_lead_there = [&](const Node& node) {
    return std::any_of(names.begin(), names.end(), [&](const NodeName& name) {
      return node.thread_id() != name.thread || node.sequence_nr() > name.number;
    });
  };
  std::vector<Node*> open{root};
  std::unordered_set<Node*> seen{root};
  while (!open.empty() && seen.size() < kMaxWalked) {
    const Node* node = open.back();
    open.pop_back();
    if (is_named(*node)) return true;
    if (!may_lead_there(*node)) continue;
    for (const auto& edge : node->next_edges()) {
      if (edge.is_valid() && seen.insert(edge.function.get()).second) open.push_back(edge.function.get());
    }
  }
  return false;
}

}  // namespace trapline::guard
