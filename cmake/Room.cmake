# trapline_room(NAME SOURCES file... [DEPENDS target...] [PRIVATE target...])
# A room is one static library target `trapline_NAME` over the files of src/NAME.
function(trapline_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE" ${ARGN})
  add_library(trapline_${name} STATIC ${ARG_SOURCES})
  target_include_directories(trapline_${name} PUBLIC "${PROJECT_SOURCE_DIR}/src"
                                                     "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(
    trapline_${name}
    PUBLIC ${ARG_DEPENDS}
    PRIVATE trapline_warnings ${ARG_PRIVATE})
  if("trapline_fmt" IN_LIST ARG_PRIVATE) # the others do not read enough to be worth it
    trapline_precompile(trapline_${name} trapline_pch)
  endif()
endfunction()

# The tests' own files are half of what there is to compile, and run once: with -O1 each takes 0.7 of the time. What
# they test is built as it is shipped.
add_library(trapline_tests_flags INTERFACE)
target_compile_options(trapline_tests_flags INTERFACE $<$<CONFIG:RelWithDebInfo,Release>:-O1>)

# trapline_test(NAME SOURCES file... [DEPENDS target...]): one GoogleTest program per room.
function(trapline_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE trapline_warnings trapline_tests_flags ${ARG_DEPENDS} GTest::gtest_main)
  trapline_precompile(${name} trapline_tests_pch LIBRARIES GTest::gtest trapline_tests_flags HEADERS <gtest/gtest.h>)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60)
endfunction()
