# A library with the C interface of BLAS and with LAPACK: OpenBLAS first, else the reference ones.
#   Cblas::Cblas   the imported target
find_path(Cblas_INCLUDE_DIR cblas.h
  PATH_SUFFIXES openblas openblas-pthread x86_64-linux-gnu aarch64-linux-gnu)
find_library(Cblas_LIBRARY NAMES openblas cblas)
set(Cblas_variables Cblas_LIBRARY Cblas_INCLUDE_DIR)
set(Cblas_others)
if(Cblas_LIBRARY AND NOT Cblas_LIBRARY MATCHES openblas)
  # The reference libraries come one by one.
  find_library(Cblas_LAPACK_LIBRARY NAMES lapack)
  find_library(Cblas_BLAS_LIBRARY NAMES blas)
  list(APPEND Cblas_variables Cblas_LAPACK_LIBRARY Cblas_BLAS_LIBRARY)
  set(Cblas_others "${Cblas_LAPACK_LIBRARY};${Cblas_BLAS_LIBRARY}")
  mark_as_advanced(Cblas_LAPACK_LIBRARY Cblas_BLAS_LIBRARY)
endif()
mark_as_advanced(Cblas_INCLUDE_DIR Cblas_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Cblas REQUIRED_VARS ${Cblas_variables}
  REASON_FAILURE_MESSAGE "install libopenblas-dev, or build with -DRENSA_BLAS=OFF")
if(Cblas_FOUND AND NOT TARGET Cblas::Cblas)
  add_library(Cblas::Cblas UNKNOWN IMPORTED)
  set_target_properties(Cblas::Cblas PROPERTIES
    IMPORTED_LOCATION "${Cblas_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Cblas_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${Cblas_others}")
endif()
