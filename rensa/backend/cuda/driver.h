// The driver's functions that the runtime has no counterpart of, had through the runtime: nothing
// links the driver.
#pragma once

#include <cuda.h>

namespace rensa::cuda {

struct Driver {
  decltype(&::cuLibraryLoadData) library_load_data;
  decltype(&::cuLibraryGetKernel) library_get_kernel;
  decltype(&::cuLibraryGetGlobal) library_get_global;
  decltype(&::cuKernelGetAttribute) kernel_get_attribute;
  decltype(&::cuKernelSetAttribute) kernel_set_attribute;
  decltype(&::cuLaunchKernelEx) launch_kernel;
  decltype(&::cuOccupancyMaxActiveBlocksPerMultiprocessor) max_active_blocks;
  decltype(&::cuMemGetAddressRange) mem_get_address_range;
  decltype(&::cuTensorMapEncodeTiled) tensor_map_encode;
  decltype(&::cuGetErrorString) error_string;
};

/// Asks the driver at the first call. Throws CudaError where it is too old.
const Driver& driver();

/// What the driver says of an error.
const char* driver_error_text(CUresult result);

}  // namespace rensa::cuda
