// What is to hold for the elements of a column, with what is known of the model they are meant for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/finding.hpp"
#include "trapline/types.h"

namespace trapline::check {

enum class RuleKind : std::uint8_t {
  kLabels = TRAPLINE_DATA_LABELS,
  kIds = TRAPLINE_DATA_IDS,
  kFinite = TRAPLINE_DATA_FINITE,
  kProbabilities = TRAPLINE_DATA_PROBABILITIES,
};

struct Rule {
  RuleKind kind = RuleKind::kLabels;
  std::int64_t limit = 0;                    // labels: classes; ids: rows of the table
  std::optional<std::int64_t> ignore_index;  // labels: allowed besides [0, limit)
  std::optional<std::int64_t> positions;     // ids: no row of a column may hold more of them
  std::optional<Layer> layer;                // the head, or the table of ids
  std::optional<Layer> position_layer;
  std::map<std::string, std::int64_t> special_ids;  // "pad_token_id"
  bool weights = false;                             // finite: the columns are weights of a model
  bool missing_is_fine = false;                     // a table may have fields without a value
};

inline bool is_integral(RuleKind kind) { return kind == RuleKind::kLabels || kind == RuleKind::kIds; }

}  // namespace trapline::check
