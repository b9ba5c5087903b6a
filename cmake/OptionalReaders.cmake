# Libraries of file formats that `trapline check` reads where they are. Each has a module of its own, which is
# loaded at the first such file; Arrow's is in Arrow.cmake.
set(TRAPLINE_SQLITE OFF)
find_package(SQLite3 QUIET)
if(SQLite3_FOUND AND NOT SQLite3_VERSION VERSION_LESS 3.26) # SQLITE_DBCONFIG_DEFENSIVE
  set(TRAPLINE_SQLITE ON)
  message(STATUS "trapline: SQLite ${SQLite3_VERSION}: SQLite databases are read")
else()
  message(STATUS "trapline: no SQLite 3.26 or newer: SQLite databases are not read")
endif()
