// The optimizers' update rules on the CPU: one pass over all parameters, shared out among the
// threads.
#include <algorithm>
#include <vector>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/device/operations.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kBlock = 16 << 10;  // elements of one unit of work
constexpr std::int64_t kGrain = 2;         // units that are worth waking a thread for

// The arrays of one target: those of the value type are changed in place, others in chunks that are
// converted and written back.
class TargetArrays {
 public:
  TargetArrays(const UpdateTarget& target, int num_states, UpdateKernel kernel)
      : target_(target),
        num_states_(num_states),
        kernel_(kernel),
        type_(compute_type(target.parameter.view.dtype)) {}

  void update(std::int64_t begin, std::int64_t end, const double* h) const {
    Dtype own = target_.parameter.view.dtype;
    bool plain = own == value_dtype(type_) && target_.gradient.view.dtype == own;
    std::int64_t step = plain ? end - begin : kChunk;
    Scratch scratch[2 + kMaxStates];
    for (; begin < end; begin += step) {
      std::int64_t n = std::min(step, end - begin);
      void* p = read(target_.parameter, begin, n, scratch[0]);
      void* g = read(target_.gradient, begin, n, scratch[1]);
      void* states[kMaxStates] = {};
      for (int s = 0; s < num_states_; ++s) {
        states[s] = read(target_.states[s], begin, n, scratch[2 + s]);
      }
      kernel_(n, p, g, states[0], states[1], h);
      write(target_.parameter, begin, n, p);
      for (int s = 0; s < num_states_; ++s) write(target_.states[s], begin, n, states[s]);
    }
  }

 private:
  bool in_place(const Operand& operand) const { return operand.view.dtype == value_dtype(type_); }
  void* read(const Operand& operand, std::int64_t begin, std::int64_t n, Scratch& scratch) const {
    std::int64_t size = itemsize(operand.view.dtype);
    char* source = operand.view.data + begin * size;
    if (in_place(operand)) return source;
    kernels().load_of(operand.view.dtype, type_)(n, source, size, scratch.bytes);
    return scratch.bytes;
  }
  void write(const Operand& operand, std::int64_t begin, std::int64_t n, const void* values) const {
    if (in_place(operand)) return;
    std::int64_t size = itemsize(operand.view.dtype);
    kernels().store_of(operand.view.dtype, type_)(n, values, operand.view.data + begin * size,
                                                  size);
  }

  const UpdateTarget& target_;
  int num_states_;
  UpdateKernel kernel_;
  ComputeType type_;
};

}  // namespace

}  // namespace rensa::host

namespace rensa {

void UpdateParameters::run_cpu() {
  double h[kMaxHyperparameters] = {};
  for (int i = 0; i < num_hyperparameters; ++i) h[i] = hyperparameters[i].real;
  std::vector<std::int64_t> first_block;  // of each target, in a numbering over all of them
  std::int64_t blocks = 0;
  for (const UpdateTarget& target : targets) {
    first_block.push_back(blocks);
    blocks += (target.parameter.view.size() + host::kBlock - 1) / host::kBlock;
  }
  parallel_for(blocks, host::kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      // The last target that starts at or before the block; empty ones before it have no block.
      auto next = std::upper_bound(first_block.begin(), first_block.end(), block);
      const UpdateTarget& target =
          targets[static_cast<std::size_t>(next - first_block.begin() - 1)];
      ComputeType type = compute_type(target.parameter.view.dtype);
      host::UpdateKernel kernel =
          host::kernels().update[static_cast<int>(rule)][static_cast<int>(type)];
      std::int64_t at = (block - next[-1]) * host::kBlock;
      host::TargetArrays(target, num_states, kernel)
          .update(at, std::min(target.parameter.view.size(), at + host::kBlock), h);
    }
  });
}

}  // namespace rensa
