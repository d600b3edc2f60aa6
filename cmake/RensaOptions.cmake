# The flags that every target of the project is compiled with: rensa_flags, an interface target that
# is not installed.
add_library(rensa_flags INTERFACE)
# errno is not used; without it the compiler may vectorize the calls of libm (backend/cpu). Without
# contraction the kernels of every instruction set, and those of the GPU, round alike.
target_compile_options(rensa_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -fno-math-errno -ffp-contract=off>)
# GCC 12 sees overlapping copies in std::string's operator+ where there are none (GCC bug 105651).
target_compile_options(rensa_flags INTERFACE
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-restrict>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # It misfires on std::string's operator+ (GCC bug 105651).
  target_compile_options(rensa_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(RENSA_WERROR)
  target_compile_options(rensa_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(RENSA_SANITIZE)
  add_compile_options(-fsanitize=${RENSA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${RENSA_SANITIZE})
endif()
if(RENSA_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
endif()
