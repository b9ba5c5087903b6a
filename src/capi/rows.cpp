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
      all->c_rows.push_back({.id = row.id.data(),
                             .op = row.op.data(),
                             .argument = row.argument.data(),
                             .bound_arg = row.bound_arg.data(),
                             .dim_arg = row.dim_arg.data(),
                             .also_arg = row.also_arg.data(),
                             .public_op = row.public_op.data(),
                             .public_argument = row.public_argument.data(),
                             .predicate = static_cast<std::int32_t>(row.predicate),
                             .bound = static_cast<std::int32_t>(row.bound),
                             .also = static_cast<std::int32_t>(row.also),
                             .heal = static_cast<std::int32_t>(row.heal),
                             .composite = row.composite ? 1 : 0,
                             .remember = row.remember ? 1 : 0,
                             .on_cpu = static_cast<std::int32_t>(row.on_cpu)});
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
