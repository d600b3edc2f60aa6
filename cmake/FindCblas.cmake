# A library with the C interface of BLAS: OpenBLAS first, else the reference one.
#   Cblas::Cblas   the imported target
find_path(Cblas_INCLUDE_DIR cblas.h
  PATH_SUFFIXES openblas openblas-pthread x86_64-linux-gnu aarch64-linux-gnu)
find_library(Cblas_LIBRARY NAMES openblas cblas)
mark_as_advanced(Cblas_INCLUDE_DIR Cblas_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Cblas REQUIRED_VARS Cblas_LIBRARY Cblas_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "install libopenblas-dev, or build with -DRENSA_BLAS=OFF")
if(Cblas_FOUND AND NOT TARGET Cblas::Cblas)
  add_library(Cblas::Cblas UNKNOWN IMPORTED)
  set_target_properties(Cblas::Cblas PROPERTIES
    IMPORTED_LOCATION "${Cblas_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Cblas_INCLUDE_DIR}")
endif()
