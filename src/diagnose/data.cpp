#include "diagnose/data.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "diagnose/diagnose.hpp"

namespace trapline::diagnose {

std::string element_text(const std::string& column, const std::vector<std::int64_t>& index) {
  return index.empty() ? column : fmt::format("{}[{}]", column, fmt::join(index, ", "));
}

void add_place(const RecordPlace& place, const std::string& text, Finding& finding) {
  if (place.source.empty()) return;
  const std::optional<std::int64_t> line = place.line > 0 ? std::optional(place.line) : std::nullopt;
  std::string whole;
  if (place.rows_before > 0 && !place.index.empty()) {
    whole = fmt::format(" (row {} of all files)", place.rows_before + place.index[0]);
  }
  finding.evidence.push_back({place.source, line, text + whole});
}

Finding finding_of(const NotIntegers& facts) {
  const std::string element = element_text(facts.column, facts.first.index);
  const bool empty = facts.text.empty();
  const bool fraction = !empty && facts.text.find_first_not_of("0123456789.+-eE") == std::string::npos;
  Finding finding;
  finding.cause = Cause::kDtypeMismatch;
  finding.certainty = Certainty::kProven;
  finding.device_assert = false;
  finding.argument = facts.column;
  finding.element =
      Element{facts.first.index, std::nullopt, facts.bad, facts.total, std::nullopt, std::nullopt};
  finding.valid = Valid{"integers", {}, {}, {}};
  finding.summary = fmt::format("{}: {} is {}, which is not an integer: {} of {} value{}",
                                facts.first.source.empty() ? "check" : facts.first.source, element,
                                empty      ? "empty"
                                : fraction ? facts.text
                                           : fmt::format("'{}'", facts.text),
                                facts.bad, facts.total, facts.total == 1 ? "" : "s");
  if (empty) {
    finding.fix.emplace_back("drop or fill the rows without a value: pandas: df.dropna(subset=[...])");
  } else if (fraction) {
    finding.fix.emplace_back(
        "class labels and ids are whole numbers: for a number to be predicted use F.mse_loss");
  } else if (facts.labels) {
    finding.fix.emplace_back(
        "number the classes: kinds = sorted(set(labels)); label = kinds.index(label), and keep `kinds`");
  } else {
    finding.fix.emplace_back("turn text into ids with the model's tokenizer: tokenizer(text)[\"input_ids\"]");
  }
  add_place(facts.first, fmt::format("{} is '{}'", element, facts.text), finding);
  return finding;
}

// The last position of the longest row is an id of the position table that it has no row for.
Finding finding_of(const LongRows& facts) {
  const std::int64_t row = facts.first.index.empty() ? 0 : facts.first.index[0];
  Violation last;
  last.contract = find_contract("check_ids.ids");
  last.tensor = facts.tensor;
  last.source = facts.first.source;
  last.column = fmt::format("the last position of row {}", row);
  last.table = "position";
  last.scan.bad = facts.bad;
  last.scan.total = facts.total;
  last.scan.value = last.scan.max = facts.longest - 1;
  last.scan.hi = facts.positions;
  last.scan.reason = Reason::kAbove;
  last.layer = facts.layer;
  Finding finding = finding_of(last);
  finding.argument = facts.column;
  finding.element->index = {row};
  finding.values.clear();
  add_place(facts.first, fmt::format("row {} is too long", row), finding);
  return finding;
}

}  // namespace trapline::diagnose
