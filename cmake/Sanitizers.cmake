# TRAPLINE_SANITIZE=address,undefined or thread: for the presets asan and tsan.
set(TRAPLINE_SANITIZE "" CACHE STRING "Comma-separated sanitizers")
if(TRAPLINE_SANITIZE)
  add_compile_options(-fsanitize=${TRAPLINE_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TRAPLINE_SANITIZE})
endif()
