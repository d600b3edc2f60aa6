# HDF5's C library, the serial one where a system has several. CMake's own module asks for a C
# compiler and for HDF5's compiler wrappers.
#   Hdf5C::Hdf5C   the imported target
#   Hdf5C_VERSION
find_path(Hdf5C_INCLUDE_DIR hdf5.h PATH_SUFFIXES hdf5/serial)
find_library(Hdf5C_LIBRARY NAMES hdf5_serial hdf5)
mark_as_advanced(Hdf5C_INCLUDE_DIR Hdf5C_LIBRARY)
if(Hdf5C_INCLUDE_DIR)
  file(STRINGS ${Hdf5C_INCLUDE_DIR}/H5public.h Hdf5C_VERSION
    REGEX "^#define H5_VERS_(MAJOR|MINOR|RELEASE)[ \t]+[0-9]+")
  list(TRANSFORM Hdf5C_VERSION REPLACE "^#define H5_VERS_[A-Z]+[ \t]+([0-9]+).*" "\\1")
  list(JOIN Hdf5C_VERSION "." Hdf5C_VERSION)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Hdf5C REQUIRED_VARS Hdf5C_LIBRARY Hdf5C_INCLUDE_DIR
  VERSION_VAR Hdf5C_VERSION
  REASON_FAILURE_MESSAGE "install libhdf5-dev, or build with -DRENSA_HDF5=OFF")
if(Hdf5C_FOUND AND NOT TARGET Hdf5C::Hdf5C)
  add_library(Hdf5C::Hdf5C UNKNOWN IMPORTED)
  set_target_properties(Hdf5C::Hdf5C PROPERTIES
    IMPORTED_LOCATION "${Hdf5C_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Hdf5C_INCLUDE_DIR}")
endif()
