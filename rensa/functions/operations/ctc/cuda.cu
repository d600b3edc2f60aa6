// Connectionist temporal classification on a GPU: a block has a sample, and its threads the places
// of a step, which wait for those of the step before. What a step needs beside those is loaded
// steps ahead, and what only needs the sums (the gradient of all classes) is done for all steps at
// a time, in a launch behind.
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/functions/operations/ctc/ctc.h"
#include "rensa/functions/operations/ctc/ctc_sample.h"
#include "rensa/portable/block.h"

namespace rensa::cuda {

namespace {

constexpr int kMostThreads = 1024;  // with more places, a thread has several
constexpr int kAhead = 4;           // steps

struct CtcArgs {
  const char *y, *t, *steps_of, *labels_of, *gy;
  char *alpha, *loss, *gx;
  char* scratch;  // of the gradient
  long long steps, samples, classes, labels, blank;
  ErrorSink errors;

  RENSA_FN long long places() const { return 2 * labels + 1; }
};

// What the gradient's launches hand on, cut out of `scratch`.
template <class V> struct CtcScratch {
  V* share;           // (samples, steps, places): of all paths, those that are there
  V* rows;            // (samples, 2, places): of the long walk
  long long* counts;  // (samples, 2): the steps and labels of each, 0 where they are not right
  int *next, *first;  // (samples, labels): chains of the labels of one class

  static long long bytes(const CtcArgs& args) {
    long long values = args.samples * args.places() * (args.steps + 2);
    return values * static_cast<long long>(sizeof(V)) + args.samples * 16 +
           args.samples * args.labels * 8;
  }
  RENSA_FN explicit CtcScratch(const CtcArgs& args)
      : share(reinterpret_cast<V*>(args.scratch + args.samples * 16)),
        rows(share + args.samples * args.places() * args.steps),
        counts(reinterpret_cast<long long*>(args.scratch)),
        next(reinterpret_cast<int*>(rows + args.samples * args.places() * 2)),
        first(next + args.samples * args.labels) {}
};

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
    for (long long i = threadIdx.x; i < sample.labels; i += blockDim.x) {
      check(ReportedError::label, sample.t[i], args.classes, args.classes);
    }
  }
  if (!__syncthreads_and(right)) sample.steps = sample.labels = 0;
  return sample;
}

// --- the walks over the steps ---

// The values of a class or place at the coming steps, loaded kAhead steps before they are used.
template <class V> struct Coming {
  const V* at;     // the step that is loaded next
  long long step;  // elements from one step to the next, less than 0 on the way back
  V value[kAhead];

  __device__ __forceinline__ Coming(const V* first, long long elements, long long steps)
      : at(first), step(elements) {
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      value[u] = u < steps ? *at : V(0);
      at += step;
    }
  }
  /// value[u] has been used: it becomes that of kAhead steps on, where there is one.
  __device__ __forceinline__ void load(int u, bool more) {
    if (more) value[u] = *at;
    at += step;
  }
};

// The value is computed here, by all threads: behind a branch it would keep them from the loads
// that follow.
__device__ __forceinline__ float computed(float value) {
  asm volatile("" : "+f"(value));
  return value;
}
__device__ __forceinline__ double computed(double value) {
  asm volatile("" : "+d"(value));
  return value;
}

// A place's neighbours stand in shared memory, in two rows by turns: one barrier per step.
template <class V>
__global__ void __launch_bounds__(kMostThreads) ctc(const __grid_constant__ CtcArgs args) {
  wait_for_previous();
  __shared__ V rows[2][kMostThreads + 2];
  CtcSample<V> sample = sample_of<V>(args, blockIdx.x);
  int place = threadIdx.x;
  bool there = place < sample.places(), skips = there && sample.skips_to(place);
  const V nothing = -m::infinity<V>();
  // As if a path had come to the first place before the first step.
  V here = place == 0 ? V(0) : nothing;
  if (place < 2) rows[0][place] = rows[1][place] = nothing;
  rows[0][place + 2] = here;
  __syncthreads();
  Coming<V> y(sample.y + (there ? sample.class_at(place) : sample.blank), sample.next_step,
              sample.steps);
  V* alpha = sample.alpha + place;
  V one_less = rows[0][place + 1], two_less = rows[0][place];
  for (long long left = sample.steps; left > 0; left -= kAhead) {
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (u >= left) break;
      V* row = rows[(u + 1) % 2];
      here = log_sum(here, one_less, skips ? two_less : nothing) + y.value[u];
      row[place + 2] = here;
      __syncthreads();
      one_less = row[place + 1];
      two_less = row[place];
      if (there) *alpha = here;
      alpha += sample.stride;
      y.load(u, left - u > kAhead);
    }
  }
  __syncthreads();  // alpha is there
  if (place == 0) reinterpret_cast<V*>(args.loss)[blockIdx.x] = sample.loss();
}

