# KissFFT's C++ header.
#   Kissfft::Kissfft   the imported target
find_path(Kissfft_INCLUDE_DIR kissfft.hh PATH_SUFFIXES kissfft)
mark_as_advanced(Kissfft_INCLUDE_DIR)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Kissfft REQUIRED_VARS Kissfft_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "install libkissfft-dev, or build with -DRENSA_FFT=OFF")
if(Kissfft_FOUND AND NOT TARGET Kissfft::Kissfft)
  add_library(Kissfft::Kissfft INTERFACE IMPORTED)
  set_target_properties(Kissfft::Kissfft PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${Kissfft_INCLUDE_DIR}")
endif()
