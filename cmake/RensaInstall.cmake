# Installs headers, libraries and what find_package(rensa) reads.
include(CMakePackageConfigHelpers)
set(RENSA_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/rensa)

install(TARGETS rensa_array rensa EXPORT rensaTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT rensaTargets NAMESPACE rensa:: DESTINATION ${RENSA_CMAKE_DIR})

# What lies in backend/ is the library's own.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/rensa DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "backend" EXCLUDE)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/rensaConfig.cmake.in
  ${PROJECT_BINARY_DIR}/rensaConfig.cmake INSTALL_DESTINATION ${RENSA_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rensaConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rensaConfig.cmake ${PROJECT_BINARY_DIR}/rensaConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindCblas.cmake DESTINATION ${RENSA_CMAKE_DIR})
