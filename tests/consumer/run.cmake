# Installs a build into an empty prefix, then configures, builds and runs the project beside this file
# against it, as a user would: by find_package, by pkg-config and with Rensa as a subproject.
#   cmake -D build_dir= -D source_dir= -D work_dir= -D generator= -D compiler= -P run.cmake
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# --- what is installed ---
file(REMOVE_RECURSE ${work_dir})
set(prefix ${work_dir}/prefix)
run(${CMAKE_COMMAND} --install ${build_dir} --prefix ${prefix})
file(GLOB_RECURSE installed RELATIVE ${prefix} ${prefix}/include/*.h)
foreach(header ${installed})
  if(header MATCHES "rensa/backend/|internal\\.h$")
    message(FATAL_ERROR "${header} is the library's own and was installed")
  endif()
endforeach()
foreach(file include/rensa/core/ufuncs/arithmetic.def share/doc/rensa/LICENSE share/doc/rensa/README.md)
  if(NOT EXISTS ${prefix}/${file})
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()

# --- find_package ---
set(configure ${CMAKE_COMMAND} -G ${generator} -D CMAKE_CXX_COMPILER=${compiler})
run(${configure} -S ${source_dir} -B ${work_dir}/build -D CMAKE_BUILD_TYPE=Release
  -D CMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${work_dir}/build)
foreach(program arrays kernels network)
  run(${work_dir}/build/${program})
endforeach()
# Arrays alone need neither what networks need nor their library.
run(${configure} -S ${source_dir} -B ${work_dir}/only_arrays -D ONLY_ARRAYS=ON
  -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_DISABLE_FIND_PACKAGE_CURL=ON
  -D CMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON)
execute_process(COMMAND ${configure} -S ${source_dir} -B ${work_dir}/no_curl
  -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_DISABLE_FIND_PACKAGE_CURL=ON
  OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE without_curl)
if(without_curl EQUAL 0)
  message(FATAL_ERROR "CMAKE_DISABLE_FIND_PACKAGE_CURL says nothing of what arrays alone look for")
endif()

# --- pkg-config ---
find_program(pkg_config pkg-config)
if(pkg_config)
  file(GLOB_RECURSE array_pc ${prefix}/*/rensa-array.pc)
  cmake_path(GET array_pc PARENT_PATH pc_dir)
  set(ENV{PKG_CONFIG_PATH} "${pc_dir}:$ENV{PKG_CONFIG_PATH}")
  execute_process(COMMAND ${pkg_config} --cflags --libs rensa
    OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags)
  run(${compiler} -std=c++20 ${source_dir}/network.cc -o ${work_dir}/by_pkg_config ${flags})
  run(${work_dir}/by_pkg_config)
else()
  message(STATUS "no pkg-config: its files are not tried")
endif()

# --- a subproject ---
cmake_path(GET source_dir PARENT_PATH root)
cmake_path(GET root PARENT_PATH root)
set(sub ${work_dir}/subproject)
run(${configure} -S ${source_dir}/subproject -B ${sub} -D RENSA_SOURCE_DIR=${root} -D RENSA_CUDA=OFF)
run(${CMAKE_COMMAND} --build ${sub} --target parent)
run(${CMAKE_COMMAND} --install ${sub} --prefix ${work_dir}/subproject_prefix)
file(GLOB_RECURSE installed RELATIVE ${work_dir}/subproject_prefix ${work_dir}/subproject_prefix/*)
if(NOT installed STREQUAL "share/parent/CMakeLists.txt")
  message(FATAL_ERROR "a subproject that installs: ${installed}")
endif()