template <class V>
__global__ void __launch_bounds__(kMostThreads) ctc_long(const __grid_constant__ CtcArgs args) {
  wait_for_previous();
  CtcSample<V> sample = sample_of<V>(args, blockIdx.x);
  for (long long step = 0; step < sample.steps; ++step) {
    for (long long place = threadIdx.x; place < sample.places(); place += blockDim.x) {
      sample.alpha[step * sample.stride + place] = sample.forward(step, place);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) reinterpret_cast<V*>(args.loss)[blockIdx.x] = sample.loss();
}

// Places of one class are added up by one thread, along a chain: equal bits each time. `next` of a
// label is the next place of its class, or -1; `first` whether it has none before it. Blanks, of
// which there are many, are a whole warp's.
template <class V> __device__ void find_chains(const CtcSample<V>& sample, int* next, int* first) {
  for (long long i = threadIdx.x; i < sample.labels; i += blockDim.x) {
    long long k = sample.t[i], j = i + 1;
    while (j < sample.labels && sample.t[j] != k) ++j;
    next[i] = j < sample.labels ? static_cast<int>(j) : -1;
    j = i - 1;
    while (j >= 0 && sample.t[j] != k) --j;
    first[i] = j < 0 && k != sample.blank;
  }
}

// Sample blockIdx.x of the gradient, whose counts and chains are written down for the next launch.
template <class V>
__device__ CtcSample<V> begin_gradient(const CtcArgs& args, const CtcScratch<V>& scratch) {
  CtcSample<V> sample = sample_of<V>(args, blockIdx.x);
  if (threadIdx.x == 0) {
    scratch.counts[2 * blockIdx.x] = sample.steps;
    scratch.counts[2 * blockIdx.x + 1] = sample.labels;
  }
  find_chains(sample, scratch.next + blockIdx.x * args.labels,
              scratch.first + blockIdx.x * args.labels);
  return sample;
}

// The way back, by which the share of the paths that are at a place at a step is known.
template <class V>
__global__ void __launch_bounds__(kMostThreads) ctc_shares(const __grid_constant__ CtcArgs args) {
  wait_for_previous();
  __shared__ V rows[2][kMostThreads + 2];
  CtcScratch<V> scratch(args);
  CtcSample<V> sample = begin_gradient(args, scratch);
  int place = threadIdx.x;
  bool there = place < sample.places(), skips = there && sample.skips_from(place);
  const V nothing = -m::infinity<V>();
  // As if a path went on to the last place behind the last step. Beyond it there is nothing.
  V here = place == sample.places() - 1 ? V(0) : nothing;
  if (place < 2) rows[0][blockDim.x + place] = rows[1][blockDim.x + place] = nothing;
  rows[0][place] = here;
  __syncthreads();
  long long last = sample.steps - 1, at = last * sample.stride + place;
  Coming<V> y(sample.y + last * sample.next_step + (there ? sample.class_at(place) : sample.blank),
              -sample.next_step, sample.steps);
  Coming<V> alpha(sample.alpha + (there ? at : at - place), -sample.stride, sample.steps);
  V* share = scratch.share + blockIdx.x * args.steps * sample.stride + at;
  V loss = reinterpret_cast<const V*>(args.loss)[blockIdx.x];
  V one_more = rows[0][place + 1], two_more = rows[0][place + 2];
  for (long long left = sample.steps; left > 0; left -= kAhead) {
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (u >= left) break;
      V* row = rows[(u + 1) % 2];
      V ends = log_sum(here, one_more, skips ? two_more : nothing);
      here = there ? ends + y.value[u] : nothing;
      row[place] = here;
      __syncthreads();
      one_more = row[place + 1];
      two_more = row[place + 2];
      V mine = computed(m::exp(alpha.value[u] + ends + loss));
      if (there) *share = mine;
      share -= sample.stride;
      y.load(u, left - u > kAhead);
      alpha.load(u, left - u > kAhead);
    }
  }
}

template <class V>
__global__ void __launch_bounds__(kMostThreads)
    ctc_shares_long(const __grid_constant__ CtcArgs args) {
  wait_for_previous();
  CtcScratch<V> scratch(args);
  CtcSample<V> sample = begin_gradient(args, scratch);
  V* behind = scratch.rows + blockIdx.x * 2 * sample.stride;
  V* here = behind + sample.stride;
  V* share = scratch.share + blockIdx.x * args.steps * sample.stride;
  V loss = reinterpret_cast<const V*>(args.loss)[blockIdx.x];
  for (long long step = sample.steps; step-- > 0;) {
    for (long long place = threadIdx.x; place < sample.places(); place += blockDim.x) {
      V ends = sample.backward(step, place, behind);
      here[place] = ends + sample.y_at(step, place);
      long long at = step * sample.stride + place;
      share[at] = m::exp(sample.alpha[at] + ends + loss);
    }
    __syncthreads();
    V* other = behind;
    behind = here;
    here = other;
  }
}

// --- the gradient of all classes ---

constexpr int kStepsOfBlock = 32;

