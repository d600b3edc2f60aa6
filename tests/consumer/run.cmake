# Installs a build into an empty prefix, then configures, builds and runs the project beside this file
# against it, as a user would.
#   cmake -D build_dir= -D source_dir= -D work_dir= -D generator= -D compiler= -P run.cmake
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${work_dir})
set(prefix ${work_dir}/prefix)
run(${CMAKE_COMMAND} --install ${build_dir} --prefix ${prefix})
file(GLOB_RECURSE installed RELATIVE ${prefix} ${prefix}/include/*.h)
foreach(header ${installed})
  if(header MATCHES "rensa/backend/")
    message(FATAL_ERROR "${header} is the library's own and was installed")
  endif()
endforeach()
run(${CMAKE_COMMAND} -S ${source_dir} -B ${work_dir}/build -G ${generator} -D CMAKE_BUILD_TYPE=Release
  -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${work_dir}/build)
run(${work_dir}/build/arrays)
run(${work_dir}/build/network)
