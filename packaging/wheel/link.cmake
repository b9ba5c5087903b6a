# For CMAKE_PROJECT_INCLUDE: objects are GCC's as always, and packaging/wheel/link.sh links them against an old glibc.
set(link "${TRAPLINE_WHEEL_LINK}")
set(CMAKE_CXX_LINK_EXECUTABLE "${link} <OBJECTS> -o <TARGET> <LINK_FLAGS> <LINK_LIBRARIES>")
set(CMAKE_C_LINK_EXECUTABLE "${CMAKE_CXX_LINK_EXECUTABLE}")
foreach(language C CXX)
  foreach(kind LIBRARY MODULE)
    set(CMAKE_${language}_CREATE_SHARED_${kind}
        "${link} -shared -fPIC -Wl,-soname,<TARGET_SONAME> <LINK_FLAGS> -o <TARGET> <OBJECTS> <LINK_LIBRARIES>")
  endforeach()
endforeach()
