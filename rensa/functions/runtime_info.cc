// What a program runs with.
#include "rensa/functions/runtime_info.h"

#include <iostream>

#include "rensa/array/print.h"
#if RENSA_ONEDNN
#include "rensa/functions/operations/convolution/cpu_onednn.h"
#endif

namespace rensa {

std::string runtime_info() {
#if RENSA_ONEDNN
  std::string onednn = host::onednn_version();
#else
  std::string onednn = "none in this build (configure with RENSA_ONEDNN=ON)";
#endif
#ifdef RENSA_HDF5_VERSION
  std::string hdf5 = RENSA_HDF5_VERSION;
#else
  std::string hdf5 = "none in this build (configure with RENSA_HDF5=ON)";
#endif
  return xp::show_config() + "oneDNN: " + onednn + "\nHDF5: " + hdf5 + "\n";
}

void print_runtime_info() { print_runtime_info(std::cout); }
void print_runtime_info(std::ostream& out) { out << runtime_info() << std::flush; }

}  // namespace rensa
