#include "capi/rows.hpp"

#include <cstdint>
#include <functional>
#include <span>

namespace trapline {

namespace {

struct Rows {
  std::vector<trapline_contract> c_rows;
  std::span<const Contract> contracts;  // the same rows in the same order
};

const Rows& table() {
  // Leaked on purpose, as the table behind it.
  static const auto* const kRows = [] {
    auto* all = new Rows{{}, contracts()};
    for (const Contract& row : all->contracts) {
      all->c_rows.push_back({row.id.data(), row.op.data(), row.argument.data(), row.bound_arg.data(),
                             row.dim_arg.data(), row.also_arg.data(), row.public_op.data(),
                             row.public_argument.data(), static_cast<std::int32_t>(row.predicate),
                             static_cast<std::int32_t>(row.bound), row.composite ? 1 : 0,
                             row.remember ? 1 : 0, static_cast<std::int32_t>(row.on_cpu),
                             reads_also(row) ? 1 : 0});
    }
    return all;
  }();
  return *kRows;
}

}  // namespace

const std::vector<trapline_contract>& rows() { return table().c_rows; }

const Contract* contract_of(const trapline_contract* row) {
  if (row == nullptr) return nullptr;
  const std::less<const trapline_contract*> before;
  const auto& [all, contracts] = table();
  if (!before(row, all.data()) && before(row, all.data() + all.size())) {
    return &contracts[static_cast<std::size_t>(row - all.data())];
  }
  return row->id == nullptr ? nullptr : find_contract(row->id);
}

}  // namespace trapline
