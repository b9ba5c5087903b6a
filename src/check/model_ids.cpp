// Ids against the table of tokens.
#include <fmt/format.h>

#include <algorithm>

#include "check/model_parts.hpp"
#include "diagnose/diagnose.hpp"

namespace trapline::check {

void add_id(std::vector<Finding>& findings, const Model& model, const NamedId& id, std::int64_t bad,
            std::int64_t greatest) {
  const Tensor* table = model.token_table();
  const std::int64_t rows = model.rows_of_tokens().value_or(0);
  diagnose::Violation facts;
  facts.contract = find_contract("check_ids.ids");
  facts.source = model.path(id.file);
  facts.column = id.name;
  facts.table = "token";
  facts.scan.bad = facts.scan.total = bad;
  facts.scan.value = id.id;
  facts.scan.max = greatest;
  facts.scan.hi = rows;
  facts.scan.reason = id.id < 0 ? Reason::kBelow : Reason::kAbove;
  if (id.name.ends_with("_token_id")) facts.special_ids = {{id.name, id.id}};
  if (table != nullptr) facts.layer = table_layer(*table);
  facts.places = {{{model.path(id.file), 0, {}, 0}, id.id}};
  Finding finding = diagnose::finding_of(facts);
  finding.element->total.reset();
  if (!facts.special_ids.empty()) {
    // A table that grows to reach a wrong id would hide it: only a token that was added needs rows.
    finding.fix = {
        fmt::format("set {} to the id that the model's own tokenizer has for it: it is below {}", id.name,
                    rows),
        "if the token was added to the tokenizer: model.resize_token_embeddings(len(tokenizer)), then "
        "model.save_pretrained(...)"};
  }
  findings.push_back(std::move(finding));
}

void check_tokens(const Model& model, std::vector<Finding>& findings) {
  const auto rows = model.rows_of_tokens();
  if (!rows) return;
  std::vector<NamedId> beyond;
  for (const auto* list : {&model.tokenizer.ids, &model.tokenizer.absent}) {
    for (const NamedId& id : *list) {
      if (id.id >= *rows || id.id < 0) beyond.push_back(id);
    }
  }
  if (beyond.empty()) return;
  const auto least = std::ranges::min_element(beyond, {}, &NamedId::id);
  const auto most = std::ranges::max_element(beyond, {}, &NamedId::id);
  const auto count =
      std::max<std::int64_t>(static_cast<std::int64_t>(beyond.size()), model.tokenizer.size - *rows);
  add_id(findings, model, *least, count, most->id);
}

}  // namespace trapline::check
