// Opening cuSOLVER and cuBLAS.
#include "rensa/operations/linalg/cuda_cusolver.h"

#include <fmt/format.h>

#include <array>

#include "rensa/backend/cuda/library.h"
#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"

namespace rensa::cuda {

namespace {

// About ten are enough; where rounding keeps the rest above the tolerance more do not help.
constexpr int kMaxSweeps = 30;

Cusolver load_cusolver() {
  Library library(cusolver_source());
  Cusolver table;
  library.bind("cusolverDnCreate", table.create);
  library.bind("cusolverDnCreateParams", table.create_params);
  library.bind("cusolverDnSetStream", table.set_stream);
  library.bind("cusolverDnXpotrf_bufferSize", table.potrf_size);
  library.bind("cusolverDnXpotrf", table.potrf);
  library.bind("cusolverDnXgetrf_bufferSize", table.getrf_size);
  library.bind("cusolverDnXgetrf", table.getrf);
  library.bind("cusolverDnXgetrs", table.getrs);
  library.bind("cusolverDnXgeqrf_bufferSize", table.geqrf_size);
  library.bind("cusolverDnXgeqrf", table.geqrf);
  library.bind("cusolverDnXsyevd_bufferSize", table.syevd_size);
  library.bind("cusolverDnXsyevd", table.syevd);
  library.bind("cusolverDnXgesvd_bufferSize", table.gesvd_size);
  library.bind("cusolverDnXgesvd", table.gesvd);
#define RENSA_BIND(T, t) library.bind("cusolverDn" #T "potrfBatched", table.potrf_batched_##t);
  RENSA_CUSOLVER_TYPES(RENSA_BIND)
#undef RENSA_BIND
  library.bind("cusolverDnCreateGesvdjInfo", table.create_gesvdj_info);
  library.bind("cusolverDnXgesvdjSetMaxSweeps", table.set_gesvdj_sweeps);
#define RENSA_BIND(T, t)                                                                   \
  library.bind("cusolverDn" #T "gesvdj_bufferSize", table.gesvdj_size_##t);                \
  library.bind("cusolverDn" #T "gesvdj", table.gesvdj_##t);                                \
  library.bind("cusolverDn" #T "gesvdjBatched_bufferSize", table.gesvdj_batched_size_##t); \
  library.bind("cusolverDn" #T "gesvdjBatched", table.gesvdj_batched_##t);
  RENSA_CUSOLVER_TYPES(RENSA_BIND)
#undef RENSA_BIND
  library.bind("cusolverDnSorgqr_bufferSize", table.orgqr_size_s);
  library.bind("cusolverDnDorgqr_bufferSize", table.orgqr_size_d);
  library.bind("cusolverDnCungqr_bufferSize", table.orgqr_size_c);
  library.bind("cusolverDnZungqr_bufferSize", table.orgqr_size_z);
  library.bind("cusolverDnSorgqr", table.orgqr_s);
  library.bind("cusolverDnDorgqr", table.orgqr_d);
  library.bind("cusolverDnCungqr", table.orgqr_c);
  library.bind("cusolverDnZungqr", table.orgqr_z);
  library.bind_if_there("cusolverDnXgeev_bufferSize", table.geev_size);
  library.bind_if_there("cusolverDnXgeev", table.geev);
  library.bind_if_there("cusolverDnXsyevBatched_bufferSize", table.syev_batched_size);
  library.bind_if_there("cusolverDnXsyevBatched", table.syev_batched);
  return table;
}

Cublas load_cublas() {
  Library library(cublas_source());
  Cublas table;
  library.bind("cublasCreate_v2", table.create);
  library.bind("cublasSetStream_v2", table.set_stream);
#define RENSA_BIND(T, t)                                             \
  library.bind("cublas" #T "getrfBatched", table.getrf_batched_##t); \
  library.bind("cublas" #T "getrsBatched", table.getrs_batched_##t);
  RENSA_CUSOLVER_TYPES(RENSA_BIND)
#undef RENSA_BIND
  return table;
}

// One per GPU; null until the first use.
template <class Handle> struct Slot {
  std::mutex mutex;
  Handle handle = nullptr;
  cusolverDnParams_t params = nullptr;
  gesvdjInfo_t jacobi = nullptr;
};

template <class Handle> Slot<Handle>& slot_of(Device device) {
  static std::array<Slot<Handle>, kMaxGpus> slots;
  return slots.at(static_cast<std::size_t>(device.index));
}

}  // namespace

const Cusolver& cusolver() {
  static const Cusolver table = load_cusolver();
  return table;
}

const Cublas& cublas() {
  static const Cublas table = load_cublas();
  return table;
}

CusolverHandle::CusolverHandle(const char* operation, Device device, cudaStream_t stream) {
  Slot<cusolverDnHandle_t>& slot = slot_of<cusolverDnHandle_t>(device);
  hold_ = std::unique_lock(slot.mutex);
  runtime::set_device(device);
  if (!slot.params) {
    check_cusolver(operation, "cusolverDnCreateParams", cusolver().create_params(&slot.params));
  }
  if (!slot.jacobi) {
    check_cusolver(operation, "cusolverDnCreateGesvdjInfo",
                   cusolver().create_gesvdj_info(&slot.jacobi));
    check_cusolver(operation, "cusolverDnXgesvdjSetMaxSweeps",
                   cusolver().set_gesvdj_sweeps(slot.jacobi, kMaxSweeps));
  }
  if (!slot.handle) {
    check_cusolver(operation, "cusolverDnCreate", cusolver().create(&slot.handle));
  }
  handle_ = slot.handle;
  params_ = slot.params;
  jacobi_ = slot.jacobi;
  check_cusolver(operation, "cusolverDnSetStream", cusolver().set_stream(handle_, stream));
}

CublasHandle::CublasHandle(const char* operation, Device device, cudaStream_t stream) {
  Slot<cublasHandle_t>& slot = slot_of<cublasHandle_t>(device);
  hold_ = std::unique_lock(slot.mutex);
  runtime::set_device(device);
  if (!slot.handle) {
    check_cublas(operation, "cublasCreate", cublas().create(&slot.handle));
  }
  handle_ = slot.handle;
  check_cublas(operation, "cublasSetStream", cublas().set_stream(handle_, stream));
}

void check_cusolver(const char* operation, const char* function, cusolverStatus_t status) {
  if (status == CUSOLVER_STATUS_SUCCESS) return;
  throw CudaError(fmt::format("{}: {} failed with cusolverStatus_t {}{}", operation, function,
                              static_cast<int>(status),
                              status == CUSOLVER_STATUS_ALLOC_FAILED
                                  ? " (out of memory; cuda::memory_pool(device).free_all_blocks() "
                                    "gives the driver what the pool holds)"
                                  : ""));
}

void check_cublas(const char* operation, const char* function, cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw CudaError(fmt::format("{}: {} failed with cublasStatus_t {}", operation, function,
                              static_cast<int>(status)));
}

}  // namespace rensa::cuda
