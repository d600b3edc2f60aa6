// NCCL's functions, had from the library at run time.
#pragma once

#include <nccl.h>

namespace rensa::cuda {

struct Nccl {
  decltype(&::ncclCommInitAll) comm_init_all;
  decltype(&::ncclCommDestroy) comm_destroy;
  decltype(&::ncclAllReduce) all_reduce;
  decltype(&::ncclGroupStart) group_start;
  decltype(&::ncclGroupEnd) group_end;
  decltype(&::ncclGetErrorString) error_string;
  decltype(&::ncclGetLastError) last_error;
};

/// Opens the library at the first call. Throws CudaError where it is missing.
const Nccl& nccl();

/// Throws CudaError naming `what` and what NCCL says.
void check_nccl(const char* what, ncclResult_t result);

}  // namespace rensa::cuda
