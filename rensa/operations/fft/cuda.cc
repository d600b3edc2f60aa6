// Fourier transforms on a GPU: cuFFT.
#include "rensa/operations/fft/cuda_cufft.h"
#include "rensa/operations/fft/fft.h"

namespace rensa::operations {

namespace {

cuda::FftPlanKey plan_key(const Fft& op) {
  const ArrayView& in = op.in.view;
  // The signal's extents are those of the side that is not halved.
  const Shape& shape = op.kind == FftKind::complex_to_real ? op.out.view.shape : in.shape;
  cuda::FftPlanKey key{in.device, {}, 1, in.dtype, op.out.view.dtype};
  for (int i = 0; i < shape.size(); ++i) {
    if (i < shape.size() - op.rank) key.batch *= shape[i];
    else key.lengths.push_back(shape[i]);
  }
  return key;
}

}  // namespace

std::size_t Fft::workspace_bytes() const {
  if (in.view.device.is_cpu()) return 0;
  return cuda::FftPlan(name(), plan_key(*this)).workspace_bytes();
}

void Fft::run_cuda(const cuda::LaunchContext& context) {
  cuda::FftPlan plan(name(), plan_key(*this));
  const cuda::Cufft& library = cuda::cufft();
  cuda::check_cufft(name(), "cufftSetStream",
                    library.set_stream(plan.handle(), static_cast<cudaStream_t>(context.handle)));
  if (plan.workspace_bytes() > 0) {
    cuda::check_cufft(name(), "cufftSetWorkArea",
                      library.set_work_area(plan.handle(), context.workspace));
  }
  cuda::check_cufft(name(), "cufftXtExec",
                    library.execute(plan.handle(), in.view.data, out.view.data,
                                    inverse ? CUFFT_INVERSE : CUFFT_FORWARD));
}

}  // namespace rensa::operations
