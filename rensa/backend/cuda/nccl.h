// NCCL's functions, had from the library at run time.
#pragma once

#include <nccl.h>

namespace rensa::cuda {

struct Nccl {
  decltype(&::ncclGetUniqueId) get_unique_id;
  decltype(&::ncclCommInitRank) comm_init_rank;
  decltype(&::ncclCommDestroy) comm_destroy;
  decltype(&::ncclCommAbort) comm_abort;
  decltype(&::ncclSend) send;
  decltype(&::ncclRecv) recv;
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
