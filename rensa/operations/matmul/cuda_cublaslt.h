// cuBLASLt's functions, had from the library at run time, and one handle per GPU.
#pragma once

#include <cublasLt.h>

#include "rensa/core/device.h"

namespace rensa::cuda {

struct CublasLt {
  decltype(&::cublasLtCreate) create;
  decltype(&::cublasLtGetVersion) version;
  decltype(&::cublasLtGetStatusName) status_name;
  decltype(&::cublasLtMatmul) matmul;
  decltype(&::cublasLtMatrixLayoutInit_internal) layout_init;
  decltype(&::cublasLtMatrixLayoutSetAttribute) layout_set;
  decltype(&::cublasLtMatmulDescInit_internal) desc_init;
  decltype(&::cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&::cublasLtMatmulPreferenceInit_internal) preference_init;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&::cublasLtMatmulAlgoCheck) algo_check;
};

/// Opens the library at the first call. Throws CudaError where it is missing.
const CublasLt& cublaslt();

/// The handle of `device`, made at the first call; lives as long as the process. Any thread may use
/// it.
cublasLtHandle_t cublaslt_handle(Device device);

/// Throws CudaError naming `what` and the status.
void check_cublas(const char* what, cublasStatus_t status);

}  // namespace rensa::cuda
