// What the program computes the numbers by, and what is true of every result of that.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "diagnose/frame.hpp"
#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {
namespace {

// `i // self.per_site`: of whole numbers, by one size for all groups.
bool is_grouping(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  return has("//") && !has("*") && !has("(") && !has("+") && !has("-");
}

// `flat // len(vocab)`, of a place in all rows together: the two sides; empty: it is no such division.
std::pair<std::string_view, std::string_view> flat_sides(std::string_view text) {
  const std::size_t at = text.find(" // ");
  if (at == std::string_view::npos) return {};
  const std::string_view left = text.substr(0, at), right = text.substr(at + 4);
  constexpr std::string_view kWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  const bool is_width = right.starts_with("len(") || right.find(".size(") != std::string_view::npos ||
                        right.find(".shape[") != std::string_view::npos;
  const bool is_name = left.find_first_not_of(kWord) == std::string_view::npos;
  return is_name && is_width && right.find(' ') == std::string_view::npos
             ? std::pair(left, right)
             : std::pair(std::string_view(), std::string_view());
}

// A quantity that is made an integer: `((angle + pi) / (2 * pi) * bins).floor().long()`.
bool is_cut(const ComputedFact& computed) {
  if (is_grouping(computed.text)) return false;
  constexpr std::array kCasts{"floor(", ".long()", ".int()", "int(", "//", "round(", "torch.int"};
  const std::string_view text = computed.text;
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  const bool divides = has("/") || has("*") || has("floor(") || has("ceil(");
  return divides && std::ranges::any_of(kCasts, has);
}

// "; there `skill[0, 4]` is 11, `correct[0, 4]` is 2"
std::string of_parts(const ComputedFact& made) {
  std::vector<std::string> parts;
  for (const auto& [variable, value] : made.parts)
    parts.push_back(fmt::format("`{}` is {}", to_text(variable), to_text(value)));
  return parts.empty() ? std::string() : fmt::format("; there {}", fmt::join(parts, ", "));
}

}  // namespace

bool ViolationWriter::is_end_of_cut() const {
  return above() && facts.computed && hi() > 2 && only(hi()) && is_cut(*facts.computed);
}

bool ViolationWriter::is_of_groups() const {
  return above() && facts.computed && !facts.calendar && is_grouping(facts.computed->text);
}

const MadeAt* ViolationWriter::product() const {
  if (!above() || !facts.library.owner.empty()) return nullptr;
  const auto at = std::ranges::find_if(facts.made, [](const MadeAt& one) {
    return one.text.find(" * ") != std::string::npos || one.text.find(" ** ") != std::string::npos;
  });
  if (at != facts.made.end()) return &*at;
  const bool divided = std::ranges::any_of(
      facts.made, [](const MadeAt& one) { return one.text.find("//") != std::string::npos; });  // no parts
  return !facts.made.empty() && facts.made.back().computed && !divided ? &facts.made.back() : nullptr;
}

// `n // 16` rows, of numbers up to n - 1 that are divided alike.
bool ViolationWriter::write_rest() {
  if (!above() || !only(hi()) || seen_max() != hi()) return false;
  const auto at = std::ranges::find_if(facts.made, [](const MadeAt& one) {
    return one.text.find("//") != std::string::npos && one.text.find(" + 1") == std::string::npos;
  });
  if (at == facts.made.end()) return false;
  fix(fmt::format("{}: {}", look_at_computation("the " + nouns()), outside()));
  fix(fmt::format(
      "`{}` ({}) leaves the rest of the division out: where there is one, it has one more, which is not "
      "full: -(-n // size)",
      at->text, file_and_line(at->file, at->line)));
  return true;
}

bool ViolationWriter::write_product() {
  const MadeAt* size = product();
  if (size == nullptr) return false;
  fix(fmt::format("{}: {}", look_at_computation("the " + nouns()), outside()));
  fix(fmt::format(
      "the size is put together, `{}` ({}): see first that each part of such a number stays below "
      "its own size",
      size->text, file_and_line(size->file, size->line)));
  return true;
}

