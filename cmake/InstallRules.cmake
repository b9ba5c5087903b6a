# make install PREFIX=...: the program, the library, the Python package, and the guard's sources (they are
# compiled against the user's own torch).
include(GNUInstallDirs)
install(TARGETS trapline RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS trapline_capi fake_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TRAPLINE_ARROW)
  install(TARGETS trapline_arrow LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(TARGETS trapline_http LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS trapline_preload LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET trapline_native)
  install(TARGETS trapline_native LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(FILES include/trapline/types.h include/trapline/capi.h include/trapline/device.h include/trapline/native.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/trapline)
install(
  DIRECTORY python/trapline
  DESTINATION ${CMAKE_INSTALL_DATADIR}/trapline/python
  PATTERN "__pycache__" EXCLUDE)
install(
  DIRECTORY src/guard/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/trapline/guard
  FILES_MATCHING
  PATTERN "*.cpp"
  PATTERN "*.hpp"
  PATTERN "*.c"
  PATTERN "*.h"
  PATTERN "preload" EXCLUDE)
install(
  DIRECTORY src/cpu_cuda/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/trapline/cpu_cuda
  FILES_MATCHING
  PATTERN "*.cpp"
  PATTERN "*.hpp")
