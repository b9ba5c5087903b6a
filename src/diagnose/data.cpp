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

namespace {

// What both findings on values that are no numbers have; the summary lacks its end.
Finding no_number(const std::string& column, const RecordPlace& first, std::int64_t bad, std::int64_t total,
                  const std::string& what) {
  Finding finding;
  finding.certainty = Certainty::kProven;
  finding.device_assert = false;
  finding.argument = column;
  finding.element = Element{first.index, std::nullopt, bad, total, std::nullopt, std::nullopt};
  finding.summary =
      fmt::format("{}: {} is {}: {} of {} value{}", first.source.empty() ? "check" : first.source,
                  element_text(column, first.index), what, bad, total, total == 1 ? "" : "s");
  return finding;
}

}  // namespace

Finding finding_of(const MissingValues& facts) {
  const std::string written = facts.text.empty() ? "" : fmt::format(" ('{}')", facts.text);
  Finding finding =
      no_number(facts.column, facts.first, facts.bad, facts.total,
                fmt::format("missing{}{}", written, facts.numbers ? ", which is read as NaN" : ""));
  finding.cause = facts.numbers ? Cause::kNonFiniteValue : Cause::kNanToIndex;
  finding.valid = Valid{facts.numbers ? "finite numbers" : "integers", {}, {}, {}};
  if (facts.numbers) {
    finding.fix.emplace_back(
        "fill such values where the data is loaded: pandas: df.fillna(df.mean(numeric_only=True))");
  } else {
    finding.fix.emplace_back("find out why the value is missing, and write it");
  }
  finding.fix.emplace_back(
      "or leave these rows out of training, which loses them: pandas: df.dropna(subset=[...])");
  add_place(facts.first, fmt::format("{} is missing", element_text(facts.column, facts.first.index)),
            finding);
  return finding;
}

Finding finding_of(const NotIntegers& facts) {
  const auto only_of = [&](std::string_view characters) {
    return facts.text.find_first_not_of(characters) == std::string::npos;
  };
  const bool whole = only_of("0123456789+-");  // as text in JSON, or more than int64 holds
  const bool fraction = !whole && only_of("0123456789.+-eE");
  constexpr std::size_t kDigits = 19;  // of the largest int64
  const bool huge = whole && facts.text.size() >= kDigits;
  const std::string value = fraction || huge ? facts.text : fmt::format("'{}'", facts.text);
  Finding finding = no_number(facts.column, facts.first, facts.bad, facts.total,
                              value + (facts.numbers ? ", which is not a number"
                                       : huge        ? ", which is more than int64 holds"
                                       : whole       ? ", which is text and not a number"
                                                     : ", which is not an integer"));
  finding.cause = Cause::kDtypeMismatch;
  finding.valid = Valid{facts.numbers ? "numbers" : "integers", {}, {}, {}};
  if (facts.numbers) {
    finding.fix.emplace_back(
        "correct the value, or tell the reader that it stands for a missing one: "
        "pandas: pd.read_csv(..., na_values=[...])");
  } else if (huge) {
    finding.fix.emplace_back(
        "find where the number comes from: an unsigned -1, a hash, or a key is no class number");
  } else if (whole) {
    finding.fix.emplace_back("write numbers without quotes, or turn them into integers: int(value)");
  } else if (fraction) {
    finding.fix.emplace_back(
        "class labels and ids are whole numbers: for a number to be predicted use F.mse_loss");
  } else if (facts.labels && facts.bad * 2 < facts.total) {
    finding.fix.emplace_back("correct the value: the other labels are numbers");
  } else if (facts.labels) {
    finding.fix.emplace_back(
        "number the classes: kinds = sorted(set(labels)); label = kinds.index(label), and keep `kinds`");
  } else {
    finding.fix.emplace_back("turn text into ids with the model's tokenizer: tokenizer(text)[\"input_ids\"]");
  }
  add_place(facts.first, fmt::format("{} is {}", element_text(facts.column, facts.first.index), value),
            finding);
  return finding;
}

Finding finding_of(const ClassFolders& facts) {
  Finding finding;
  finding.cause = Cause::kNumClassesMismatch;
  finding.certainty = Certainty::kProven;
  finding.device_assert = false;
  finding.argument = facts.column;
  if (!facts.empty.empty()) {
    finding.summary =
        fmt::format("{}: the folder {} counts as a class, and has no pictures: ImageFolder refuses it",
                    facts.source, facts.empty);
    finding.fix.emplace_back(
        "if it is no class, remove the folder: ImageFolder numbers every folder, hidden ones too");
    finding.fix.emplace_back("if it is one, put its pictures there, or pass allow_empty=True");
    finding.evidence.push_back({facts.empty, std::nullopt, "no pictures"});
    return finding;
  }
  if (!facts.hidden.empty()) {
    finding.summary = fmt::format(
        "{}: the hidden folder {} counts as class {}: the classes behind it are numbered one too high",
        facts.source, facts.hidden, facts.label);
    finding.fix.push_back(fmt::format("if it is no class, remove the folder: {}", facts.hidden));
    finding.fix.emplace_back(
        "ImageFolder numbers every folder by the alphabet, hidden ones first: a model that was trained with "
        "it "
        "has its classes shifted");
    finding.evidence.push_back({facts.hidden, std::nullopt, fmt::format("class {}", facts.label)});
    return finding;
  }
  std::size_t at = 0;  // the first number that means another class
  while (at < facts.first_names.size() && at < facts.other_names.size() &&
         facts.first_names[at] == facts.other_names[at]) {
    ++at;
  }
  const auto name = [&](const std::vector<std::string>& names) {
    return at < names.size() ? fmt::format("'{}'", names[at]) : std::string("no class");
  };
  finding.summary =
      fmt::format("{}: the splits have other classes: label {} is {} in {}, but {} in {}", facts.source, at,
                  name(facts.first_names), facts.first, name(facts.other_names), facts.other);
  finding.fix.emplace_back(
      "give every split the same folders: ImageFolder numbers each split's by the alphabet, on their own");
  finding.fix.emplace_back(
      "or number the folders of all splits alike: ImageFolder(...).class_to_idx of the first one");
  finding.evidence.push_back(
      {facts.first, std::nullopt, fmt::format("{} classes", facts.first_names.size())});
  finding.evidence.push_back(
      {facts.other, std::nullopt, fmt::format("{} classes", facts.other_names.size())});
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
