# TRAPLINE_SANITIZE=address,undefined or thread: for the presets asan and tsan.
set(TRAPLINE_SANITIZE "" CACHE STRING "Comma-separated sanitizers")
# TRAPLINE_FUZZ=ON: the libFuzzer programs of tests/fuzz. Coverage guides them, so that every room is instrumented.
option(TRAPLINE_FUZZ "Build the libFuzzer programs (needs clang)" OFF)
if(TRAPLINE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "trapline: TRAPLINE_FUZZ: needs clang: configure with cmake --preset fuzz")
  endif()
  if(NOT TRAPLINE_SANITIZE)
    set(TRAPLINE_SANITIZE address,undefined)
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(TRAPLINE_SANITIZE)
  add_compile_options(-fsanitize=${TRAPLINE_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TRAPLINE_SANITIZE})
endif()
