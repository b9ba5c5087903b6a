// Ids of which their number tells how they were made: by a type that is too small, or by the model's own
// choice.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "diagnose/markers.hpp"
#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {

std::string of_unsigned(const ViolationWriter& w) {
  if (const int bits = w.wrapped_bits(); bits != 0) {
    const std::int64_t all = std::int64_t{1} << bits;
    const auto [least, most] = std::ranges::minmax(
        w.facts.values, {}, [](const auto& pair) { return std::get<std::int64_t>(pair.first); });
    return fmt::format(
        "; {0} to {1} are also what {2} to {3} become in uint{4}: see whether something is taken off "
        "there in such numbers",
        to_text(least.first), to_text(most.first), std::get<std::int64_t>(least.first) - all,
        std::get<std::int64_t>(most.first) - all, bits);
  }
  if (w.only(255)) return "; 255 is also what -1 becomes in uint8, and a usual fill value";
  if (w.only(65535)) return "; 65535 is also what -1 becomes in uint16";
  if (w.only(4294967295)) return "; 4294967295 is also what -1 becomes in uint32";
  if (!w.only(w.integer()) || !w.no_size()) return "";
  for (const int bits : {8, 16, 32}) {
    const std::int64_t all = std::int64_t{1} << bits;
    if (w.integer() < all && w.integer() >= all - 16)
      return fmt::format("; {} is also what {} becomes in uint{}", w.value(), w.integer() - all, bits);
  }
  return marks_or_wraps(w.integer(), w.hi()) ? fmt::format("; {} is a usual fill value", w.value())
                                             : std::string();
}

std::string of_signed(const ViolationWriter& w) {
  constexpr std::int64_t kByte = 256, kLowest = -128, kShort = 65536, kLowestShort = -32768;
  const std::int64_t value = w.integer();
  // What has wrapped leaves no number above the highest of its type.
  const double most = w.facts.scan.max ? as_double(*w.facts.scan.max) : 0;
  if (most >= static_cast<double>((value >= kLowest ? kByte : kShort) / 2)) return "";
  if (value < -1 && value >= kLowest && value + kByte < w.hi())
    return fmt::format("; {} is also what {} becomes in int8", value, value + kByte);
  if (value < kLowest && value >= kLowestShort && value + kShort < w.hi())
    return fmt::format("; {} is also what {} becomes in int16", value, value + kShort);
  return "";
}

namespace {

// Of ids that were written with half as many bits: two of them, side by side.
// Ids above any table are as well "a + 256 * 1": both halves of each have to be valid where chance would
// hardly make them so, and the upper halves have to differ as those of ids do.
std::string of_pairs(const ViolationWriter& w) {
  constexpr double kChance = 0.01;
  if (w.integer() < 0) return {};
  for (const int bits : {8, 16, 32}) {
    const std::size_t least = bits == 32 ? 2 : 4;  // no other numbers lie so
    if (w.facts.values.size() < least) continue;
    const std::int64_t base = std::int64_t{1} << bits;
    std::set<std::int64_t> upper;
    const bool all = std::ranges::all_of(w.facts.values, [&](const auto& pair) {
      if (!is_integer(pair.first)) return false;
      const std::int64_t value = std::get<std::int64_t>(pair.first);
      upper.insert(value / base);
      return value >= base && value / base < w.hi() && value % base < w.hi();
    });
    const double valid = std::min(1.0, static_cast<double>(w.hi()) / static_cast<double>(base));
    const bool chance = std::pow(valid, static_cast<double>(w.facts.values.size())) > kChance;
    if (all && !chance && upper.size() >= least)
      return fmt::format("each is two {0}-bit numbers read as one: {1} is {2} + {3} * {4}", bits, w.value(),
                         w.integer() % base, base, w.integer() / base);
  }
  return {};
}

}  // namespace

bool is_drawn(const ViolationWriter& w) { return w.facts.newest && w.above() && !w.need().exact; }

void fix_drawn(ViolationWriter& w) {
  w.fix(
      fmt::format("only the newest id of a row is bad: if a model chose it, its scores have more columns "
                  "than this table has rows: where a vocabulary was rounded up, cut them before the choice, "
                  "logits[..., :{}]; where they are of another model's vocabulary, none of its ids fits here",
                  w.hi()));
  w.fix(fmt::format("if not, {}: {}", w.look_at_computation("the ids"), w.outside()));
}

bool write_pairs(ViolationWriter& w) {
  const std::string pairs = of_pairs(w);
  if (pairs.empty()) return false;
  w.finding().summary += "; " + pairs;
  w.fix(
      "read them with the dtype that they were written with (np.memmap, np.fromfile, np.frombuffer, "
      "torch.frombuffer): the data and the size may be right");
  return true;
}

}  // namespace trapline::diagnose
