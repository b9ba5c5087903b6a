#include "contracts/bounds.hpp"

#include <algorithm>

namespace trapline {
namespace {

// The classes of a loss: (C) with one label, (N, C) with (N), (N, C, d...) with (N, d...).
std::optional<std::int64_t> classes_of(const trapline_tensor& scores, const trapline_tensor& target) {
  if (scores.dim <= 1) {
    if (target.dim > 1 || numel(target) != 1) return std::nullopt;
    return scores.dim == 0 ? 1 : scores.sizes[0];
  }
  if (target.dim != scores.dim - 1 || target.sizes[0] != scores.sizes[0]) return std::nullopt;
  for (std::int32_t d = 1; d < target.dim; ++d) {
    if (target.sizes[d] != scores.sizes[d + 1]) return std::nullopt;
  }
  return scores.sizes[1];
}

std::optional<std::int64_t> size_of_dim(const trapline_tensor& tensor, const Contract& contract,
                                        const trapline_arg* dim) {
  std::int64_t d = 0;
  if (!contract.dim_arg.empty()) {
    if (dim == nullptr || dim->kind != TRAPLINE_ARG_INT) return std::nullopt;
    d = dim->integer;
  }
  const std::int64_t dims = tensor.dim == 0 ? 1 : tensor.dim;
  if (d < -dims || d >= dims) return std::nullopt;
  if (tensor.dim == 0) return 1;
  const std::int64_t size = tensor.sizes[d < 0 ? d + dims : d];
  // Without a single element in the other dimensions nothing is read, and every index is accepted.
  if (size != 0 && is_empty(tensor)) return std::nullopt;
  return size;
}

std::optional<std::int64_t> product_of(const trapline_arg* sizes) {
  if (sizes == nullptr || sizes->kind != TRAPLINE_ARG_SIZES) return std::nullopt;
  std::int64_t product = 1;
  for (std::int32_t d = 0; d < sizes->tensor.dim; ++d) {
    if (sizes->tensor.sizes[d] <= 0) return std::nullopt;
    if (__builtin_mul_overflow(product, sizes->tensor.sizes[d], &product)) return std::nullopt;
  }
  return product;
}

// The plane of a pooling's input: its last n sizes, n = the integers of `sizes`.
std::optional<std::int64_t> plane_of(const trapline_tensor& tensor, const trapline_arg* sizes) {
  if (sizes == nullptr || sizes->kind != TRAPLINE_ARG_SIZES) return std::nullopt;
  const std::int32_t count = sizes->tensor.dim;
  if (count == 0 || tensor.dim < count) return std::nullopt;
  for (std::int32_t d = 0; d < tensor.dim - count; ++d) {
    if (tensor.sizes[d] == 0) return std::nullopt;  // no plane is read
  }
  std::int64_t product = 1;
  for (std::int32_t d = tensor.dim - count; d < tensor.dim; ++d) product *= tensor.sizes[d];
  return product;
}

// (rows, k) x (groups, k, n): rows are cut; (groups, m, k) x (k, columns): columns; (m, k) x (k, n): k.
std::optional<std::int64_t> grouped_dim(const trapline_tensor& left, const trapline_arg* other) {
  const trapline_tensor* right = tensor_of(other);
  if (right == nullptr) return std::nullopt;
  if (left.dim == 2 && right->dim == 3) return left.sizes[0];
  if (left.dim == 3 && right->dim == 2) return right->sizes[1];
  if (left.dim == 2 && right->dim == 2) return left.sizes[1];
  return std::nullopt;
}

// The rows of a factored matrix, for its pivots. Of a tensor of any other length only the beginning is read:
// such pivots are of another matrix, and which of them count is the operation's affair.
std::optional<std::int64_t> rows_pivoted(const trapline_tensor& matrix, const trapline_tensor& pivots) {
  if (matrix.dim < 2 || pivots.dim < 1) return std::nullopt;
  const std::int64_t rows = matrix.sizes[matrix.dim - 2], columns = matrix.sizes[matrix.dim - 1];
  if (pivots.sizes[pivots.dim - 1] != std::min(rows, columns)) return std::nullopt;
  return rows;
}

}  // namespace

std::optional<std::int64_t> bound_of(const Contract& contract, const CallArguments& call,
                                     const trapline_tensor& tensor) {
  const trapline_tensor* bound = tensor_of(call.bound);
  switch (contract.bound) {
    case Bound::kNone:
      return kUnbounded;
    case Bound::kInteger:
      if (call.bound == nullptr || call.bound->kind != TRAPLINE_ARG_INT || call.bound->integer < -1) {
        return std::nullopt;
      }
      return call.bound->integer == -1 ? kUnbounded : call.bound->integer;
    case Bound::kProduct:
      return product_of(call.bound);
    case Bound::kSizeOfDim:
      return bound == nullptr ? std::nullopt : size_of_dim(*bound, contract, call.dim);
    case Bound::kClasses:
      return bound == nullptr ? std::nullopt : classes_of(*bound, tensor);
    case Bound::kLastDim:
      if (bound == nullptr || bound->dim == 0) return std::nullopt;
      return bound->sizes[bound->dim - 1];
    case Bound::kNumel:
      return bound == nullptr ? std::nullopt : std::optional(numel(*bound));
    case Bound::kMatrixRows:
      return bound == nullptr ? std::nullopt : rows_pivoted(*bound, tensor);
    case Bound::kSpatial:
      return bound == nullptr ? std::nullopt : plane_of(*bound, call.dim);
    case Bound::kGrouped:
      return bound == nullptr ? std::nullopt : grouped_dim(*bound, call.dim);
  }
  return std::nullopt;
}

namespace {

// Of dimension `d` of the `dims` that both are broadcast to; nullopt: they do not fit.
std::optional<std::int64_t> broadcast_size(const trapline_tensor& mask, const trapline_tensor& self,
                                           std::int32_t dims, std::int32_t d) {
  const std::int32_t m = d - (dims - mask.dim), s = d - (dims - self.dim);
  const std::int64_t mine = m >= 0 ? mask.sizes[m] : 1;
  const std::int64_t other = s >= 0 ? self.sizes[s] : 1;
  if (mine != other && mine != 1 && other != 1) return std::nullopt;
  return mine == 1 ? other : mine;
}

}  // namespace

bool lies_along(const trapline_tensor& tensor, const Contract& contract, const CallArguments& call) {
  if (contract.bound != Bound::kSizeOfDim || contract.dim_arg.empty()) return true;
  const trapline_tensor* data = tensor_of(call.bound);
  if (data == nullptr || call.dim == nullptr || call.dim->kind != TRAPLINE_ARG_INT) return false;
  const std::int64_t axis = call.dim->integer < 0 ? call.dim->integer + data->dim : call.dim->integer;
  return axis == tensor.dim - 1;
}

bool broadcast_numel(const trapline_tensor& mask, const trapline_tensor& self, std::int64_t& numel) {
  const std::int32_t dims = std::max(mask.dim, self.dim);
  numel = 1;
  for (std::int32_t d = 0; d < dims; ++d) {
    const std::optional<std::int64_t> size = broadcast_size(mask, self, dims, d);
    if (!size) return false;
    numel *= *size;
  }
  return true;
}

bool broadcast_mask(const trapline_tensor& mask, const trapline_tensor& self, std::span<std::int64_t> sizes,
                    std::span<std::int64_t> strides) {
  const auto dims = static_cast<std::int32_t>(sizes.size());
  for (std::int32_t d = 0; d < dims; ++d) {
    const std::optional<std::int64_t> size = broadcast_size(mask, self, dims, d);
    if (!size) return false;
    const std::int32_t m = d - (dims - mask.dim);
    sizes[static_cast<std::size_t>(d)] = *size;
    strides[static_cast<std::size_t>(d)] = m < 0 || mask.sizes[m] == 1 ? 0 : mask.strides[m];
  }
  return true;
}

bool ends_anything(const trapline_tensor& tensor, const Contract& contract) {
  return contract.bound == Bound::kGrouped || (tensor.dim > 0 && tensor.sizes[tensor.dim - 1] > 1);
}

}  // namespace trapline