std::string ViolationWriter::look_at_computation(const std::string& otherwise) const {
  if (!facts.computed && facts.assigned) {
    const MadeAt& at = facts.assigned->at;
    const std::string name = facts.assigned->name.empty() ? "" : facts.assigned->name + " = ";
    return fmt::format("look at `{}{}` ({})", name, at.text, file_and_line(at.file, at.line));
  }
  if (!facts.computed && facts.passed_as) {
    return fmt::format("look at where `{}` is computed, before {} passes it on", facts.passed_as->name,
                       file_and_line(facts.passed_as->file, facts.passed_as->line));
  }
  if (!facts.computed) {
    return fmt::format("look at where {} {} computed", own(otherwise), facts.variable ? "is" : "are");
  }
  const ComputedFact& made = *facts.computed;
  const std::string name = made.name.empty() ? std::string() : made.name + " = ";
  const std::string where =
      made.file.empty() ? fmt::format("line {}", made.line) : file_and_line(made.file, made.line);
  return fmt::format("look at `{}{}` ({}{})", name, made.text, where, of_parts(made));
}

void ViolationWriter::settle_guesses() {
  if (!names_statement() || guesses_.empty()) return;
  const std::string statement = look_at_computation("");
  auto& fixes = finding_.fix;
  const auto quotes = [&](const std::string& line) { return line.find(statement) != std::string::npos; };
  if (std::ranges::none_of(fixes, quotes)) return;
  std::erase_if(fixes, [&](const std::string& line) {
    return !quotes(line) && std::ranges::find(guesses_, line) != guesses_.end();
  });
}

std::string ViolationWriter::look_at_making(const std::string& otherwise) const {
  return facts.assigned ? look_at_computation(otherwise)
                        : fmt::format("look at where {} is made", own(otherwise));
}

std::string ViolationWriter::look_at_value(const std::string& otherwise) const {
  return facts.assigned ? look_at_computation(otherwise)
                        : fmt::format("look at where {} is computed", own(otherwise));
}

// As many different ones as there are places, most of them beyond the end: the numbers of a longer list.
bool ViolationWriter::write_numbered_here() {
  const auto& seen = facts.seen;
  if (!above() || hi() < 2 || !seen || seen->here != hi() || facts.counted || computes()) return false;
  constexpr std::int64_t kEach = 3;  // with fewer of each chance gives as many kinds as there are places
  if (2 * facts.scan.bad < facts.scan.total || facts.scan.total < kEach * hi() || maybe_from_one())
    return false;
  const bool label = noun() == "label";
  // What is read has an order of its own, which sorting the numbers would not give.
  const std::string op = this->op();
  const bool reads =
      !label && !op.starts_with("scatter") && !op.starts_with("index_") && op != "one_hot" && noun() != "id";
  if (reads || op == "index_select") {
    fix(
        fmt::format("{}: {}; they have just {} different values, as many as there are places: where they are "
                    "names of these places, look up which place each has",
                    look_at_computation("the index"), outside(), hi()));
    return true;
  }
  const std::string own = label ? "where each call has its own (the classes of an episode or task), number "
                                  "them by one list for the whole of it, support and query alike"
                                : fmt::format(
                                      "where each call has its own (the groups of a batch), number them "
                                      "there: torch.unique({}, return_inverse=True)[1]",
                                      in_code(argument()));
  fix(fmt::format("{}: {}", look_at_making("the " + noun()), outside()));
  guess(fmt::format("these {} have just {} different values, as many as there are {}: {}", facts.scan.total,
                    hi(), label ? "classes" : "places", own));
  if (is_class()) finding_.also = {Cause::kNumClassesMismatch};
  return true;
}