// What row[k] is but for the shares, of the classes of a step: a warp's.
template <class V>
__device__ __forceinline__ void start_row(V* row, const V* y, long long classes, bool there, V gy) {
  constexpr int kTogether = 4;
  for (long long k = threadIdx.x % 32; k < classes; k += 32 * kTogether) {
    V value[kTogether];
#pragma unroll
    for (int u = 0; u < kTogether; ++u) {
      value[u] = there && k + u * 32 < classes ? y[k + u * 32] : -m::infinity<V>();
    }
#pragma unroll
    for (int u = 0; u < kTogether; ++u) {
      if (k + u * 32 < classes) row[k + u * 32] = there ? m::exp(value[u]) * gy : V(0);
    }
  }
}

// A block has some steps of a sample, a warp one of them at a time.
template <class V>
__global__ void __launch_bounds__(kBlock) ctc_grad(const __grid_constant__ CtcArgs args) {
  wait_for_previous();
  CtcScratch<V> scratch(args);
  long long b = blockIdx.x % args.samples, first = blockIdx.x / args.samples * kStepsOfBlock;
  long long steps = scratch.counts[2 * b], labels = scratch.counts[2 * b + 1];
  const auto* t = reinterpret_cast<const long long*>(args.t) + b * args.labels;
  const int *next = scratch.next + b * args.labels, *begins = scratch.first + b * args.labels;
  V gy = reinterpret_cast<const V*>(args.gy)[b];
  long long lane = threadIdx.x % 32;
  for (int s = threadIdx.x / 32; s < kStepsOfBlock; s += kBlock / 32) {
    long long step = first + s, at = (step * args.samples + b) * args.classes;
    if (step >= args.steps) return;
    V* row = reinterpret_cast<V*>(args.gx) + at;
    const V* y = reinterpret_cast<const V*>(args.y) + at;
    start_row(row, y, args.classes, step < steps, gy);
    if (step >= steps) continue;
    const V* share = scratch.share + (b * args.steps + step) * args.places();
    V of_blanks = V(0);
    for (long long i = lane; i <= labels; i += 32) {
      of_blanks += share[2 * i];
      if (i < labels && t[i] == args.blank) of_blanks += share[2 * i + 1];
    }
    of_blanks = join_lanes<SumOf<V>>(of_blanks);
    __syncwarp();  // the row is there
    if (lane == 0) row[args.blank] = (m::exp(y[args.blank]) - of_blanks) * gy;
    for (long long i = lane; i < labels; i += 32) {
      if (!begins[i]) continue;
      V sum = V(0);
      for (long long j = i; j >= 0; j = next[j]) sum += share[2 * j + 1];
      row[t[i]] = (m::exp(y[t[i]]) - sum) * gy;
    }
  }
}

// --- launches ---

template <class Op> CtcArgs arguments_of(const Op& op) {
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
  return args;
}

// A block for each sample, with a thread for each place if they fit.
void walk(const char* operation, const LaunchContext& context, const CtcArgs& args,
          void (*few)(CtcArgs), void (*many)(CtcArgs)) {
  bool fits = args.places() <= kMostThreads;
  int threads = fits ? static_cast<int>(round_up(args.places(), 32)) : kMostThreads;
  launch_kernel(operation, context, fits ? few : many, args.samples, threads, args);
}

template <class V> void run(const operations::Ctc& op, const LaunchContext& context) {
  CtcArgs args = arguments_of(op);
  args.errors = ErrorSink(op.name(), context);
  walk(op.name(), context, args, ctc<V>, ctc_long<V>);
}

template <class V> void run(const operations::CtcGrad& op, const LaunchContext& context) {
  CtcArgs args = arguments_of(op);
  args.errors = ErrorSink(op.name(), context);
  args.gy = op.gy.view.data;
  args.gx = op.gx.view.data;
  args.scratch = static_cast<char*>(context.workspace);
  if (args.steps == 0) return;
  walk(op.name(), context, args, ctc_shares<V>, ctc_shares_long<V>);
  launch_kernel(op.name(), context, ctc_grad<V>, args.samples * ceil_div(args.steps, kStepsOfBlock),
                kBlock, args);
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void Ctc::run_cuda(const cuda::LaunchContext& context) {
  if (y.view.shape[1] == 0) return;
  y.view.dtype == float64 ? cuda::run<double>(*this, context) : cuda::run<float>(*this, context);
}

std::size_t CtcGrad::workspace_bytes() const {
  cuda::CtcArgs args = cuda::arguments_of(*this);
  return static_cast<std::size_t>(y.view.dtype == float64 ? cuda::CtcScratch<double>::bytes(args)
                                                          : cuda::CtcScratch<float>::bytes(args));
}

void CtcGrad::run_cuda(const cuda::LaunchContext& context) {
  if (y.view.shape[1] == 0) return;
  y.view.dtype == float64 ? cuda::run<double>(*this, context) : cuda::run<float>(*this, context);
}

}  // namespace rensa::operations
