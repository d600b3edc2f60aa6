// Products by cuBLASLt alone, each with the fastest of its plans.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

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

/// Microseconds of device time a call: the least of five timings of a CUDA graph of `count` calls,
/// so that the host's time is not seen. Infinity where f, which returns whether it could queue its
/// work, cannot.
template <class F> double device_us(F&& f, int count, cudaStream_t stream) {
  constexpr double kNever = 1e30;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  bool queued = true;
  for (int i = 0; queued && i < count; ++i) queued = f();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t run = nullptr;
  bool captured = cudaStreamEndCapture(stream, &graph) == cudaSuccess && queued;
  captured = captured && cudaGraphInstantiate(&run, graph, 0) == cudaSuccess;
  (void)cudaGetLastError();
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  double least = kNever;
  for (int turn = 0; captured && turn <= 5; ++turn) {
    CHECK(cudaEventRecord(start, stream));
    CHECK(cudaGraphLaunch(run, stream));
    CHECK(cudaEventRecord(stop, stream));
    CHECK(cudaEventSynchronize(stop));
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    if (turn > 0 && ms * 1e3 / count < least) least = ms * 1e3 / count;  // the first one warms up
  }
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));
  if (run) CHECK(cudaGraphExecDestroy(run));
  if (graph) CHECK(cudaGraphDestroy(graph));
  return least;
}

struct Context {
  cublasLtHandle_t handle = nullptr;
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  bool tf32 = false;
  cudaDataType_t type = CUDA_R_32F;  // of the elements
};

/// c (m x n) = op(a) op(b), all column-major, with the fastest of the library's plans; `batch` of
/// them, one behind the other.
class Product {
 public:
  Product(const Context& context, bool transpose_a, bool transpose_b, int m, int n, int k,
          const void* a, const void* b, void* c, const void* bias = nullptr, bool relu = false,
          int batch = 1)
      : context_(context), batch_(batch), a_(a), b_(b), c_(c) {
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
  void layout(cublasLtMatrixLayout_t* layout, int rows, int columns) const {
    CHECK(cublasLtMatrixLayoutCreate(layout, context_.type, rows, columns, rows));
    std::int64_t stride = std::int64_t{rows} * columns;
    CHECK(cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch_,
                                           sizeof batch_));
    CHECK(cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                           &stride, sizeof stride));
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
    // Of all of them in short timings the best three in longer ones.
    std::vector<std::pair<double, int>> timed;
    for (int i = 0; i < found; ++i) timed.emplace_back(time_of(plans[i], 10), i);
    std::size_t best = std::min<std::size_t>(timed.size(), 3);
    std::partial_sort(timed.begin(), timed.begin() + static_cast<std::ptrdiff_t>(best),
                      timed.end());
    timed.resize(best);
    for (auto& [us, plan] : timed) us = time_of(plans[plan], 50);
    auto least = std::min_element(timed.begin(), timed.end());
    if (least == timed.end() || least->first > 1e29) {
      std::fprintf(stderr, "cuBLASLt has no plan\n");
      std::exit(1);
    }
    plan_ = plans[least->second];
  }
  double time_of(const cublasLtMatmulHeuristicResult_t& plan, int count) const {
    auto run = [&] { return run_with(plan.algo) == CUBLAS_STATUS_SUCCESS; };
    run();  // what is loaded at first use is no part of it
    CHECK(cudaStreamSynchronize(context_.stream));
    return device_us(run, count, context_.stream);
  }

  const Context& context_;
  int batch_;
  const void *a_, *b_;
  void* c_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t layout_a_ = nullptr, layout_b_ = nullptr, layout_c_ = nullptr;
  cublasLtMatmulHeuristicResult_t plan_{};
};
