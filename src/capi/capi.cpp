#include "trapline/capi.h"

#include <cstdlib>
#include <exception>
#include <vector>

#include "capi/diagnose_json.hpp"
#include "capi/rows.hpp"
#include "capi/text.hpp"
#include "contracts/check_call.hpp"
#include "contracts/contract.hpp"
#include "core/tensor_view.hpp"
#include "core/version.hpp"

extern "C" {

const char* trapline_version(void) { return trapline::kVersion; }

int trapline_capi_version(void) { return TRAPLINE_CAPI_VERSION; }

const char* trapline_dtype_name(int32_t dtype) {
  if (dtype < TRAPLINE_BOOL || dtype > TRAPLINE_FLOAT64) return "other";
  return trapline::name_of(static_cast<trapline::DType>(dtype)).data();  // a literal: it ends in a NUL
}

const trapline_contract* trapline_contracts(size_t* count) {
  const std::vector<trapline_contract>& all = trapline::rows();
  if (count != nullptr) *count = all.size();
  return all.data();
}

int trapline_check(const trapline_contract* row, const trapline_arg* argument, const trapline_arg* bound,
                   const trapline_arg* dim, const trapline_arg* also, trapline_scan* out) {
  const trapline::Contract* contract = trapline::contract_of(row);
  if (contract == nullptr || out == nullptr) return TRAPLINE_NOT_APPLICABLE;
  return trapline::check_call(*contract, {argument, bound, dim, also}, *out);
}

char* trapline_diagnose(const char* facts_json) {
  // No exception may leave: the caller may be C, Python or another C++ runtime.
  try {
    return trapline::copy(trapline::diagnose_json(trapline::given(facts_json)));
  } catch (const std::exception&) {
    return trapline::copy(R"({"error": "diagnose: out of memory: free some memory and run again"})");
  }
}

void trapline_free(char* text) { std::free(text); }

}  // extern "C"
