# rensa_absent_cuda(OUT HEADER...): writes to OUT the CUDA side of the kinds of operations that the
# headers declare, for a build without CUDA: it throws NotImplementedError. A kind that is not found
# here is missing when a program is linked.
function(rensa_absent_cuda out)
  set(text "// Written by cmake/RensaAbsentCuda.cmake.\n#include <string>\n\n#include \"rensa/core/error.h\"\n")
  set(definitions)
  foreach(header ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
    file(READ ${header} content)
    string(REGEX MATCHALL
      "\nstruct [A-Za-z0-9_]+ final : KindOf<|workspace_bytes\\(\\) const override[;]"
      declarations "${content}")
    if(declarations)  # else it belongs to a kind, and declares none
      string(APPEND text "#include \"${name}\"\n")
    endif()
    foreach(declaration ${declarations})
      if(declaration MATCHES "struct ([A-Za-z0-9_]+) ")
        set(kind ${CMAKE_MATCH_1})
        string(APPEND definitions "void ${kind}::run_cuda(const cuda::LaunchContext&) { absent(*this); }\n")
      else()
        string(APPEND definitions "std::size_t ${kind}::workspace_bytes() const { return 0; }\n")
      endif()
    endforeach()
  endforeach()
  string(APPEND text "
namespace rensa::operations {

namespace {
[[noreturn]] void absent(const Operation& operation) {
  throw NotImplementedError(std::string(operation.name()) + \": this build of Rensa has no CUDA\");
}
}  // namespace

${definitions}
}  // namespace rensa::operations
")
  file(WRITE ${out}.new "${text}")
  configure_file(${out}.new ${out} COPYONLY)  # untouched where nothing changed
endfunction()
