// The checks of data at rest, as the C interface offers them.
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "capi/text.hpp"
#include "check/scan.hpp"
#include "check/tally_json.hpp"
#include "check/verdict.hpp"
#include "report/json.hpp"
#include "trapline/capi.h"

namespace {

using nlohmann::json;
using trapline::copy;
using trapline::Scalar;
using trapline::check::Lengths;
using trapline::check::Rule;
using trapline::check::RuleKind;
using trapline::check::Tally;

constexpr std::size_t kMaxBytes = std::size_t{256} << 20U;

Rule rule_of(const trapline_data_rule& from) {
  Rule rule;
  rule.kind = static_cast<RuleKind>(from.kind);
  rule.limit = from.limit;
  if (from.has_ignore_index != 0) rule.ignore_index = from.ignore_index;
  if (from.positions >= 0) rule.positions = from.positions;
  return rule;
}

bool applies(const trapline_data_rule* rule, const trapline_tensor* tensor) {
  if (rule == nullptr || tensor == nullptr || tensor->dim < 0 || tensor->dim > 62) return false;
  if (rule->kind < TRAPLINE_DATA_LABELS || rule->kind > TRAPLINE_DATA_PROBABILITIES) return false;
  if (tensor->dtype < TRAPLINE_BOOL || tensor->dtype > TRAPLINE_FLOAT64) return false;
  const bool floating = tensor->dtype >= TRAPLINE_FLOAT16;
  if (!floating && rule->kind >= TRAPLINE_DATA_FINITE) return false;
  bool empty = false;
  for (std::int32_t d = 0; d < tensor->dim; ++d) empty = empty || tensor->sizes[d] == 0;
  return tensor->data != nullptr || empty;
}

trapline::inputs::Piece piece_of(const trapline_tensor& tensor, const trapline::inputs::Column& column) {
  const auto dims = static_cast<std::size_t>(tensor.dim);
  trapline::inputs::Piece piece;
  piece.column = &column;
  piece.view = {
      tensor.data, static_cast<trapline::DType>(tensor.dtype), {tensor.sizes, dims}, {tensor.strides, dims}};
  return piece;
}

std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

void fill(trapline_scan& out, const Tally& tally, const trapline_data_rule& rule) {
  out = {};
  out.bad = tally.bad + tally.missing.count + tally.malformed.count;
  out.total = tally.total + tally.missing.count + tally.malformed.count;
  out.first = -1;
  out.list_position = -1;
  out.is_float = rule.kind >= TRAPLINE_DATA_FINITE ? 1 : 0;
  out.reason = static_cast<std::int32_t>(tally.reason);
  const auto number = [](const std::optional<Scalar>& value) {
    return value ? trapline::as_double(*value) : std::numeric_limits<double>::quiet_NaN();
  };
  const auto integer = [](const std::optional<Scalar>& value) {
    return value && trapline::is_integer(*value) ? std::get<std::int64_t>(*value) : 0;
  };
  out.fmin = number(tally.min);
  out.fmax = number(tally.max);
  out.imin = integer(tally.min);
  out.imax = integer(tally.max);
  if (tally.first) {
    out.ivalue = integer(tally.first->value);
    out.fvalue = number(tally.first->value);
  }
  out.hi = rule.limit;
  out.has_also = rule.has_ignore_index;
  out.also = rule.ignore_index;
}

}  // namespace

extern "C" {

int trapline_data_check(const trapline_data_rule* rule, const trapline_tensor* tensor, trapline_scan* out) {
  if (out == nullptr || !applies(rule, tensor)) return TRAPLINE_NOT_APPLICABLE;
  try {
    const trapline::inputs::Column column;
    const Tally tally = trapline::check::scan_piece(rule_of(*rule), piece_of(*tensor, column), 0);
    fill(*out, tally, *rule);
    if (rule->kind == TRAPLINE_DATA_IDS && rule->positions >= 0 && tensor->dim >= 2 && tensor->sizes[0] > 0 &&
        tensor->sizes[tensor->dim - 1] > rule->positions) {
      return TRAPLINE_VIOLATED;
    }
    return out->bad == 0 ? TRAPLINE_OK : TRAPLINE_VIOLATED;
  } catch (const std::exception&) {  // memory is exhausted
    return TRAPLINE_NOT_APPLICABLE;
  }
}

char* trapline_data_tally(const trapline_data_rule* rule, const trapline_tensor* tensor,
                          std::int64_t first_row) {
  try {
    if (!applies(rule, tensor)) {
      return copy(
          R"({"error": "check: this dtype or shape has no such rule: pass integers or floating point"})");
    }
    const Rule made = rule_of(*rule);
    const trapline::inputs::Column column;
    trapline::inputs::Piece piece = piece_of(*tensor, column);
    piece.first_row = first_row;
    json out = trapline::check::to_json(trapline::check::scan_details(made, piece, 0));
    if (made.positions && made.kind == RuleKind::kIds && tensor->dim >= 2) {
      Lengths lengths;
      for (std::int64_t i = 0; i < tensor->sizes[0]; ++i) {
        lengths.add(first_row + i, 0, tensor->sizes[tensor->dim - 1], *made.positions);
      }
      out["lengths"] = trapline::check::to_json(lengths);
    }
    return copy(dump(out));
  } catch (const std::exception&) {
    return copy(R"({"error": "check: out of memory: free some memory and run again"})");
  }
}

char* trapline_data_findings(const trapline_data_rule* rule, const char* tallies_json,
                             const char* subject_json) {
  try {
    const std::string_view text = tallies_json == nullptr ? "" : tallies_json;
    const json tallies = text.size() > kMaxBytes ? json() : json::parse(text, nullptr, false);
    const json subject = json::parse(subject_json == nullptr ? "{}" : subject_json, nullptr, false);
    if (rule == nullptr || rule->kind < TRAPLINE_DATA_LABELS || rule->kind > TRAPLINE_DATA_PROBABILITIES ||
        !tallies.is_array() || !subject.is_object()) {
      return copy(
          R"({"error": "check: these are not tallies: pass a list of what trapline_data_tally gave"})");
    }
    const Rule made = rule_of(*rule);
    Tally all;
    Lengths lengths;
    for (const json& one : tallies) {
      all.merge(trapline::check::tally_from(one));
      if (one.is_object() && one.contains("lengths"))
        lengths.merge(trapline::check::lengths_from(one["lengths"]));
    }
    trapline::check::Subject about;
    about.source = subject.value("source", "");
    about.name = subject.value("name", "");
    about.dtype = subject.value("dtype", "");
    about.shape = subject.value("shape", std::vector<std::int64_t>{});
    trapline::check::Range range;
    range.add(all, made);
    const bool integers = trapline::check::is_integral(made.kind) && range.count > 0;
    json findings = json::array();
    for (const trapline::Finding& finding :
         findings_of(made, about, all, integers ? std::optional(range) : std::nullopt)) {
      findings.push_back(trapline::to_json(finding));
    }
    if (const auto finding = finding_of(made, about, lengths))
      findings.push_back(trapline::to_json(*finding));
    return copy(
        dump({{"findings", findings}, {"total", all.total + all.missing.count + all.malformed.count}}));
  } catch (const std::exception&) {
    return copy(R"({"error": "check: the subject has a member of the wrong type: see capi.h"})");
  }
}

}  // extern "C"
