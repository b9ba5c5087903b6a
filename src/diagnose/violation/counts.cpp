// Arguments that count or cut: repeats, lengths, ends of groups, masks, pivots.
#include <fmt/format.h>

#include "diagnose/violation/writer.hpp"

namespace trapline {
namespace {

std::string plural(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// "5 elements": what the ends cut into groups.
std::string whole(const Case& c) {
  const std::int64_t size = c.hi() - 1;
  if (c.op() == "grouped_mm") return plural(size, "row");
  if (c.op() == "sparse_compressed_tensor") return plural(size, "specified element");
  return plural(size, "element");
}

void write_mask(const Case& c) {
  c.finding.summary = fmt::format("{}: the mask takes {}, but source has {}", c.op(),
                                  plural(c.hi() + c.facts.scan.bad, "element"), c.hi());
  c.fix(
      "in multimodal models: input_ids must have one placeholder token for each feature of the encoder: "
      "count "
      "them row by row, mask.reshape(len(mask), -1).sum(1)");
  c.fix(
      "elsewhere, give source one element for each True; a mask that is broadcast counts as often as it is "
      "repeated");
}

void write_sum(const Case& c) {
  const bool too_many = c.facts.scan.reason == Reason::kTooMany;
  c.finding.cause = Cause::kShapeMismatch;
  c.finding.also = {Cause::kIndexOutOfRange};
  if (c.facts.contract->predicate == Predicate::kCounts) {
    c.finding.summary = fmt::format("{}: {} add up to {} than output_size={}", c.op(), c.argument(),
                                    too_many ? "more" : "less", c.hi());
    c.fix("output_size=int(repeats.sum()), or leave output_size out (the sum is then read from the device)");
  } else {
    c.finding.summary = fmt::format("{}: with it the segments are longer than the {} of data", c.opening(),
                                    plural(c.hi(), "element"));
    c.fix("compute the lengths from the data that is reduced: lengths.sum(-1) must equal data.size(axis)");
  }
  c.fix_sample();
}

void write_negative(const Case& c) {
  c.finding.summary = fmt::format("{}, but it must not be negative", c.opening());
  c.fix(fmt::format("{} of {} values are wrong: find where they come from", c.facts.scan.bad,
                    c.facts.scan.total));
  c.fix(fmt::format("only if a negative one means none: {0} = {0}.clamp(min=0)", c.argument()));
  c.fix_sample();
}

void write_ends(const Case& c) {
  if (c.facts.scan.reason == Reason::kBelow) return write_negative(c);
  if (c.facts.scan.reason == Reason::kNotAscending) {
    c.finding.summary =
        fmt::format("{}, less than the one before it: {} must ascend", c.opening(), c.argument());
  } else {
    c.finding.summary = fmt::format("{}, but there are only {} to cut", c.opening(), whole(c));
  }
  c.fix(c.op() == "grouped_mm"
            ? "offs = group_sizes.cumsum(0, dtype=torch.int32), with group_sizes of the same batch"
            : fmt::format("build them from the sizes of the groups: {} = torch.cat([sizes.new_zeros(1), "
                          "sizes.cumsum(0)])",
                          c.argument()));
  c.fix_sample();
}

void write_pivots(const Case& c) {
  const std::int64_t rows = c.hi() - 1;
  c.finding.summary =
      fmt::format("{}, but pivots of a matrix with {} are 1 to {}", c.opening(), plural(rows, "row"), rows);
  c.fix(fmt::format(
      "pass what torch.linalg.lu_factor(A) returned, unchanged: LU, pivots = ...; {}(LU, pivots)", c.op()));
  if (c.integer() == 0) c.fix("pivots count from 1: pivots + 1, when they come from NumPy or SciPy");
  c.fix_sample();
}

}  // namespace

bool diagnose_counts(const Case& c) {
  switch (c.facts.contract->predicate) {
    case Predicate::kMaskCount:
      write_mask(c);
      return true;
    case Predicate::kCounts:
    case Predicate::kLengths:
      c.facts.scan.reason == Reason::kBelow ? write_negative(c) : write_sum(c);
      return true;
    case Predicate::kEnds:
      write_ends(c);
      return true;
    case Predicate::kPivots:
      write_pivots(c);
      return true;
    default:
      return false;
  }
}

}  // namespace trapline
