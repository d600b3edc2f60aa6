// cuFFT's functions, had from the library at run time, and the plans made with them.
#pragma once

#include <cufft.h>
#include <cufftXt.h>

#include <mutex>

#include "rensa/core/device.h"
#include "rensa/core/dtype.h"
#include "rensa/core/shape.h"

namespace rensa::cuda {

struct Cufft {
  decltype(&::cufftCreate) create;
  decltype(&::cufftDestroy) destroy;
  decltype(&::cufftSetAutoAllocation) set_auto_allocation;
  decltype(&::cufftXtMakePlanMany) make_plan;
  decltype(&::cufftSetWorkArea) set_work_area;
  decltype(&::cufftSetStream) set_stream;
  decltype(&::cufftXtExec) execute;
};

/// Opens the library at the first call. Throws CudaError where it is missing.
const Cufft& cufft();

/// Transforms of `batch` contiguous signals of extents `lengths`.
struct FftPlanKey {
  Device device;
  Shape lengths;
  std::int64_t batch;
  Dtype in, out;
  friend bool operator==(const FftPlanKey&, const FftPlanKey&) = default;
};

/// A plan of the process's cache, for this thread alone until the object is gone; made when it is
/// not there, in the place of the one that was longest unused.
class FftPlan {
 public:
  FftPlan(const char* operation, const FftPlanKey& key);
  cufftHandle handle() const { return handle_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  std::unique_lock<std::mutex> hold_;
  cufftHandle handle_ = 0;
  std::size_t workspace_bytes_ = 0;
};

/// Throws CudaError naming the operation, the library's function and the status.
void check_cufft(const char* operation, const char* function, cufftResult status);

}  // namespace rensa::cuda
