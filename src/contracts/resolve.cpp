#include "contracts/resolve.hpp"

#include <numeric>
#include <optional>

namespace trapline {
namespace {

// The demands of one call while they are gathered.
class Demands {
 public:
  Demands(const Contract& contract, std::span<Demand, kMaxDemands> room) : contract_(contract), room_(room) {}

  Demand& add(const trapline_tensor& tensor, Predicate predicate, std::int64_t lo, std::int64_t hi) {
    Demand& demand = room_[count_++];
    demand.tensor = &tensor;
    demand.with = nullptr;
    demand.lo = lo;
    demand.hi = hi;
    demand.also = 0;
    demand.list_position = -1;
    demand.predicate = predicate;
    demand.heal = contract_.heal;
    demand.has_also = false;
    return demand;
  }

  bool is_full() const { return count_ == room_.size(); }
  std::span<const Demand> all() const { return room_.first(count_); }

 private:
  const Contract& contract_;
  std::span<Demand, kMaxDemands> room_;
  std::size_t count_ = 0;
};

// The number that `also_arg` names; nullopt where the row names none, or the call has none.
std::optional<std::int64_t> also_of(const Contract& contract, const CallArguments& call, Also also) {
  if (contract.also != also || call.also == nullptr || call.also->kind != TRAPLINE_ARG_INT) return {};
  return call.also->integer;
}

bool is_mask(const trapline_tensor& index) {
  return index.dtype == TRAPLINE_BOOL || index.dtype == TRAPLINE_UINT8;
}

// x[i, None, j]: an integer tensor takes one dimension, a mask takes as many as it has, None skips one. One
// that does not fit makes the whole call the operation's own affair, and so does an empty index: it
// broadcasts the others away, and none of them is read.
bool list_applies(const Contract& contract, const trapline_arg& list, const trapline_tensor& bound) {
  std::int32_t dimension = 0;
  for (std::int32_t i = 0; i < list.list_size; ++i) {
    const trapline_tensor& index = list.list[i];
    if (index.dim > 0 && is_empty(index)) return false;
    if (index.dim < 0) {
      ++dimension;
    } else if (is_mask(index)) {
      dimension += index.dim;
    } else if (dimension++ >= bound.dim || !fits(contract.dtypes, index.dtype)) {
      return false;
    }
  }
  return true;
}

void resolve_list(const Contract& contract, const CallArguments& call, Demands& demands) {
  const trapline_tensor* bound = tensor_of(call.bound);
  if (bound == nullptr || call.argument->kind != TRAPLINE_ARG_LIST || is_empty(*bound)) return;
  if (!list_applies(contract, *call.argument, *bound)) return;
  std::int32_t dimension = 0;
  for (std::int32_t i = 0; i < call.argument->list_size && !demands.is_full(); ++i) {
    const trapline_tensor& index = call.argument->list[i];
    if (index.dim < 0) {
      ++dimension;
    } else if (is_mask(index)) {
      dimension += index.dim;
    } else {
      const std::int64_t size = bound->sizes[dimension++];
      demands.add(index, Predicate::kWrappedIndex, -size, size).list_position = i;
    }
  }
}

// ctc_loss: labels are (rows, longest) with padding that may hold anything, or all in one row.
void resolve_padded(const CallArguments& call, const trapline_tensor& labels, std::int64_t hi,
                    Demands& demands) {
  if (call.also == nullptr || (labels.dim != 1 && labels.dim != 2)) return;
  if (hi <= 0) return;  // no label can be the blank, which the operation refuses
  if (call.also->kind == TRAPLINE_ARG_SIZES) {
    const trapline_tensor& list = call.also->tensor;
    if (!lengths_fit(
            list.dim, [&](std::int64_t row) { return list.sizes[row]; }, labels))
      return;
    const std::int64_t labelled = std::accumulate(list.sizes, list.sizes + list.dim, std::int64_t{0});
    if (labelled == 0) return;
    if (labelled == numel(labels)) {  // no padding: an index like any other
      demands.add(labels, Predicate::kIndex, 0, hi);
      return;
    }
  } else {
    const trapline_tensor* lengths = tensor_of(call.also);
    if (lengths == nullptr || lengths->dim != 1 || !fits(Dtypes::kInteger, lengths->dtype)) return;
    if (labels.dim == 2 && lengths->sizes[0] != labels.sizes[0]) return;
  }
  demands.add(labels, Predicate::kPaddedIndex, 0, hi).with = call.also;
}

void resolve_counts(const Contract& contract, const CallArguments& call, const trapline_tensor& tensor,
                    Demands& demands) {
  if (tensor.dim != 1) return;
  // repeat_interleave without output_size reads the sum itself.
  const bool unknown = call.bound == nullptr || call.bound->kind == TRAPLINE_ARG_NONE;
  const std::optional<std::int64_t> sum = unknown ? kUnbounded : bound_of(contract, call, tensor);
  if (!sum) return;
  demands.add(tensor, *sum == kUnbounded ? Predicate::kIndex : Predicate::kCounts, 0, *sum);
}

void resolve_mask(const CallArguments& call, const trapline_tensor& mask, std::int64_t limit,
                  Demands& demands) {
  const trapline_tensor* self = tensor_of(call.also);
  std::int64_t numel = 0;
  if (self == nullptr || !broadcast_numel(mask, *self, numel)) return;
  if (numel <= limit) return;  // whatever the mask holds
  demands.add(mask, Predicate::kMaskCount, 0, limit).with = call.also;
}

// The end of a range that takes the bound in.
std::int64_t beyond(std::int64_t bound) { return bound == kUnbounded ? bound : bound + 1; }

void resolve_integers(const Contract& contract, const CallArguments& call, const trapline_tensor& tensor,
                      Demands& demands) {
  if (contract.predicate == Predicate::kCounts) return resolve_counts(contract, call, tensor, demands);
  const std::optional<std::int64_t> bound = bound_of(contract, call, tensor);
  if (!bound) return;
  switch (contract.predicate) {
    case Predicate::kIndex: {
      const std::optional<std::int64_t> allowed = also_of(contract, call, Also::kAllowed);
      Demand& demand = demands.add(tensor, Predicate::kIndex, 0, *bound);
      demand.has_also = allowed.has_value();
      demand.also = allowed.value_or(0);
      return;
    }
    case Predicate::kWrappedIndex:
      demands.add(tensor, Predicate::kWrappedIndex, -*bound, *bound);
      return;
    case Predicate::kPivots:
      if (also_of(contract, call, Also::kFlag) == 0) return;  // they are not unpacked
      demands.add(tensor, Predicate::kIndex, 1, beyond(*bound));
      return;
    case Predicate::kPaddedIndex:
      return resolve_padded(call, tensor, *bound, demands);
    case Predicate::kEndedIndex:
      if (*bound > 0) demands.add(tensor, Predicate::kEndedIndex, 0, *bound);  // else it refuses the input
      return;
    case Predicate::kOffsets:
      if (tensor.dim == 1) demands.add(tensor, Predicate::kOffsets, 0, beyond(*bound));
      return;
    case Predicate::kEnds:
      if (!lies_along(tensor, contract, call) || !ends_anything(tensor, contract)) return;
      demands.add(tensor, Predicate::kEnds, 0, beyond(*bound));
      return;
    case Predicate::kLengths:
      if (lies_along(tensor, contract, call)) demands.add(tensor, Predicate::kLengths, 0, *bound);
      return;
    case Predicate::kCompressed: {
      const std::optional<std::int64_t> step = also_of(contract, call, Also::kStep);
      if (!step || *step < 0 || !ends_anything(tensor, contract)) return;
      demands.add(tensor, Predicate::kCompressed, 0, beyond(*bound)).also = *step;
      return;
    }
    case Predicate::kMaskCount:
      return resolve_mask(call, tensor, *bound, demands);
    case Predicate::kNonNegative:  // bincount takes one dimension
      if (tensor.dim == 1) demands.add(tensor, Predicate::kIndex, 0, kUnbounded);
      return;
    default:
      return;
  }
}

void resolve_numbers(const Contract& contract, const CallArguments& call, const trapline_tensor& tensor,
                     Demands& demands) {
  const trapline_tensor* result = tensor_of(call.bound);
  std::int64_t hi = 0;
  switch (contract.predicate) {
    case Predicate::kFiniteToInteger:
      if (result == nullptr || !fits(Dtypes::kInteger, result->dtype)) return;
      break;
    case Predicate::kProbabilityRows:
      if (tensor.dim != 1 && tensor.dim != 2) return;
      break;
    case Predicate::kUnitInterval:
    case Predicate::kNonNegative:
      if (result != nullptr && is_empty(*result)) return;  // nothing is drawn
      hi = contract.predicate == Predicate::kUnitInterval ? 1 : 0;
      break;
    default:
      return;
  }
  demands.add(tensor, contract.predicate, 0, hi);
}

}  // namespace

std::span<const Demand> resolve(const Contract& contract, const CallArguments& call,
                                std::span<Demand, kMaxDemands> room) {
  Demands demands(contract, room);
  if (call.argument == nullptr) return {};
  if (contract.predicate == Predicate::kIndexList) {
    resolve_list(contract, call, demands);
    return demands.all();
  }
  const trapline_tensor* tensor = tensor_of(call.argument);
  if (tensor == nullptr || !fits(contract.dtypes, tensor->dtype)) return {};
  if (contract.dtypes == Dtypes::kFloating) {
    resolve_numbers(contract, call, *tensor, demands);
  } else {
    resolve_integers(contract, call, *tensor, demands);
  }
  return demands.all();
}

}  // namespace trapline
