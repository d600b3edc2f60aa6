# RENSA_HAS_CUDA: whether the CUDA side is compiled. Its programs link nothing of NVIDIA's but the
# static runtime; the other libraries are opened when first needed.
set(RENSA_HAS_CUDA OFF)
if(NOT RENSA_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit 12.4 QUIET)
  if(CUDAToolkit_FOUND AND NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
  endif()
  if(CUDAToolkit_FOUND AND (CMAKE_CUDA_COMPILER OR DEFINED ENV{CUDACXX}))
    set(RENSA_HAS_CUDA ON)
  elseif(RENSA_CUDA STREQUAL "ON")
    message(FATAL_ERROR "RENSA_CUDA=ON, but no CUDA toolkit of version 12.4 or newer with its "
      "nvcc was found: put nvcc on the PATH, set CUDAToolkit_ROOT or CMAKE_CUDA_COMPILER, or build "
      "with RENSA_CUDA=OFF")
  endif()
endif()

# Where the program looks first for libraries that it opens at run time: a folder, or one with lib,
# lib64 or */lib below it. The environment variable RENSA_LIBRARY_PATH stands before these.
set(RENSA_CUDA_LIBRARY_ROOT "" CACHE PATH "Root of cuBLAS, cuSOLVER, cuFFT, NVRTC and CUPTI")
set(RENSA_CUDNN_ROOT "" CACHE PATH "Root of cuDNN")
set(RENSA_NCCL_ROOT "" CACHE PATH "Root of NCCL")

if(RENSA_HAS_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    # The GPU that is there, else a list that covers the last generations.
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
      OUTPUT_VARIABLE rensa_gpu_capability ERROR_QUIET RESULT_VARIABLE rensa_smi_result)
    if(rensa_smi_result EQUAL 0 AND rensa_gpu_capability MATCHES "[0-9]+\\.[0-9]+")
      set(CMAKE_CUDA_ARCHITECTURES native)
    else()
      set(CMAKE_CUDA_ARCHITECTURES 80 90)
    endif()
  endif()
  # What the two libraries declare: they come apart from the toolkit.
  foreach(library IN ITEMS "CUDNN cudnn_graph.h libcudnn9-dev-cuda-${CUDAToolkit_VERSION_MAJOR}"
      "NCCL nccl.h libnccl-dev")
    string(REPLACE " " ";" library ${library})
    list(GET library 0 name)
    list(GET library 1 header)
    list(GET library 2 package)
    find_path(RENSA_${name}_INCLUDE_DIR ${header}
      HINTS ${RENSA_${name}_ROOT} ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
    if(NOT RENSA_${name}_INCLUDE_DIR)
      message(FATAL_ERROR "${header} was not found: install NVIDIA's package ${package}, set "
        "RENSA_${name}_ROOT to the folder with include/${header}, or build with RENSA_CUDA=OFF")
    endif()
    list(APPEND RENSA_CUDA_INCLUDE_DIRS ${RENSA_${name}_INCLUDE_DIR})
  endforeach()
  # For files of C++ that read CUDA's headers.
  list(APPEND RENSA_CUDA_INCLUDE_DIRS ${CUDAToolkit_INCLUDE_DIRS})
  list(REMOVE_DUPLICATES RENSA_CUDA_INCLUDE_DIRS)
  foreach(dir IN LISTS RENSA_CUDA_INCLUDE_DIRS)
    list(APPEND RENSA_CUDA_INCLUDE_OPTIONS -isystem ${dir})
  endforeach()
  enable_language(CUDA)
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake before 3.26 does not know it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=gnu++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  if(RENSA_FAST_COMPILE AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:--Ofast-compile=max>)
    string(REPLACE -O3 -O0 CMAKE_CUDA_FLAGS_RELEASE "${CMAKE_CUDA_FLAGS_RELEASE}")  # what calls kernels
  endif()
  message(STATUS "Rensa: CUDA ${CUDAToolkit_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}")
else()
  message(STATUS "Rensa: without CUDA")
endif()
