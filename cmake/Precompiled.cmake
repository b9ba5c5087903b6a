# What most units read, once for all of them: 2 s less for each. Every unit still includes what it uses, and compiles
# without this. ccache shares objects between checkouts, which it could not do with precompiled headers: whoever has it
# goes without.
set(default ON)
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(default OFF)
endif()
option(TRAPLINE_PCH "Precompile the headers of the standard library, fmt and the JSON library" ${default})
set(TRAPLINE_PRECOMPILED
    <algorithm> <array> <cstdint> <filesystem> <fstream> <functional> <map> <memory> <optional> <set> <span> <string>
    <string_view> <unordered_map> <variant> <vector> <fmt/format.h> <nlohmann/json.hpp>)

# trapline_precompile(TARGET BY [LIBRARIES target...] [HEADERS header...]): TARGET shares the headers of the target BY,
# which is made for it from the list and the HEADERS. The LIBRARIES are theirs: GCC takes what was compiled with other
# definitions for invalid.
function(trapline_precompile target by)
  cmake_parse_arguments(ARG "" "" "LIBRARIES;HEADERS" ${ARGN})
  if(NOT TRAPLINE_PCH)
    return()
  endif()
  if(NOT TARGET ${by})
    file(WRITE "${PROJECT_BINARY_DIR}/${by}.cpp" "")
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE") # what is compiled for a program does not fit a library
      file(WRITE "${PROJECT_BINARY_DIR}/${by}.cpp" "int main() { return 0; }\n")
      add_executable(${by} EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/${by}.cpp")
    else()
      add_library(${by} STATIC EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/${by}.cpp")
    endif()
    target_link_libraries(${by} PRIVATE trapline_warnings trapline_fmt nlohmann_json::nlohmann_json ${ARG_LIBRARIES})
    target_compile_options(${by} PRIVATE -pthread)
    target_precompile_headers(${by} PRIVATE ${TRAPLINE_PRECOMPILED} ${ARG_HEADERS})
  endif()
  # Some rooms have threads and some not, which a precompiled header would not bear. GCC 12 no longer knows of such
  # headers that they are the system's, and reports false positives through their inlined functions.
  target_compile_options(
    ${target} PRIVATE -pthread -Wno-error $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-stringop-overflow
                      -Wno-stringop-overread -Wno-maybe-uninitialized>)
  target_precompile_headers(${target} REUSE_FROM ${by})
endfunction()
