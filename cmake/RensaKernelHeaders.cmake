# rensa_kernel_headers(OUT HEADER...): writes to OUT a source that holds the texts of headers below
# rensa/, for kernels that are compiled at run time.
function(rensa_kernel_headers out)
  set(text "// Written by cmake/RensaKernelHeaders.cmake.\n#include \"rensa/device/kernel_headers.h\"\n\n")
  string(APPEND text "namespace rensa {\nconst KernelHeader kKernelHeaders[] = {\n")
  foreach(header ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
    file(READ ${PROJECT_SOURCE_DIR}/${header} content)
    string(APPEND text "{\"${header}\", R\"rensa_text(${content})rensa_text\"},\n")
  endforeach()
  list(LENGTH ARGN count)
  string(APPEND text "};\nconst int kNumKernelHeaders = ${count};\n}  // namespace rensa\n")
  file(WRITE ${out}.new "${text}")
  configure_file(${out}.new ${out} COPYONLY)  # untouched where nothing changed
endfunction()
