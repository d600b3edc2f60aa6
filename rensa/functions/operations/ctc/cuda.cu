// Connectionist temporal classification on a GPU: a block has a sample, and its threads the places
// of a step, which wait for those of the step before.
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/functions/operations/ctc/ctc.h"
#include "rensa/functions/operations/ctc/ctc_sample.h"

namespace rensa::cuda {

namespace {

struct CtcArgs {
  const char *y, *t, *steps_of, *labels_of, *gy;
  char *alpha, *loss, *gx;
  char* scratch;  // of each sample scratch_bytes(most places)
  long long steps, samples, classes, labels, blank;
  ErrorSink errors;
};

// Of a place: the sums behind it and here, the share of its class, and two of the numbers below.
template <class V> RENSA_FN long long scratch_bytes(long long places) {
  return places * static_cast<long long>(3 * sizeof(V) + sizeof(int) * 2);
}

// Sample b; of one that is not right, with what was reported, no steps and no labels.
template <class V> __device__ CtcSample<V> sample_of(const CtcArgs& args, long long b) {
  CtcSample<V> sample;
  sample.stride = 2 * args.labels + 1;
  sample.next_step = args.samples * args.classes;
  sample.y = reinterpret_cast<const V*>(args.y) + b * args.classes;
  sample.t = reinterpret_cast<const long long*>(args.t) + b * args.labels;
  sample.alpha = reinterpret_cast<V*>(args.alpha) + b * args.steps * sample.stride;
  sample.steps = reinterpret_cast<const long long*>(args.steps_of)[b];
  sample.labels = reinterpret_cast<const long long*>(args.labels_of)[b];
  sample.blank = args.blank;
  sample.classes = args.classes;
  bool right = true;
  auto check = [&](ReportedError error, long long value, long long bound, long long first_bad) {
    if (value >= 0 && value < first_bad) return;
    right = false;
    args.errors.report(error, value, bound);
  };
  check(ReportedError::length, sample.steps, args.steps, args.steps + 1);
  check(ReportedError::length, sample.labels, args.labels, args.labels + 1);
  if (right) {
    for (long long i = threadIdx.x; i < sample.labels; i += kBlock) {
      check(ReportedError::label, sample.t[i], args.classes, args.classes);
    }
  }
  if (!__syncthreads_and(right)) sample.steps = sample.labels = 0;
  return sample;
}

template <class V>
__global__ void __launch_bounds__(kBlock) ctc(const __grid_constant__ CtcArgs args) {
  CtcSample<V> sample = sample_of<V>(args, blockIdx.x);
  for (long long step = 0; step < sample.steps; ++step) {
    for (long long place = threadIdx.x; place < sample.places(); place += kBlock) {
      sample.alpha[step * sample.stride + place] = sample.forward(step, place);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) reinterpret_cast<V*>(args.loss)[blockIdx.x] = sample.loss();
}

// Places of one class are added up by one thread, along a chain: equal bits each time. `next` of a
// label is the next place of its class, or -1; `first` whether it has none before it. Blanks, of
// which there are many, are the whole block's.
template <class V> struct Chains {
  int *next, *first;

  __device__ void find(const CtcSample<V>& sample) const {
    for (long long i = threadIdx.x; i < sample.labels; i += kBlock) {
      long long k = sample.t[i], j = i + 1;
      while (j < sample.labels && sample.t[j] != k) ++j;
      next[i] = j < sample.labels ? static_cast<int>(j) : -1;
      j = i - 1;
      while (j >= 0 && sample.t[j] != k) --j;
      first[i] = j < 0 && k != sample.blank;
    }
    __syncthreads();
  }
};

template <class V>
__global__ void __launch_bounds__(kBlock) ctc_grad(const __grid_constant__ CtcArgs args) {
  CtcSample<V> sample = sample_of<V>(args, blockIdx.x);
  char* scratch = args.scratch + blockIdx.x * scratch_bytes<V>(sample.stride);
  V* behind = reinterpret_cast<V*>(scratch);
  V *here = behind + sample.stride, *share = here + sample.stride;
  Chains<V> chains;
  chains.next = reinterpret_cast<int*>(share + sample.stride);
  chains.first = chains.next + sample.stride;
  chains.find(sample);
  V loss = reinterpret_cast<const V*>(args.loss)[blockIdx.x];
  V gy = reinterpret_cast<const V*>(args.gy)[blockIdx.x];
  V* gx = reinterpret_cast<V*>(args.gx) + blockIdx.x * args.classes;
  for (long long step = args.steps; step-- > 0;) {
    V* row = gx + step * sample.next_step;
    const V* y = sample.y + step * sample.next_step;
    bool there = step < sample.steps;
    for (long long k = threadIdx.x; k < args.classes; k += kBlock) {
      row[k] = there ? m::exp(y[k]) * gy : V(0);
    }
    if (!there) continue;
    V of_blanks = V(0);
    for (long long place = threadIdx.x; place < sample.places(); place += kBlock) {
      V ends = sample.backward(step, place, behind);
      V mine = m::exp(sample.alpha[step * sample.stride + place] + ends + loss);
      here[place] = ends;
      share[place] = mine;
      if (sample.class_at(place) == sample.blank) of_blanks += mine;
    }
    of_blanks = join_block<SumOf<V>, kBlock>(of_blanks);
    __syncthreads();
    if (threadIdx.x == 0) row[sample.blank] -= of_blanks * gy;
    for (long long i = threadIdx.x; i < sample.labels; i += kBlock) {
      if (!chains.first[i]) continue;
      V sum = V(0);
      for (int j = static_cast<int>(i); j >= 0; j = chains.next[j]) sum += share[2 * j + 1];
      row[sample.t[i]] -= sum * gy;
    }
    __syncthreads();
    V* other = behind;
    behind = here;
    here = other;
  }
}

template <class Op> CtcArgs arguments_of(const Op& op, const LaunchContext& context) {
  CtcArgs args = {};
  args.y = op.y.view.data;
  args.t = op.t.view.data;
  args.steps_of = op.steps_of.view.data;
  args.labels_of = op.labels_of.view.data;
  args.alpha = op.alpha.view.data;
  args.loss = op.loss.view.data;
  args.steps = op.y.view.shape[0];
  args.samples = op.y.view.shape[1];
  args.classes = op.y.view.shape[2];
  args.labels = op.t.view.shape[1];
  args.blank = op.blank;
  args.errors = ErrorSink(op.name(), context);
  return args;
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void Ctc::run_cuda(const cuda::LaunchContext& context) {
  cuda::CtcArgs args = cuda::arguments_of(*this, context);
  if (args.samples == 0) return;
  auto kernel = y.view.dtype == float64 ? cuda::ctc<double> : cuda::ctc<float>;
  cuda::launch_kernel(name(), context, kernel, args.samples, cuda::kBlock, args);
}

std::size_t CtcGrad::workspace_bytes() const {
  std::int64_t places = 2 * t.view.shape[1] + 1;
  std::int64_t bytes = y.view.dtype == float64 ? cuda::scratch_bytes<double>(places)
                                               : cuda::scratch_bytes<float>(places);
  return static_cast<std::size_t>(y.view.shape[1] * bytes);
}

void CtcGrad::run_cuda(const cuda::LaunchContext& context) {
  cuda::CtcArgs args = cuda::arguments_of(*this, context);
  if (args.samples == 0) return;
  args.gy = gy.view.data;
  args.gx = gx.view.data;
  args.scratch = static_cast<char*>(context.workspace);
  auto kernel = y.view.dtype == float64 ? cuda::ctc_grad<double> : cuda::ctc_grad<float>;
  cuda::launch_kernel(name(), context, kernel, args.samples, cuda::kBlock, args);
}

}  // namespace rensa::operations
