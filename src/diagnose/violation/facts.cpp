#include "diagnose/violation/facts.hpp"

namespace trapline::diagnose {

std::optional<std::int64_t> Violation::size(const std::string& name, std::int64_t dim) const {
  const auto found = args.find(name);
  if (found == args.end() || !found->second.tensor) return std::nullopt;
  const auto& shape = found->second.tensor->shape;
  const auto dims = static_cast<std::int64_t>(shape.size());
  if (dim < 0) dim += dims;
  if (dim < 0 || dim >= dims) return std::nullopt;
  return shape[static_cast<std::size_t>(dim)];
}

std::optional<std::int64_t> Violation::integer(const std::string& name) const {
  const auto found = args.find(name);
  return found == args.end() ? std::nullopt : found->second.integer;
}

}  // namespace trapline::diagnose
