// Opening cuBLASLt.
#include "rensa/operations/matmul/cuda_cublaslt.h"

#include <fmt/format.h>

#include <array>
#include <mutex>

#include "rensa/backend/cuda/library.h"
#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"

namespace rensa::cuda {

namespace {

CublasLt load_cublaslt() {
  Library library(cublaslt_source());
  CublasLt table;
  library.bind("cublasLtCreate", table.create);
  library.bind("cublasLtGetVersion", table.version);
  library.bind("cublasLtGetStatusName", table.status_name);
  library.bind("cublasLtMatmul", table.matmul);
  library.bind("cublasLtMatrixLayoutInit_internal", table.layout_init);
  library.bind("cublasLtMatrixLayoutSetAttribute", table.layout_set);
  library.bind("cublasLtMatmulDescInit_internal", table.desc_init);
  library.bind("cublasLtMatmulDescSetAttribute", table.desc_set);
  library.bind("cublasLtMatmulPreferenceInit_internal", table.preference_init);
  library.bind("cublasLtMatmulPreferenceSetAttribute", table.preference_set);
  library.bind("cublasLtMatmulAlgoGetHeuristic", table.heuristic);
  library.bind("cublasLtMatmulAlgoCheck", table.algo_check);
  return table;
}

}  // namespace

const CublasLt& cublaslt() {
  static const CublasLt table = load_cublaslt();
  return table;
}

cublasLtHandle_t cublaslt_handle(Device device) {
  struct Slot {
    std::once_flag once;
    cublasLtHandle_t handle = nullptr;
  };
  static std::array<Slot, kMaxGpus> slots;
  Slot& slot = slots.at(static_cast<std::size_t>(device.index));
  std::call_once(slot.once, [&] {
    runtime::set_device(device);
    check_cublas("cublasLtCreate", cublaslt().create(&slot.handle));
  });
  return slot.handle;
}

void check_cublas(const char* what, cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw CudaError(fmt::format("matmul: {} failed: {}", what, cublaslt().status_name(status)));
}

}  // namespace rensa::cuda
