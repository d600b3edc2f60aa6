# oneDNN, version 2 or 3, built with OpenMP's threads or none. Its own package file in Debian asks for
# OpenCL, which is not needed here.
#   OneDnn::OneDnn   the imported target
#   OneDnn_VERSION
find_path(OneDnn_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(OneDnn_LIBRARY dnnl)
mark_as_advanced(OneDnn_INCLUDE_DIR OneDnn_LIBRARY)
if(OneDnn_INCLUDE_DIR)
  file(STRINGS ${OneDnn_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h OneDnn_VERSION
    REGEX "^#define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
  list(TRANSFORM OneDnn_VERSION REPLACE "^#define DNNL_VERSION_[A-Z]+ " "")
  list(JOIN OneDnn_VERSION "." OneDnn_VERSION)
  file(STRINGS ${OneDnn_INCLUDE_DIR}/oneapi/dnnl/dnnl_config.h OneDnn_THREADS
    REGEX "^#define DNNL_CPU_THREADING_RUNTIME DNNL_RUNTIME_(OMP|SEQ)")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDnn REQUIRED_VARS OneDnn_LIBRARY OneDnn_INCLUDE_DIR OneDnn_THREADS
  VERSION_VAR OneDnn_VERSION
  REASON_FAILURE_MESSAGE "install libdnnl-dev, or build with -DRENSA_ONEDNN=OFF")
if(OneDnn_FOUND AND NOT TARGET OneDnn::OneDnn)
  add_library(OneDnn::OneDnn UNKNOWN IMPORTED)
  set_target_properties(OneDnn::OneDnn PROPERTIES
    IMPORTED_LOCATION "${OneDnn_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${OneDnn_INCLUDE_DIR}")
endif()
