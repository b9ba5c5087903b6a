// Arguments that count or cut: repeats, lengths, ends of groups, masks, pivots.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {
namespace {

std::string plural(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// "5 elements": what the ends cut into groups.
std::string whole(const ViolationWriter& w) {
  const std::int64_t size = w.hi() - 1;
  if (w.op() == "grouped_mm") return plural(size, "row");
  return plural(size, "element");
}

void write_mask(ViolationWriter& w) {
  // A mask that is expanded is looked at once: each of its elements stands for several of the input.
  std::int64_t elements = 1;
  for (const std::int64_t size : w.facts.tensor.shape) elements *= size;
  const std::int64_t each =
      w.facts.scan.total > 0 ? std::max<std::int64_t>(1, elements / w.facts.scan.total) : 1;
  const std::string takes = each > 1 ? fmt::format("at least {}", plural(w.hi() + 1, "element"))
                                     : plural(w.hi() + w.facts.scan.bad, "element");
  w.finding().summary = fmt::format("{}: the mask takes {}, but source has {}", w.op(), takes, w.hi());
  w.fix(
      "in multimodal models: input_ids must have one placeholder token for each feature of the encoder: "
      "count "
      "them row by row, mask.reshape(len(mask), -1).sum(1)");
  w.fix(
      "elsewhere, give source one element for each True; a mask that is broadcast counts as often as it is "
      "repeated");
}

void write_sum(ViolationWriter& w) {
  const bool too_many = w.facts.scan.reason == Reason::kTooMany;
  w.finding().cause = Cause::kShapeMismatch;
  w.finding().also = {Cause::kIndexOutOfRange};
  if (w.facts.contract->predicate == Predicate::kCounts) {
    w.finding().summary = fmt::format("{}: {} add up to {} than output_size={}", w.op(), w.argument(),
                                      too_many ? "more" : "less", w.hi());
    w.fix("output_size=int(repeats.sum()), or leave output_size out (the sum is then read from the device)");
  } else {
    w.finding().summary = fmt::format("{}: with it the segments are longer than the {} of data", w.opening(),
                                      plural(w.hi(), "element"));
    w.fix("compute the lengths from the data that is reduced: lengths.sum(-1) must equal data.size(axis)");
  }
  w.fix_sample();
}

void write_negative(ViolationWriter& w) {
  w.finding().summary = fmt::format("{}, but it must not be negative", w.opening());
  w.fix(
      fmt::format("{}: {} of {} {} negative: where more is taken off than there was (a shift, a rounding), 0 "
                  "in its place is right; it would hide a difference the wrong way round (an end that lies "
                  "before its begin), and a look-up that found nothing (-1)",
                  w.look_at_computation("the counts"), w.facts.scan.bad, w.facts.scan.total,
                  w.facts.scan.bad == 1 ? "is" : "are"));
  w.fix_sample();
}

void write_ends(ViolationWriter& w) {
  if (w.facts.scan.reason == Reason::kBelow) return write_negative(w);
  if (w.facts.scan.reason == Reason::kNotAscending) {
    w.finding().summary =
        fmt::format("{}, less than the one before it: {} must ascend", w.opening(), w.argument());
  } else {
    w.finding().summary = fmt::format("{}, but there are only {} to cut", w.opening(), whole(w));
  }
  w.fix(w.op() == "grouped_mm"
            ? "offs = group_sizes.cumsum(0, dtype=torch.int32), with group_sizes of the same batch"
            : fmt::format("build them from the sizes of the groups: {} = torch.cat([sizes.new_zeros(1), "
                          "sizes.cumsum(0)])",
                          w.argument()));
  w.fix_sample();
}

// Of a sparse CSR, CSC, BSR or BSC tensor: where each of its rows (columns) begins and the last one ends.
void write_compressed(ViolationWriter& w) {
  const std::int64_t nnz = w.hi() - 1;
  switch (w.facts.scan.reason) {
    case Reason::kFirstNotZero:
      w.finding().summary = fmt::format("{}, but the first one has to be 0", w.opening());
      break;
    case Reason::kNotAscending:
      w.finding().summary =
          fmt::format("{}, less than the one before it: {} must ascend", w.opening(), w.argument());
      break;
    case Reason::kTooMany:
      w.finding().summary = fmt::format("{}: it takes more elements than fit; {} is the most", w.opening(),
                                        w.facts.integer("dim").value_or(0));
      break;
    case Reason::kTooFew:
      w.finding().summary = fmt::format("{}, but the last one has to be {}: there are {}", w.opening(), nnz,
                                        plural(nnz, "specified element"));
      break;
    default:
      w.finding().summary =
          fmt::format("{}, but there are only {}", w.opening(), plural(nnz, "specified element"));
      break;
  }
  w.fix(
      fmt::format("compute them from the number of elements in each row (CSR) or column (CSC): {} = "
                  "torch.cat([counts.new_zeros(1), counts.cumsum(0)])",
                  w.argument()));
  w.fix("or let PyTorch do it: torch.sparse_coo_tensor(indices, values, size).to_sparse_csr()");
  w.fix_sample();
}

void write_pivots(ViolationWriter& w) {
  const std::int64_t rows = w.hi() - 1;
  w.finding().summary =
      fmt::format("{}, but pivots of a matrix with {} are 1 to {}", w.opening(), plural(rows, "row"), rows);
  w.fix(fmt::format(
      "pass what torch.linalg.lu_factor(A) returned, unchanged: LU, pivots = ...; {}(LU, pivots)", w.op()));
  if (w.integer() == 0) w.fix("pivots count from 1: pivots + 1, when they come from NumPy or SciPy");
  w.fix_sample();
}

}  // namespace

void write_offsets(ViolationWriter& w) {
  switch (w.facts.scan.reason) {
    case Reason::kFirstNotZero:
      w.finding().summary = fmt::format("{}, but the first bag has to start at 0", w.opening());
      w.fix("offsets = torch.cat([offsets.new_zeros(1), lengths.cumsum(0)[:-1]])");
      break;
    case Reason::kNotAscending:
      w.finding().summary =
          fmt::format("{}, less than the offset before it: offsets must ascend", w.opening());
      w.fix(
          "build offsets from the lengths of the bags: offsets = torch.cat([lengths.new_zeros(1), "
          "lengths.cumsum(0)[:-1]])");
      break;
    default:
      w.finding().summary =
          fmt::format("{}, but there are only {} ids: no bag can start behind them", w.opening(), w.hi() - 1);
      w.fix("compute offsets from the same batch as the ids: lengths.sum() must equal len(ids)");
      break;
  }
  w.fix_sample();
}

void write_count(ViolationWriter& w) {
  w.finding().summary = fmt::format("{}, but it must not be negative", w.opening());
  const bool one = w.facts.scan.bad == 1;
  w.fix(fmt::format("find where {} from: {} of {} {} negative", one ? "it comes" : "they come",
                    w.facts.scan.bad, w.facts.scan.total, one ? "is" : "are"));
  // What the number means is not known: an edit that drops or shifts it would hide a wrong one.
  if (w.only(w.integer()))
    w.fix(
        fmt::format("bincount has no place for a mark: what {} stands for has to be left out before, "
                    "or counted as a number of its own",
                    w.value()));
  w.fix_sample();
}

bool diagnose_counts(ViolationWriter& w) {
  switch (w.facts.contract->predicate) {
    case Predicate::kMaskCount:
      write_mask(w);
      return true;
    case Predicate::kCounts:
    case Predicate::kLengths:
      w.facts.scan.reason == Reason::kBelow ? write_negative(w) : write_sum(w);
      return true;
    case Predicate::kEnds:
      write_ends(w);
      return true;
    case Predicate::kCompressed:
      write_compressed(w);
      return true;
    case Predicate::kPivots:
      write_pivots(w);
      return true;
    default:
      return false;
  }
}

}  // namespace trapline::diagnose
