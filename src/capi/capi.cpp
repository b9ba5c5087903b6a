#include "trapline/capi.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "capi/diagnose_json.hpp"
#include "contracts/check_call.hpp"
#include "contracts/contract.hpp"
#include "core/version.hpp"

namespace {

using trapline::Contract;

const std::vector<trapline_contract>& rows() {
  // Leaked on purpose, as the table behind it.
  static const auto* const kRows = [] {
    auto* all = new std::vector<trapline_contract>;
    for (const Contract& row : trapline::contracts()) {
      all->push_back({row.id.data(), row.op.data(), row.argument.data(), row.bound_arg.data(),
                      row.dim_arg.data(), row.also_arg.data(), row.public_op.data(),
                      row.public_argument.data(), static_cast<std::int32_t>(row.predicate),
                      static_cast<std::int32_t>(row.bound), row.composite ? 1 : 0, row.remember ? 1 : 0});
    }
    return all;
  }();
  return *kRows;
}

// Rows are handed out by address; a caller that copied one is found again by its id.
const Contract* contract_of(const trapline_contract* row) {
  if (row == nullptr) return nullptr;
  const std::less<const trapline_contract*> before;
  const auto& all = rows();
  if (!before(row, all.data()) && before(row, all.data() + all.size())) {
    return &trapline::contracts()[static_cast<std::size_t>(row - all.data())];
  }
  return row->id == nullptr ? nullptr : trapline::find_contract(row->id);
}

char* copy(const std::string& text) {
  auto* bytes = static_cast<char*>(std::malloc(text.size() + 1));
  if (bytes != nullptr) std::memcpy(bytes, text.c_str(), text.size() + 1);
  return bytes;
}

}  // namespace

extern "C" {

const char* trapline_version(void) { return trapline::kVersion; }

int trapline_capi_version(void) { return TRAPLINE_CAPI_VERSION; }

const trapline_contract* trapline_contracts(size_t* count) {
  if (count != nullptr) *count = rows().size();
  return rows().data();
}

int trapline_check(const trapline_contract* row, const trapline_arg* argument, const trapline_arg* bound,
                   const trapline_arg* dim, const trapline_arg* also, trapline_scan* out) {
  const Contract* contract = contract_of(row);
  if (contract == nullptr || out == nullptr) return TRAPLINE_NOT_APPLICABLE;
  return trapline::check_call(*contract, {argument, bound, dim, also}, *out);
}

char* trapline_diagnose(const char* facts_json) {
  // No exception may leave: the caller may be C, Python or another C++ runtime.
  try {
    return copy(trapline::diagnose_json(facts_json == nullptr ? "" : facts_json));
  } catch (const std::exception&) {
    return copy(R"({"error": "diagnose: memory is exhausted: free some"})");
  }
}

void trapline_free(char* text) { std::free(text); }

}  // extern "C"
