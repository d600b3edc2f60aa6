// Choosing a plan by timing. Each candidate runs on scratch memory.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/backend/cuda/timing.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/device/memory_pool.h"
#include "rensa/device/storage.h"
#include "rensa/device/stream.h"
#include "rensa/operations/matmul/cuda_kernels.h"
#include "rensa/operations/matmul/cuda_plan.h"
#include "rensa/operations/matmul/cuda_skinny.h"

namespace rensa::cuda {

namespace {

constexpr const char* kOperation = "matmul: timing of plans";

std::int64_t elements(std::int64_t lines, std::int64_t ld, std::int64_t width, std::int64_t batch,
                      std::int64_t stride) {
  return (batch - 1) * stride + (lines - 1) * ld + width;
}

/// Scratch operands of one key, and the clock.
class Bench {
 public:
  Bench(const PlanKey& key, Device device, std::size_t workspace)
      : key_(key), device_(device), stream_(device, non_blocking), scope_(stream_) {
    std::int64_t size = itemsize(key.dtype);
    std::int64_t a = key.a_transposed ? elements(key.k, key.a_ld, key.m, key.batch, key.a_stride)
                                      : elements(key.m, key.a_ld, key.k, key.batch, key.a_stride);
    std::int64_t b = key.b_transposed ? elements(key.n, key.b_ld, key.k, key.batch, key.b_stride)
                                      : elements(key.k, key.b_ld, key.n, key.batch, key.b_stride);
    c_bytes_ = elements(key.m, key.c_ld, key.n, key.batch, key.c_stride) * size;
    run_.a = pattern(a, PlanKey::aligned_a, 1);
    run_.b = pattern(b, PlanKey::aligned_b, 2);
    if (key.bias == PlanKey::Bias::epilogue) run_.bias = pattern(key.n, PlanKey::aligned_bias, 3);
    for (char*& c : c_) c = pattern(c_bytes_ / size, PlanKey::aligned_c, 4);
    if (key.relu_alone) run_.activation = operations::Activation::relu;
    if (key.gate_follows) run_.gate = pattern(c_bytes_ / size, PlanKey::aligned_c, 5);
    run_.context = make_context(stream_.state(), 0);
    run_.context.workspace =
        scratch(static_cast<std::int64_t>(std::max<std::size_t>(workspace, 1)));
    differs_ = reinterpret_cast<unsigned*>(scratch(sizeof(unsigned)));
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() {
    memory_.clear();
    memory_pool(device_).free_all_blocks(stream_.state());
  }

  /// Whether the plan runs, with relu as without, and gives the same bits twice.
  bool is_usable(const MatmulPlan& plan) {
    bool runs = true;
    if (run_.bias) {  // this also has cuBLASLt load what the fused form needs
      MatmulRun fused = run_;
      fused.activation = operations::Activation::relu;
      runs = run(plan, fused, c_[0]);
    }
    runs = runs && run(plan, run_, c_[0]) && run(plan, run_, c_[1]);
    if (!runs) return false;
    return is_same_memory(kOperation, c_[0], c_[1], c_bytes_, differs_, handle());
  }

  /// Microseconds of one run: the median of `rounds`. Infinity where the plan cannot be captured.
  float time(const MatmulPlan& plan, int rounds) {
    return timer_.median(rounds, [&] { return run(plan, run_, c_[0]); });
  }

 private:
  cudaStream_t handle() const { return static_cast<cudaStream_t>(stream_.handle()); }

  bool run(const MatmulPlan& plan, MatmulRun run, char* c) const {
    run.c = c;
    return run_plan(plan, run) == CUBLAS_STATUS_SUCCESS;
  }

  char* scratch(std::int64_t nbytes) {
    memory_.push_back(allocate(nbytes, device_));
    return memory_.back()->data();
  }

  /// Numbers, aligned as the key says.
  char* pattern(std::int64_t count, PlanKey::Aligned operand, unsigned seed) {
    std::int64_t size = itemsize(key_.dtype);
    char* data = scratch((count + 1) * size);
    if (!(key_.aligned & operand)) data += size;
    launch_fill_pattern(key_.dtype, data, count, seed, handle());
    return data;
  }

  const PlanKey& key_;
  Device device_;
  Stream stream_;
  StreamScope scope_;
  std::vector<StoragePtr> memory_;
  RunTimer timer_{kOperation, handle()};
  MatmulRun run_;
  char* c_[2];
  std::int64_t c_bytes_;
  unsigned* differs_;
};

/// What a plan of that time is as good as. Of about equal ones a kernel of ours is better: what
/// follows in a recorded step, as a gate or an update, may become part of it.
float counted(const PlanKey& key, const PlanChoice& choice, float time) {
  constexpr float kEqual = 0.98f;
  if (choice.kind == PlanKind::cublaslt) return time;
  return kEqual * time - likely_saved(key, choice.kind);
}

struct Timed {
  float time;  // as it counts
  const PlanChoice* choice;
};

}  // namespace

PlanChoice tune_plan(const PlanKey& key, Device device, std::span<const PlanChoice> candidates) {
  RecorderScope apart(nullptr);
  // Work that is still queued would be timed with the candidates.
  synchronize(device);
  std::size_t workspace = 0;
  for (const PlanChoice& choice : candidates) workspace = std::max(workspace, choice.workspace);
  std::optional<Bench> bench;
  try {
    bench.emplace(key, device, workspace);
  } catch (const OutOfMemoryError&) {
    return candidates.front();  // no room for scratch operands: cuBLASLt's own choice
  }
  std::vector<Timed> timed;
  for (const PlanChoice& choice : candidates) {
    MatmulPlan plan(key, choice);
    if (!bench->is_usable(plan)) continue;
    if (timed.empty()) bench->time(plan, 10);  // while the GPU's clocks rise
    timed.push_back({counted(key, choice, bench->time(plan, 5)), &choice});
  }
  if (timed.empty()) {
    throw CudaError(fmt::format("matmul: none of {} plans for ({}, {}) @ ({}, {}) {} runs",
                                candidates.size(), key.m, key.k, key.k, key.n,
                                dtype_name(key.dtype)));
  }
  auto is_faster = [](const Timed& a, const Timed& b) { return a.time < b.time; };
  std::sort(timed.begin(), timed.end(), is_faster);
  // Of the best again the least of three timings, in turns: what disturbs one is not what it takes.
  timed.resize(std::min<std::size_t>(timed.size(), 8));
  for (int turn = 0; turn < 3; ++turn) {
    for (Timed& t : timed) {
      float time = counted(key, *t.choice, bench->time(MatmulPlan(key, *t.choice), 7));
      t.time = turn == 0 ? time : std::min(t.time, time);
    }
  }
  return *std::min_element(timed.begin(), timed.end(), is_faster)->choice;
}

}  // namespace rensa::cuda
