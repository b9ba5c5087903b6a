#include "trapline/capi.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "capi/diagnose_json.hpp"
#include "capi/rows.hpp"
#include "contracts/check_call.hpp"
#include "contracts/contract.hpp"
#include "core/version.hpp"
#include "report/json.hpp"
#include "report/style.hpp"
#include "report/text.hpp"

namespace {

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
    return copy(trapline::diagnose_json(facts_json == nullptr ? "" : facts_json));
  } catch (const std::exception&) {
    return copy(R"({"error": "diagnose: memory is exhausted: free some"})");
  }
}

char* trapline_render(const char* report_json, int descriptor) {
  try {
    const auto report = trapline::parse_report(report_json == nullptr ? "" : report_json, {});
    if (!report) return nullptr;
    const auto style =
        trapline::resolve_style(trapline::ColorChoice::kAuto, trapline::look_around(descriptor));
    return copy(trapline::render_text(*report, style));
  } catch (const std::exception&) {
    return nullptr;
  }
}

void trapline_free(char* text) { std::free(text); }

}  // extern "C"
