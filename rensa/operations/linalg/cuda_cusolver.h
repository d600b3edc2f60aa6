// cuSOLVER's and cuBLAS's functions, had from the libraries at run time, and handles for them.
#pragma once

#include <cublas_v2.h>
#include <cusolverDn.h>

#include <mutex>

#include "rensa/core/device.h"

namespace rensa::cuda {

// What is typed, by BLAS's letter.
#define RENSA_CUSOLVER_TYPES(X) X(S, s) X(D, d) X(C, c) X(Z, z)

struct Cusolver {
  decltype(&::cusolverDnCreate) create;
  decltype(&::cusolverDnCreateParams) create_params;
  decltype(&::cusolverDnSetStream) set_stream;
  decltype(&::cusolverDnXpotrf_bufferSize) potrf_size;
  decltype(&::cusolverDnXpotrf) potrf;
  decltype(&::cusolverDnXgetrf_bufferSize) getrf_size;
  decltype(&::cusolverDnXgetrf) getrf;
  decltype(&::cusolverDnXgetrs) getrs;
  decltype(&::cusolverDnXgeqrf_bufferSize) geqrf_size;
  decltype(&::cusolverDnXgeqrf) geqrf;
  decltype(&::cusolverDnXsyevd_bufferSize) syevd_size;
  decltype(&::cusolverDnXsyevd) syevd;
  decltype(&::cusolverDnXgesvd_bufferSize) gesvd_size;
  decltype(&::cusolverDnXgesvd) gesvd;
#define RENSA_MEMBER(T, t) decltype(&::cusolverDn##T##potrfBatched) potrf_batched_##t;
  RENSA_CUSOLVER_TYPES(RENSA_MEMBER)
#undef RENSA_MEMBER
  decltype(&::cusolverDnCreateGesvdjInfo) create_gesvdj_info;
  decltype(&::cusolverDnXgesvdjSetMaxSweeps) set_gesvdj_sweeps;
#define RENSA_MEMBER(T, t)                                                      \
  decltype(&::cusolverDn##T##gesvdj_bufferSize) gesvdj_size_##t;                \
  decltype(&::cusolverDn##T##gesvdj) gesvdj_##t;                                \
  decltype(&::cusolverDn##T##gesvdjBatched_bufferSize) gesvdj_batched_size_##t; \
  decltype(&::cusolverDn##T##gesvdjBatched) gesvdj_batched_##t;
  RENSA_CUSOLVER_TYPES(RENSA_MEMBER)
#undef RENSA_MEMBER
  decltype(&::cusolverDnSorgqr_bufferSize) orgqr_size_s;
  decltype(&::cusolverDnDorgqr_bufferSize) orgqr_size_d;
  decltype(&::cusolverDnCungqr_bufferSize) orgqr_size_c;
  decltype(&::cusolverDnZungqr_bufferSize) orgqr_size_z;
  decltype(&::cusolverDnSorgqr) orgqr_s;
  decltype(&::cusolverDnDorgqr) orgqr_d;
  decltype(&::cusolverDnCungqr) orgqr_c;
  decltype(&::cusolverDnZungqr) orgqr_z;
  // Of CUDA 12.6 and newer; null in older libraries.
  using GeevSize = cusolverStatus_t(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t,
                                    cusolverEigMode_t, std::int64_t, cudaDataType, const void*,
                                    std::int64_t, cudaDataType, const void*, cudaDataType,
                                    const void*, std::int64_t, cudaDataType, const void*,
                                    std::int64_t, cudaDataType, std::size_t*, std::size_t*);
  using Geev = cusolverStatus_t(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t,
                                cusolverEigMode_t, std::int64_t, cudaDataType, void*, std::int64_t,
                                cudaDataType, void*, cudaDataType, void*, std::int64_t,
                                cudaDataType, void*, std::int64_t, cudaDataType, void*, std::size_t,
                                void*, std::size_t, int*);
  GeevSize* geev_size;
  Geev* geev;
  using SyevBatchedSize = cusolverStatus_t(cusolverDnHandle_t, cusolverDnParams_t,
                                           cusolverEigMode_t, cublasFillMode_t, std::int64_t,
                                           cudaDataType, const void*, std::int64_t, cudaDataType,
                                           const void*, cudaDataType, std::size_t*, std::size_t*,
                                           std::int64_t);
  using SyevBatched = cusolverStatus_t(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t,
                                       cublasFillMode_t, std::int64_t, cudaDataType, void*,
                                       std::int64_t, cudaDataType, void*, cudaDataType, void*,
                                       std::size_t, void*, std::size_t, int*, std::int64_t);
  SyevBatchedSize* syev_batched_size;
  SyevBatched* syev_batched;
};

struct Cublas {
  decltype(&::cublasCreate_v2) create;
  decltype(&::cublasSetStream_v2) set_stream;
#define RENSA_MEMBER(T, t)                                \
  decltype(&::cublas##T##getrfBatched) getrf_batched_##t; \
  decltype(&::cublas##T##getrsBatched) getrs_batched_##t;
  RENSA_CUSOLVER_TYPES(RENSA_MEMBER)
#undef RENSA_MEMBER
};

/// Opens the library at the first call. Throws CudaError where it is missing.
const Cusolver& cusolver();
const Cublas& cublas();

/// A device's handle, made at the first use, on `stream` and for this thread alone until the object
/// is gone.
class CusolverHandle {
 public:
  CusolverHandle(const char* operation, Device device, cudaStream_t stream);
  cusolverDnHandle_t handle() const { return handle_; }
  cusolverDnParams_t params() const { return params_; }
  /// Parameters of Jacobi's method: as exact as the dtype allows, values in falling order.
  gesvdjInfo_t jacobi() const { return jacobi_; }

 private:
  std::unique_lock<std::mutex> hold_;
  cusolverDnHandle_t handle_;
  cusolverDnParams_t params_;
  gesvdjInfo_t jacobi_;
};

class CublasHandle {
 public:
  CublasHandle(const char* operation, Device device, cudaStream_t stream);
  cublasHandle_t handle() const { return handle_; }

 private:
  std::unique_lock<std::mutex> hold_;
  cublasHandle_t handle_;
};

/// Throw CudaError naming the operation, the library's function and the status.
void check_cusolver(const char* operation, const char* function, cusolverStatus_t status);
void check_cublas(const char* operation, const char* function, cublasStatus_t status);

}  // namespace rensa::cuda
