// Opening cuFFT, and the cache of its plans.
#include "rensa/operations/fft/cuda_cufft.h"

#include <fmt/format.h>

#include <list>

#include "rensa/backend/cuda/library.h"
#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"

namespace rensa::cuda {

namespace {

constexpr std::size_t kMaxPlans = 64;

Cufft load_cufft() {
  Library library(cufft_source());
  Cufft table;
  library.bind("cufftCreate", table.create);
  library.bind("cufftDestroy", table.destroy);
  library.bind("cufftSetAutoAllocation", table.set_auto_allocation);
  library.bind("cufftXtMakePlanMany", table.make_plan);
  library.bind("cufftSetWorkArea", table.set_work_area);
  library.bind("cufftSetStream", table.set_stream);
  library.bind("cufftXtExec", table.execute);
  return table;
}

struct CachedPlan {
  FftPlanKey key;
  cufftHandle handle;
  std::size_t workspace_bytes;
};

// The last used first. Its end is the process's: the driver may be gone by then.
struct PlanCache {
  std::mutex mutex;
  std::list<CachedPlan> plans;
};

PlanCache& plan_cache() {
  static PlanCache& cache = *new PlanCache;
  return cache;
}

cudaDataType data_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::float32: return CUDA_R_32F;
    case Dtype::float64: return CUDA_R_64F;
    case Dtype::complex64: return CUDA_C_32F;
    default: return CUDA_C_64F;
  }
}

CachedPlan make_plan(const char* operation, const FftPlanKey& key) {
  CachedPlan plan{key, 0, 0};
  check_cufft(operation, "cufftCreate", cufft().create(&plan.handle));
  try {
    check_cufft(operation, "cufftSetAutoAllocation", cufft().set_auto_allocation(plan.handle, 0));
    long long lengths[kMaxNdim];
    for (int i = 0; i < key.lengths.size(); ++i) lengths[i] = key.lengths[i];
    bool single = key.in == float32 || key.in == complex64;
    check_cufft(operation, "cufftXtMakePlanMany",
                cufft().make_plan(plan.handle, key.lengths.size(), lengths, nullptr, 1, 0,
                                  data_type(key.in), nullptr, 1, 0, data_type(key.out), key.batch,
                                  &plan.workspace_bytes, single ? CUDA_C_32F : CUDA_C_64F));
  } catch (...) {
    (void)cufft().destroy(plan.handle);
    throw;
  }
  return plan;
}

}  // namespace

const Cufft& cufft() {
  static const Cufft table = load_cufft();
  return table;
}

FftPlan::FftPlan(const char* operation, const FftPlanKey& key) {
  PlanCache& cache = plan_cache();
  hold_ = std::unique_lock(cache.mutex);
  runtime::set_device(key.device);
  auto found = cache.plans.begin();
  while (found != cache.plans.end() && !(found->key == key)) ++found;
  if (found == cache.plans.end()) {
    if (cache.plans.size() >= kMaxPlans) {
      // Its work may still run: the library waits for it.
      runtime::set_device(cache.plans.back().key.device);
      (void)cufft().destroy(cache.plans.back().handle);
      cache.plans.pop_back();
      runtime::set_device(key.device);
    }
    cache.plans.push_front(make_plan(operation, key));
  } else {
    cache.plans.splice(cache.plans.begin(), cache.plans, found);
  }
  handle_ = cache.plans.front().handle;
  workspace_bytes_ = cache.plans.front().workspace_bytes;
}

void check_cufft(const char* operation, const char* function, cufftResult status) {
  if (status == CUFFT_SUCCESS) return;
  throw CudaError(fmt::format("{}: {} failed with cufftResult {}", operation, function,
                              static_cast<int>(status)));
}

}  // namespace rensa::cuda
