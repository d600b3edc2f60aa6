// Products by cuBLASLt alone, each with the fastest of its plans.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "hand_written.cuh"

constexpr int kPlans = 64;
constexpr std::size_t kWorkspace = 32 << 20;

template <class T> T* device_memory(std::size_t count) {
  void* data = nullptr;
  CHECK(cudaMalloc(&data, count * sizeof(T)));
  CHECK(cudaMemset(data, 0, count * sizeof(T)));
  CHECK(cudaDeviceSynchronize());
  return static_cast<T*>(data);
}

/// Microseconds of device time a call, the mean of `count` calls.
template <class F> double device_us(F&& f, int count, cudaStream_t stream) {
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  f();
  CHECK(cudaEventRecord(start, stream));
  for (int i = 0; i < count; ++i) f();
  CHECK(cudaEventRecord(stop, stream));
  CHECK(cudaEventSynchronize(stop));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, start, stop));
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));
  return ms * 1e3 / count;
}

struct Context {
  cublasLtHandle_t handle = nullptr;
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  bool tf32 = false;
};

/// c (m x n) = op(a) op(b), all column-major, with the fastest of the library's plans.
class Product {
 public:
  Product(const Context& context, bool transpose_a, bool transpose_b, int m, int n, int k,
          const float* a, const float* b, float* c, const float* bias = nullptr, bool relu = false)
      : context_(context), a_(a), b_(b), c_(c) {
    CHECK(cublasLtMatmulDescCreate(
        &operation_, context.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    set(CUBLASLT_MATMUL_DESC_TRANSA, transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (bias) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE,
          relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS);
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    }
    layout(&layout_a_, transpose_a ? k : m, transpose_a ? m : k);
    layout(&layout_b_, transpose_b ? n : k, transpose_b ? k : n);
    layout(&layout_c_, m, n);
    choose();
  }
  void run() const { CHECK(run_with(plan_.algo)); }

 private:
  template <class T> void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    CHECK(cublasLtMatmulDescSetAttribute(operation_, attribute, &value, sizeof value));
  }
  static void layout(cublasLtMatrixLayout_t* layout, int rows, int columns) {
    CHECK(cublasLtMatrixLayoutCreate(layout, CUDA_R_32F, rows, columns, rows));
  }
  cublasStatus_t run_with(const cublasLtMatmulAlgo_t& algorithm) const {
    float one = 1, zero = 0;
    return cublasLtMatmul(context_.handle, operation_, &one, a_, layout_a_, b_, layout_b_, &zero,
                          c_, layout_c_, c_, layout_c_, &algorithm, context_.workspace, kWorkspace,
                          context_.stream);
  }
  void choose() {
    cublasLtMatmulPreference_t preference;
    CHECK(cublasLtMatmulPreferenceCreate(&preference));
    std::size_t workspace = kWorkspace;
    CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &workspace, sizeof workspace));
    cublasLtMatmulHeuristicResult_t plans[kPlans];
    int found = 0;
    CHECK(cublasLtMatmulAlgoGetHeuristic(context_.handle, operation_, layout_a_, layout_b_,
                                         layout_c_, layout_c_, preference, kPlans, plans, &found));
    CHECK(cublasLtMatmulPreferenceDestroy(preference));
    double best = 1e30;
    for (int i = 0; i < found; ++i) {
      if (run_with(plans[i].algo) != CUBLAS_STATUS_SUCCESS) continue;
      double us = device_us([&] { run_with(plans[i].algo); }, 50, context_.stream);
      if (us < best) best = us, plan_ = plans[i];
    }
    if (best == 1e30) std::fprintf(stderr, "cuBLASLt has no plan\n"), std::exit(1);
  }

  const Context& context_;
  const float *a_, *b_;
  float* c_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t layout_a_ = nullptr, layout_b_ = nullptr, layout_c_ = nullptr;
  cublasLtMatmulHeuristicResult_t plan_{};
};
