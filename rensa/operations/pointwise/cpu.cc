// Pointwise rows on the CPU: walks arrays of any dtype and stride and hands contiguous values to
// the kernels.
#include <algorithm>
#include <memory>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/elementwise/cpu_elementwise.h"
#include "rensa/operations/pointwise/cpu_kernels.h"

namespace rensa::host {

PointwiseTable make_pointwise_table(InstructionSet set) {
  PointwiseTable table = {};
  baseline::add_pointwise(table);
  RENSA_IN_SET(set, add_pointwise)(table);
  return table;
}

const PointwiseTable& pointwise_kernels() {
  static const PointwiseTable table = make_pointwise_table(best_instruction_set());
  return table;
}

namespace {

constexpr std::int64_t kGrain = 8 << 10;  // elements that are worth waking a thread for
// Values at a time where some are converted: all of the buffers fit the first-level cache.
constexpr std::int64_t kBuffers = 4 * kChunk;

struct PointwiseWalk {
  PointwiseKernel kernel;
  int num_inputs, num_outputs;
  Reader in[kMostPointwiseInputs];
  Writer out[kMostPointwiseOutputs];
  int converted = 0;  // operands that are not used in place

  void run(std::int64_t begin, std::int64_t end) const {
    std::unique_ptr<Scratch[]> scratch;
    if (converted > 0)
      scratch.reset(new Scratch[static_cast<std::size_t>(num_inputs + num_outputs)]);
    const void* values[kMostPointwiseInputs];
    void* targets[kMostPointwiseOutputs];
    Scratch none;
    auto scratch_of = [&](int k) -> Scratch& {
      return scratch ? scratch[static_cast<std::size_t>(k)] : none;
    };
    std::int64_t chunk = end - begin;
    if (converted > 0) chunk = std::min({chunk, kChunk, kBuffers / converted / 64 * 64});
    for (int k = 0; k < num_inputs; ++k) {  // a constant is written out once
      if (in[k].is_constant()) values[k] = in[k].read(0, chunk, scratch_of(k));
    }
    for (; begin < end; begin += chunk) {
      std::int64_t n = std::min(chunk, end - begin);
      for (int k = 0; k < num_inputs; ++k) {
        if (!in[k].is_constant()) values[k] = in[k].read(begin, n, scratch_of(k));
      }
      for (int k = 0; k < num_outputs; ++k) {
        targets[k] = out[k].target(begin, n, scratch_of(num_inputs + k));
      }
      kernel(n, values, targets);
      for (int k = 0; k < num_outputs; ++k) out[k].write(begin, n, targets[k]);
    }
  }
};

}  // namespace
}  // namespace rensa::host

namespace rensa::operations {

void Pointwise::run_cpu() {
  if (out[0].view.size() == 0) return;
  ComputeType type = compute_type(compute);
  alignas(host::kMaxValueSize) char numbers[kMostPointwiseInputs][host::kMaxValueSize];
  ArrayView views[kMostPointwiseInputs + kMostPointwiseOutputs];
  ArrayView* all[kMostPointwiseInputs + kMostPointwiseOutputs];
  const int M = static_cast<int>(out.size()), N = static_cast<int>(in.size());
  for (int k = 0; k < M; ++k) views[k] = out[static_cast<std::size_t>(k)].view;
  for (int k = 0; k < N; ++k) {
    const ElementwiseInput& input = in[static_cast<std::size_t>(k)];
    if (input.array.present()) {
      views[M + k] = input.array.view;
    } else {
      host::make_value(input.scalar, compute, type, numbers[k]);
      const ArrayView& like = out[0].view;
      views[M + k] = {numbers[k], value_dtype(type), like.device, like.shape,
                      Shape::filled(like.ndim(), 0)};
    }
  }
  for (int k = 0; k < M + N; ++k) all[k] = &views[k];
  normalize_axes(all, M + N);

  host::PointwiseWalk walk;
  walk.kernel = host::pointwise_kernels().kernel[row->index][static_cast<int>(type)];
  walk.num_inputs = N;
  walk.num_outputs = M;
  for (int k = 0; k < M; ++k) {
    walk.out[k] = host::Writer(views[k], type);
    walk.converted += !walk.out[k].is_direct();
  }
  for (int k = 0; k < N; ++k) {
    walk.in[k] = host::Reader(views[M + k], type);
    walk.converted += !walk.in[k].is_direct();
  }
  std::int64_t n = out[0].view.size();
  parallel_for(n, long_pieces(n, host::kGrain),
               [&walk](std::int64_t begin, std::int64_t end) { walk.run(begin, end); });
}

}  // namespace rensa::operations
