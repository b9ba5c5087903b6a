# One interface target carries the warnings; every room links it.
option(TRAPLINE_WERROR "Treat warnings as errors" ON)
add_library(trapline_warnings INTERFACE)
target_compile_options(
  trapline_warnings
  INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
            -Wnull-dereference -Wimplicit-fallthrough $<$<BOOL:${TRAPLINE_WERROR}>:-Werror>)
# GCC 12 reports false positives: of -Wnull-dereference through inlined std::variant and std::optional, and at -O3 of
# -Wrestrict in std::string.
target_compile_options(trapline_warnings INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-null-dereference -Wno-restrict>)
