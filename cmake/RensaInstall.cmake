# Installs headers, libraries and what find_package(rensa) and pkg-config read. Two components:
# `runtime` holds shared libraries and what programs need to run, `development` the rest.
include(CMakePackageConfigHelpers)
include(RensaPublicHeaders)
set(RENSA_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/rensa)

# rensa::array has an export set of its own, so that what the networks need is not looked for by
# find_package(rensa COMPONENTS array).
foreach(pair rensa_array:array rensa:networks)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 target)
  list(GET pair 1 component)
  install(TARGETS ${target} EXPORT rensa-${component}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
  install(EXPORT rensa-${component} FILE rensa-${component}.cmake NAMESPACE rensa::
    DESTINATION ${RENSA_CMAKE_DIR} COMPONENT development)
endforeach()

# The headers that programs include, and what those include; the others are the library's own.
file(GLOB rensa_entries RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/rensa/*.h)
rensa_public_headers(rensa_headers ${rensa_entries})
foreach(header ${rensa_headers})
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${PROJECT_SOURCE_DIR}/${header}
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder} COMPONENT development)
endforeach()

install(FILES ${PROJECT_SOURCE_DIR}/tools/gdb/rensa_printers.py
  DESTINATION ${CMAKE_INSTALL_DATADIR}/rensa/gdb COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)

get_target_property(rensa_library_type rensa_array TYPE)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/rensaConfig.cmake.in
  ${PROJECT_BINARY_DIR}/rensaConfig.cmake INSTALL_DESTINATION ${RENSA_CMAKE_DIR})
# Before version 1 every minor version may break programs.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rensaConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rensaConfig.cmake ${PROJECT_BINARY_DIR}/rensaConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindCblas.cmake ${PROJECT_SOURCE_DIR}/cmake/FindOneDnn.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindHdf5C.cmake
  DESTINATION ${RENSA_CMAKE_DIR} COMPONENT development)

# --- pkg-config ---
# Programs that link static libraries also link what those are made with.
set(rensa_pc_array_requires)
set(rensa_pc_array_libs)
set(rensa_pc_networks_requires)
set(rensa_pc_networks_libs)
if(rensa_library_type STREQUAL "STATIC_LIBRARY")
  set(rensa_pc_array_requires "fmt zlib")
  set(rensa_pc_networks_requires ", libcurl")
  if(RENSA_HAS_IMAGES)
    string(APPEND rensa_pc_networks_requires ", libjpeg, libpng")
  endif()
  if(RENSA_HAS_ONEDNN)
    set(rensa_pc_networks_libs " ${OneDnn_LIBRARY}")
  endif()
  if(RENSA_HAS_HDF5)
    string(APPEND rensa_pc_networks_libs " ${Hdf5C_LIBRARY}")
  endif()
  if(RENSA_BLAS)
    string(APPEND rensa_pc_array_libs " ${Cblas_LIBRARY}")
  endif()
  if(RENSA_HAS_CUDA)
    string(APPEND rensa_pc_array_libs " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt")
  endif()
  string(APPEND rensa_pc_array_libs " -lpthread -ldl -lm")
endif()
# From the folder of the .pc files to the prefix, so that an installed tree can be moved.
file(RELATIVE_PATH rensa_pc_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
foreach(name rensa-array rensa)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()
