// NCCL, opened when it is first needed.
#include "rensa/backend/cuda/nccl.h"

#include <fmt/format.h>

#include "rensa/backend/cuda/library.h"
#include "rensa/core/error.h"

namespace rensa::cuda {

namespace {

Nccl load_nccl() {
  Library library(nccl_source());
  Nccl table;
  library.bind("ncclGetUniqueId", table.get_unique_id);
  library.bind("ncclCommInitRank", table.comm_init_rank);
  library.bind("ncclCommDestroy", table.comm_destroy);
  library.bind("ncclCommAbort", table.comm_abort);
  library.bind("ncclSend", table.send);
  library.bind("ncclRecv", table.recv);
  library.bind("ncclGroupStart", table.group_start);
  library.bind("ncclGroupEnd", table.group_end);
  library.bind("ncclGetErrorString", table.error_string);
  library.bind("ncclGetLastError", table.last_error);
  return table;
}

}  // namespace

const Nccl& nccl() {
  static const Nccl table = load_nccl();
  return table;
}

void check_nccl(const char* what, ncclResult_t result) {
  if (result == ncclSuccess) return;
  const char* detail = nccl().last_error(nullptr);
  throw CudaError(fmt::format("exchange: {} failed: {}{}{}", what, nccl().error_string(result),
                              detail && *detail ? "; " : "", detail ? detail : ""));
}

}  // namespace rensa::cuda
