# Arrow C++ and Parquet, for Parquet and Arrow files: an installed one, or that of pyarrow in .venv, which brings
# headers and libraries. Sets TRAPLINE_ARROW, and the target trapline_arrow_cpp when it was found.
set(TRAPLINE_ARROW OFF)
find_package(Arrow QUIET)
find_package(Parquet QUIET)
if(TARGET Arrow::arrow_shared AND TARGET Parquet::parquet_shared)
  add_library(trapline_arrow_cpp INTERFACE)
  target_link_libraries(trapline_arrow_cpp INTERFACE Arrow::arrow_shared Parquet::parquet_shared)
  set(TRAPLINE_ARROW ON)
  message(STATUS "trapline: Arrow ${Arrow_VERSION}: Parquet and Arrow files are read")
elseif(EXISTS "${TRAPLINE_PYTHON}")
  execute_process(
    COMMAND "${TRAPLINE_PYTHON}" -c "import pyarrow; print(pyarrow.__version__); print(pyarrow.get_include()); print(pyarrow.get_library_dirs()[0])"
    OUTPUT_VARIABLE pyarrow
    OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET
    RESULT_VARIABLE problem)
  if(problem EQUAL 0)
    string(REPLACE "\n" ";" pyarrow "${pyarrow}")
    list(GET pyarrow 0 version)
    list(GET pyarrow 1 include)
    list(GET pyarrow 2 folder)
    file(GLOB arrow "${folder}/libarrow.so.*")
    file(GLOB parquet "${folder}/libparquet.so.*")
    if(arrow AND parquet)
      add_library(trapline_arrow_cpp INTERFACE)
      target_include_directories(trapline_arrow_cpp SYSTEM INTERFACE "${include}")
      target_link_libraries(trapline_arrow_cpp INTERFACE "${arrow}" "${parquet}")
      set(TRAPLINE_ARROW ON)
      message(STATUS "trapline: pyarrow ${version}: Parquet and Arrow files are read")
    endif()
  endif()
endif()
if(NOT TRAPLINE_ARROW)
  message(STATUS "trapline: neither Arrow C++ nor pyarrow: Parquet and Arrow files are not read")
endif()
