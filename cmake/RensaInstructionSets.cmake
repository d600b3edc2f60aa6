# rensa_kernels(TARGET FILE...): compiles each file into TARGET once for each instruction set of
# backend/cpu/instruction_sets.h, with the set's flags and RENSA_SET as its name. Besides the flags an
# object has what TARGET is compiled with. RENSA_KERNEL_OBJECTS, a global property, lists the objects of
# the sets that not every machine has.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles("#if !defined(__x86_64__)\n#error\n#endif\nint main() {}" RENSA_X86)
# For the thread sanitizer: what it looks at, the threads, is the same whichever set's loops run, and
# the baseline's are those that no other tests run where the machine has AVX2.
option(RENSA_BASELINE_KERNELS "Compile the CPU's kernels for the baseline's instructions alone" OFF)
set(rensa_instruction_sets baseline)
if(RENSA_X86 AND NOT RENSA_BASELINE_KERNELS)
  list(APPEND rensa_instruction_sets avx2 avx512)
endif()
if(RENSA_BASELINE_KERNELS)
  target_compile_definitions(rensa_flags INTERFACE RENSA_BASELINE_KERNELS=1)
endif()
set(rensa_flags_of_avx2 -mavx2 -mfma -mf16c)
set(rensa_flags_of_avx512 ${rensa_flags_of_avx2} -mbmi2 -mpopcnt -mavx512f -mavx512bw -mavx512dq -mavx512vl
  -mprefer-vector-width=512)

function(rensa_kernels target)
  foreach(set IN LISTS rensa_instruction_sets)
    set(objects ${target}_${set})
    add_library(${objects} OBJECT ${ARGN})
    target_compile_features(${objects} PRIVATE cxx_std_20)
    target_compile_definitions(${objects} PRIVATE
      $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS> RENSA_SET=${set})
    target_include_directories(${objects} PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
    # Aligned to lines: else where the linker puts a loop changes its time by up to a third.
    # Optimized in every build: what the compiler does not inline, tools/check_instruction_sets.py finds.
    target_compile_options(${objects} PRIVATE ${rensa_flags_of_${set}} -falign-functions=64
      $<$<NOT:$<CONFIG:Release>>:-O2>)
    target_link_libraries(${objects} PRIVATE rensa_flags)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
    if(NOT set STREQUAL baseline)
      set_property(GLOBAL APPEND PROPERTY RENSA_KERNEL_OBJECTS $<TARGET_OBJECTS:${objects}>)
    endif()
  endforeach()
endfunction()
