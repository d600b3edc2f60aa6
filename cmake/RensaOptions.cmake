# The flags that every target of the project is compiled with: rensa_flags, an interface target that
# is not installed.
add_library(rensa_flags INTERFACE)
# errno is not used; without it the compiler may vectorize the calls of libm (backend/cpu). Without
# contraction the kernels of every instruction set, and those of the GPU, round alike.
target_compile_options(rensa_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -fno-math-errno -ffp-contract=off>)
# GCC 12 sees overlapping copies in std::string's operator+ (GCC bug 105651), GCC 13 writes beyond the
# end where a loop's bound is known to the caller only; there are none. Conditions that are free of
# branches are written so, which clang takes for a slip.
target_compile_options(rensa_flags INTERFACE
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:Clang>>:-Wno-bitwise-instead-of-logical>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow>)
if(RENSA_WERROR)
  target_compile_options(rensa_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(RENSA_SANITIZE)
  add_compile_options(-fsanitize=${RENSA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${RENSA_SANITIZE})
  if(RENSA_SANITIZE MATCHES "address.*undefined")
    # A third of the time to compile. What is read through a null pointer ends in the address
    # sanitizer; objects of another class than a pointer says are not looked for. Pointers' sums and
    # alignment are looked at where files are read, by the fuzz targets.
    add_compile_options(-fno-sanitize=vptr,null,object-size,pointer-overflow,alignment)
  endif()
endif()
if(RENSA_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
endif()
# rensa_options_to_sanitize_less(VARIABLE): the options of what calls the libraries and computes little itself.
# Overflows and the like, and variables used after their scope, are looked for in the libraries: to look for
# them in tests and in what is generated takes half as long again to compile.
function(rensa_options_to_sanitize_less variable)
  set(options)
  if(RENSA_SANITIZE MATCHES "undefined")
    list(APPEND options -fno-sanitize=undefined)
  endif()
  if(RENSA_SANITIZE MATCHES "address")
    list(APPEND options -fno-sanitize-address-use-after-scope)
  endif()
  set(${variable} ${options} PARENT_SCOPE)
endfunction()
# rensa_precompile(TARGET HEADER...): with RENSA_PRECOMPILED_HEADERS TARGET reads the standard library's
# headers and those named precompiled; with TESTS, where TARGET is none of the libraries. A file with options
# of its own reads them as they are.
function(rensa_precompile target)
  if(NOT RENSA_PRECOMPILED_HEADERS OR (RENSA_PRECOMPILED_HEADERS STREQUAL TESTS AND target MATCHES "^rensa(_array)?$"))
    return()
  endif()
  set(headers ${ARGN} algorithm array atomic cmath cstdint cstring fmt/format.h functional limits map memory mutex
    optional set span string string_view utility vector)
  list(TRANSFORM headers REPLACE "(.+)" "<\\1>")
  target_precompile_headers(${target} PRIVATE ${headers})
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # for ccache
  get_target_property(files ${target} SOURCES)
  foreach(file IN LISTS files)
    get_source_file_property(options ${file} COMPILE_OPTIONS)
    if(options)
      set_source_files_properties(${file} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()

# rensa_precompile_alike(OWNER TARGET...): the targets, compiled with the same options, read what is precompiled
# for OWNER.
function(rensa_precompile_alike owner)
  get_target_property(precompiled ${owner} PRECOMPILE_HEADERS)
  if(NOT precompiled)
    return()
  endif()
  foreach(target IN LISTS ARGN)
    target_precompile_headers(${target} REUSE_FROM ${owner})
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # for ccache
  endforeach()
endfunction()

# rensa_take_objects(TARGET LIBRARY...): where RENSA_OBJECTS_OF names the folder of a build of this tree without
# sanitizers, TARGET is linked of the objects that it has there, brought up to date before, and the sanitizers look
# at the libraries alone. LIBRARIES come first in the link: of what headers give to both, their code is taken. A
# file with definitions of its own, or that asks for a sanitizer, is compiled here.
function(rensa_take_objects target)
  if(NOT RENSA_OBJECTS_OF)
    return()
  endif()
  file(RELATIVE_PATH folder ${PROJECT_BINARY_DIR} ${CMAKE_CURRENT_BINARY_DIR})
  set(objects ${RENSA_OBJECTS_OF}/${folder}/CMakeFiles/${target}.dir)
  get_target_property(files ${target} SOURCES)
  set(sources)
  set(taken)
  foreach(file IN LISTS files)
    cmake_path(ABSOLUTE_PATH file OUTPUT_VARIABLE path)
    string(REPLACE "${CMAKE_CURRENT_BINARY_DIR}/" "" name "${path}")
    string(REPLACE "${CMAKE_CURRENT_SOURCE_DIR}/" "" name "${name}")
    get_source_file_property(definitions ${path} COMPILE_DEFINITIONS)
    set(asks)
    if(EXISTS ${path})
      file(STRINGS ${path} asks REGEX "__SANITIZE_" LIMIT_COUNT 1)
    endif()
    if(definitions OR asks OR NOT EXISTS ${objects}/${name}.o)
      list(APPEND sources ${file})
    else()
      list(APPEND taken ${objects}/${name}.o)
    endif()
  endforeach()
  if(NOT taken)
    message(FATAL_ERROR "RENSA_OBJECTS_OF: ${objects} has no object of ${target}; build that tree first, or leave the option empty")
  endif()
  add_custom_target(${target}_objects BYPRODUCTS ${taken}
    COMMAND ${CMAKE_COMMAND} --build ${RENSA_OBJECTS_OF} --target ${target} VERBATIM)
  add_dependencies(${target} ${target}_objects)
  get_property(before GLOBAL PROPERTY RENSA_OBJECT_TARGETS)  # one after the other: they share a folder
  if(before)
    add_dependencies(${target}_objects ${before})
  endif()
  set_property(GLOBAL APPEND PROPERTY RENSA_OBJECT_TARGETS ${target}_objects)
  set_target_properties(${target} PROPERTIES SOURCES "${sources};${taken}" DISABLE_PRECOMPILE_HEADERS ON)
  foreach(library IN LISTS ARGN)
    target_link_options(${target} PRIVATE "LINKER:--whole-archive,$<TARGET_FILE:${library}>,--no-whole-archive")
  endforeach()
endfunction()
