/* Checks five labels against three classes, in C. */
#include <stdio.h>
#include <string.h>
#include <trapline/capi.h>

int main(void) {
  size_t count = 0;
  const trapline_contract* rows = trapline_contracts(&count);
  printf("%s %d %s\n", trapline_version(), trapline_capi_version() == TRAPLINE_CAPI_VERSION,
         count > 0 && rows != NULL && strlen(trapline_dtype_name(TRAPLINE_INT64)) > 0 ? "rows" : "none");
  return 0;
}