std::string ViolationWriter::rule_of_computation() const {
  if (!facts.computed) return {};
  const std::string& by = facts.computed->by;
  static constexpr std::array kPlaces{"argmax", "argmin",   "argsort", "topk",   "max",
                                      "min",    "kthvalue", "mode",    "median", "sort"};
  if (std::ranges::find(kPlaces, by) != kPlaces.end())
    return fmt::format("{} counts from 0: what is searched has n places, and gives 0 to n - 1", by);
  if (above() && facts.computed->before && *facts.computed->before > static_cast<double>(hi())) {
    const ComputedFact& made = *facts.computed;
    const std::string source =
        made.source
            ? fmt::format("`{}` is {} there", to_text(*made.source), to_text(Scalar(made.source_value)))
            : fmt::format("it was {} before the cast", to_text(Scalar(*made.before)));
    const std::string look = made.source && !made.source_text.empty()
                                 ? fmt::format("look at `{} = {}` (line {})", made.source->name,
                                               made.source_text, made.source_line)
                                 : std::string("look at what makes it so");
    return fmt::format("{}, beyond what gives {}: {}; a limit behind it hides that", source, hi() - 1, look);
  }
  if (is_of_groups())
    return "see whether what it is divided by is the size of one group: `//` takes all groups to be as "
           "large; "
           "where they are not, their own sizes tell (bisect, torch.searchsorted among the cumulative sizes)";
  if (const auto& [flat, width] = flat_sides(facts.computed->text); above() && !flat.empty())
    return fmt::format(
        "where `{}` is a place in all rows together, it has to be divided by how many places a row has: that "
        "is "
        "more than `{}`; a limit behind it hides that",
        flat, width);
  // `N = length // width` parts, and a place is `at // width`: the rest at the end has a part of its own.
  if (above() && only(hi()) && !facts.made.empty()) {
    const std::string& size = facts.made.back().text;
    const std::size_t at = size.find(" // "), here = facts.computed->text.rfind(" // ");
    if (at != std::string::npos && here != std::string::npos &&
        facts.computed->text.substr(here) == size.substr(at))
      return fmt::format(
          "`{}` leaves out the part that is not whole at the end: rounded up, -(-n {}), there is one more",
          size, size.substr(at + 1));
  }
  const std::string_view how = facts.computed->text;
  if (is_end_of_cut()) {
    if (how.find("ceil(") != std::string_view::npos)
      return "ceil gives 1 to n of what is cut into n parts: floor gives 0 to n - 1";
    if (how.find("round(") != std::string_view::npos)
      return "round gives 0 to n of what is cut into n parts: where a part is meant, and not the nearest "
             "edge, "
             "floor gives 0 to n - 1";
    const bool sure = facts.computed->before.has_value();
    const bool in_one = facts.sample && facts.sample->dataset_index && facts.scan.bad == 1 && !sure;
    const ComputedFact& made = *facts.computed;
    const std::string cut =
        made.of_sample && !made.file.empty()
            ? fmt::format("`{}` ({}) cuts", made.text, file_and_line(made.file, made.line))
            : std::string("is cut there");
    return fmt::format(
        "{3}where a range is cut into {0} parts, its very end gives {0}: say where that belongs, in the last "
        "part "
        "({1}), in the first one where it goes around (angles, hours of the day), or in one part more (ends "
        "of intervals){2}",
        hi(), hi() - 1, sure ? "" : "; what lies beyond the end is wrong before",
        in_one
            ? fmt::format(
                  "see first whether what {} is right in that sample (its unit, how it was read); if it is: ",
                  cut)
            : std::string());
  }
  if (by != "bucketize" && by != "searchsorted" && by != "digitize") return {};
  if (of_nan()) return {};  // NaN is behind the last edge
  if (!above() && how.ends_with("- 1") && integer() == -1)
    return by == "digitize"
               ? std::string("digitize gives 0 to what is below the first edge: less 1, that has no bucket")
               : fmt::format(
                     "{} gives 0 to what is on the first edge or below it: less 1, that has no bucket; "
                     "right=True takes the first edge into the first bucket, and the last one out of the "
                     "last",
                     by);
  if (above() && only(hi()) && how.ends_with("- 1"))
    return fmt::format(
        "{} with n edges gives 0 to n: n + 1 buckets; less 1, what is on the last edge or beyond "
        "has none",
        by);
  // A cumulative sum that rounding ends too early, or a value out of range: then no bucket is missing.
  const char* beyond = above() ? ", the last for what lies beyond the last edge: see whether that is to "
                                 "occur, or the edges end too early"
                               : "";
  if (const auto edges = facts.computed->edges)
    return fmt::format("{} with {} edges gives 0 to {}: {} buckets{}", by, *edges, *edges, *edges + 1,
                       beyond);
  return fmt::format("{} with n edges gives 0 to n: n + 1 buckets{}", by, beyond);
}

}  // namespace trapline::diagnose
