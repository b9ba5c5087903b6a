# cmake -DOUT=FILE -DFROM=DIR -P Commit.cmake: writes the header with the commit, and touches it only when that has
# changed. An export of the sources without git has none.
set(commit "")
set(date "")
find_program(GIT git)
if(GIT AND EXISTS "${FROM}/.git")
  execute_process(COMMAND "${GIT}" -C "${FROM}" rev-parse --short=9 HEAD OUTPUT_VARIABLE commit ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND "${GIT}" -C "${FROM}" show -s --format=%cs HEAD OUTPUT_VARIABLE date ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND "${GIT}" -C "${FROM}" diff --quiet HEAD RESULT_VARIABLE changed OUTPUT_QUIET ERROR_QUIET)
  if(commit AND changed EQUAL 1)
    string(APPEND commit "+")
  endif()
endif()
set(text "#pragma once\n\nnamespace trapline {\ninline constexpr const char* kCommit = \"${commit}\";\n")
string(APPEND text "inline constexpr const char* kCommitDate = \"${date}\";\n}\n")
set(old "")
if(EXISTS "${OUT}")
  file(READ "${OUT}" old)
endif()
if(NOT old STREQUAL text)
  file(WRITE "${OUT}" "${text}")
endif()
