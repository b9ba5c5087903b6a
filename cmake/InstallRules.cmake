# make install PREFIX=...: the program, the library, the Python package, and the guard's sources (they are
# compiled against the user's own torch).
include(GNUInstallDirs)
install(TARGETS trapline RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS trapline_capi EXPORT trapline LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
                                               INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS fake_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET trapline_kernel)
  install(TARGETS trapline_kernel LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TRAPLINE_ARROW)
  install(TARGETS trapline_arrow LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
foreach(reader IN ITEMS trapline_sqlite trapline_hdf5)
  if(TARGET ${reader})
    install(TARGETS ${reader} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()
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

if(TARGET trapline_manual)
  set(manual "${PROJECT_BINARY_DIR}/manual")
  install(DIRECTORY "${manual}/man1" DESTINATION ${CMAKE_INSTALL_DATADIR}/man OPTIONAL)
  install(FILES "${manual}/trapline.bash" DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME trapline OPTIONAL)
  install(FILES "${manual}/_trapline" DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions OPTIONAL)
  install(FILES "${manual}/trapline.fish" DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d OPTIONAL)
endif()

# find_package(trapline) gives trapline::trapline: libtrapline.so and the headers of include/trapline.
include(CMakePackageConfigHelpers)
set_target_properties(trapline_capi PROPERTIES EXPORT_NAME trapline)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/trapline)
install(
  EXPORT trapline
  NAMESPACE trapline::
  FILE traplineConfig.cmake
  DESTINATION ${package_dir})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/traplineConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/traplineConfigVersion.cmake" DESTINATION ${package_dir})

# `make deb`.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME trapline)
set(CPACK_PACKAGE_CONTACT "The Trapline authors <trapline@example.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "explains device-side asserts and their relatives in PyTorch programs")
set(CPACK_PACKAGE_DESCRIPTION "Names the line, the tensor's element, the value, the valid range and what to change, in the
program's first run; reads logs and checks data, tokenizers and models beforehand.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_SOURCE_DIR}/dist")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
if(TRAPLINE_WHEEL_LINK) # dpkg-shlibdeps knows this machine's glibc, not the one that was linked against
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.28)")
else()
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/lib")
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, python3-dev") # the guard that is compiled for the user's own torch
install(FILES LICENSE DESTINATION share/doc/trapline RENAME copyright)
include(CPack)
