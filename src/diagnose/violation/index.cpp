// Indexing, gather, scatter and their relatives; counts and offsets.
#include <fmt/format.h>

#include <string_view>

#include "diagnose/violation/writer.hpp"

namespace trapline {
namespace {

// The dimension that is indexed, as a person counts it; nullopt when it is not known.
std::optional<std::int64_t> dimension(const Case& c) {
  const Contract& row = *c.facts.contract;
  if (row.predicate == Predicate::kIndexList) {
    const std::int64_t d = c.facts.scan.list_position.value_or(0);
    return c.facts.size("self", d) == c.hi() ? std::optional(d) : std::nullopt;
  }
  if (row.bound != Bound::kSizeOfDim || row.dim_arg.empty()) return std::nullopt;
  auto d = c.facts.integer(std::string(row.dim_arg));
  const auto found = c.facts.args.find(std::string(row.bound_arg));
  if (d && *d < 0 && found != c.facts.args.end() && found->second.tensor) {
    *d += static_cast<std::int64_t>(found->second.tensor->shape.size());
  }
  return d;
}

std::string indexed(const Case& c) {
  const Contract& row = *c.facts.contract;
  const std::string count = fmt::format("{} element{}", c.hi(), c.hi() == 1 ? "" : "s");
  if (row.bound == Bound::kNumel) return fmt::format("the input has {}", count);
  if (row.bound == Bound::kProduct) return fmt::format("the output has {} per channel", count);
  if (row.bound == Bound::kSpatial) return fmt::format("each plane of the input has {}", count);
  if (row.bound == Bound::kInteger) return fmt::format("that dimension has {}", count);
  const auto d = dimension(c);
  return d ? fmt::format("dimension {} of the input has {}", *d, count)
           : fmt::format("that dimension of the input has {}", count);
}

void write_offsets(const Case& c) {
  switch (c.facts.scan.reason) {
    case Reason::kFirstNotZero:
      c.finding.summary = fmt::format("{}, but the first bag has to start at 0", c.opening());
      c.fix("offsets = torch.cat([offsets.new_zeros(1), lengths.cumsum(0)[:-1]])");
      break;
    case Reason::kNotAscending:
      c.finding.summary = fmt::format("{}, less than the offset before it: offsets must ascend", c.opening());
      c.fix(
          "build offsets from the lengths of the bags: offsets = torch.cat([lengths.new_zeros(1), "
          "lengths.cumsum(0)[:-1]])");
      break;
    default:
      c.finding.summary =
          fmt::format("{}, but there are only {} ids: no bag can start behind them", c.opening(), c.hi() - 1);
      c.fix("compute offsets from the same batch as the ids: lengths.sum() must equal len(ids)");
      break;
  }
  c.fix_sample();
}

void write_count(const Case& c) {
  c.finding.summary = fmt::format("{}, but it must not be negative", c.opening());
  const bool one = c.facts.scan.bad == 1;
  c.fix(fmt::format("find where {} from: {} of {} {} negative", one ? "it comes" : "they come",
                    c.facts.scan.bad, c.facts.scan.total, one ? "is" : "are"));
  if (c.only(c.integer())) {
    c.fix(
        fmt::format("if {} marks what is not to count, leave it out: torch.bincount(x[x >= 0])", c.value()));
  } else {
    c.fix("if negative values are to be counted as well, shift all: torch.bincount(x - x.min())");
  }
  c.fix_sample();
}

// Something is put where the index says: enlarging what is written to may hide a wrong index.
bool writes(const Case& c) {
  const std::string op = c.op();
  return op.starts_with("scatter") || op == "index_add" || op == "index_copy" || op == "index_fill" ||
         op == "index_reduce" || op == "x[index] = value";
}

// One value far from the others marks what is not to count, and the call would take it for a place.
bool ignore_label(const Case& c) {
  if (c.facts.contract->bound != Bound::kSizeOfDim || !c.only(c.integer())) return false;
  constexpr std::int64_t kVoid = 255;
  if (c.facts.scan.bad >= c.facts.scan.total) return false;
  if (c.above()) return c.integer() == kVoid && c.hi() < kVoid && c.seen_max() == kVoid;
  return writes(c) && (c.integer() == -1 || c.integer() == -100);
}

void write_ignore_label(const Case& c) {
  c.finding.summary +=
      fmt::format("; {} looks like an ignore label, which {} does not have", c.value(), c.op());
  const std::string knob = c.knob(Situation::kIgnore);
  if (!knob.empty()) return c.fix(knob);
  const std::string name = c.own("the index");
  c.fix(fmt::format("leave the elements with {} in {} out before the call, or give them a class of their own",
                    c.value(), name));
}

// Where to look: the user's own name of the index, how much of it is bad, and what that looks like.
void fix_look(const Case& c) {
  const ScanFact& scan = c.facts.scan;
  const std::string where = c.own("the index");
  constexpr std::int64_t kTelling = 4;
  if (scan.bad == scan.total && scan.total >= kTelling && c.above()) {
    const std::string least = scan.min ? fmt::format(", {} is the lowest", to_text(*scan.min)) : "";
    c.fix(fmt::format(
        "look at where {} is computed: all {} are outside {}{}: it looks like an index meant for a larger "
        "tensor",
        where, scan.total, c.range(), least));
    return;
  }
  const std::string most =
      scan.max && c.above() ? fmt::format(", {} is the highest", to_text(*scan.max)) : "";
  c.fix(fmt::format("look at where {} is computed: {}{}", where, c.outside(), most));
}

void fix_below(const Case& c) {
  const bool wraps = c.facts.scan.lo < 0;
  if (wraps && c.only(-100)) {
    c.finding.summary += "; -100 is the ignore label of losses";
    const std::string knob = c.knob(Situation::kIgnore);
    c.fix(knob.empty()
              ? fmt::format("if it marks padding, keep it out of the index: {0}.masked_fill({0} == -100, 0), "
                            "and leave those results out",
                            c.in_code("index"))
              : knob);
    return;
  }
  if (wraps) {
    c.fix(fmt::format("negative indices count from the end, down to {}: keep them within {}", c.facts.scan.lo,
                      c.range()));
    return;
  }
  // One negative value, or -1 or -100 among them, marks padding: counting it from the end would make a real
  // element of it, without a word.
  const bool marks = c.has(-1) || c.has(-100);
  if (writes(c)) return fix_look(c);
  if (marks || c.only(c.integer())) {
    const std::string knob = c.knob(Situation::kIgnore);
    if (!knob.empty()) c.fix(knob);
    c.fix(
        fmt::format("if {} marks padding: {}(..., index.clamp(min=0)) for the call, then leave those results "
                    "out: out = out.masked_fill(index < 0, 0)",
                    c.value(), c.op()));
  }
  if (marks) {
    c.fix(fmt::format("{} does not count negative indices from the end", c.op()));
    return;
  }
  c.fix(
      fmt::format("{0} does not count negative indices from the end; where they are meant so: index = "
                  "torch.where(index < 0, index + {1}, index)",
                  c.op(), c.hi()));
}

void fix_above(const Case& c) {
  if (c.facts.contract->bound == Bound::kProduct) {
    c.fix(fmt::format("pass the size that went into the pooling: {}(x, indices, output_size=input.size())",
                      c.op()));
    return;
  }
  if (c.facts.contract->bound == Bound::kSpatial) {
    c.fix(fmt::format("pass the indices that {} returned for this very input", c.op()));
    return;
  }
  const Need need = c.need();
  fix_look(c);
  if (c.maybe_from_one()) c.fix(c.from_one(c.in_code("index")));
  const bool library = !c.knob(Situation::kIndex, need).empty();
  c.fix_size(Situation::kIndex, "");
  if (!writes(c) || library || !c.layer().empty()) return;
  const auto d = dimension(c);
  c.fix(fmt::format("only if {} is meant to have {} elements: make the tensor that is written to so large{}",
                    d ? fmt::format("dimension {}", *d) : std::string("that dimension"), need.text(),
                    c.basis(need)));
}

}  // namespace

void diagnose_index(const Case& c) {
  if (c.facts.contract->predicate == Predicate::kOffsets) return write_offsets(c);
  if (c.facts.contract->predicate == Predicate::kNonNegative) return write_count(c);
  if (c.hi() == 0) {
    c.finding.summary = fmt::format("{}, but {}: there is nothing to index", c.opening(), indexed(c));
    c.fix("skip the call when the tensor is empty: if x.numel(): ...");
    c.fix_sample();
    return;
  }
  c.finding.summary = fmt::format("{}, but {}: valid indices are {}", c.opening(), indexed(c), c.range());
  if (c.above() && c.facts.table == "position") return write_position(c);
  if (ignore_label(c)) {
    write_ignore_label(c);
  } else {
    c.above() ? fix_above(c) : fix_below(c);
  }
  c.fix_sample();
}

}  // namespace trapline
