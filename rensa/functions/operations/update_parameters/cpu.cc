// Optimizers on the CPU: one pass over all parameters, shared out among the threads.
#include <algorithm>
#include <memory>
#include <vector>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/functions/operations/update_parameters/cpu_kernels.h"
#include "rensa/functions/operations/update_parameters/update_parameters.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kBlock = 16 << 10;  // elements of one unit of work
constexpr std::int64_t kGrain = 2;         // units that are worth waking a thread for

/// Elements [begin, end) of array `index`.
struct Block {
  std::size_t index;
  std::int64_t begin, end;
};

/// Arrays of the sizes in blocks, one numbering over all of them.
class Blocks {
 public:
  void add(std::int64_t size) {
    first_.push_back(count_);
    sizes_.push_back(size);
    count_ += (size + kBlock - 1) / kBlock;
  }
  std::int64_t count() const { return count_; }
  Block operator[](std::int64_t block) const {
    // The last array that starts at or before the block; empty ones before it have no block.
    auto next = std::upper_bound(first_.begin(), first_.end(), block);
    auto index = static_cast<std::size_t>(next - first_.begin() - 1);
    std::int64_t begin = (block - next[-1]) * kBlock;
    return {index, begin, std::min(sizes_[index], begin + kBlock)};
  }

 private:
  std::vector<std::int64_t> first_, sizes_;
  std::int64_t count_ = 0;
};

/// One array of a target: used in place where its elements are values, else in chunks that are
/// converted and, where it is written, converted back.
class ChunkedArray {
 public:
  ChunkedArray() = default;
  ChunkedArray(const Operand& operand, ComputeType type, bool written)
      : data_(operand.view.data),
        size_(itemsize(operand.view.dtype)),
        in_place_(operand.view.dtype == value_dtype(type)),
        load_(kernels().load_of(operand.view.dtype, type)),
        store_(written && !in_place_ ? kernels().store_of(operand.view.dtype, type) : nullptr) {}

  bool in_place() const { return in_place_; }
  /// `scratch` is not looked at where the elements are used in place.
  void* read(std::int64_t begin, std::int64_t n, Scratch* scratch) const {
    if (in_place_) return data_ + begin * size_;
    load_(n, data_ + begin * size_, size_, scratch->bytes);
    return scratch->bytes;
  }
  void write(std::int64_t begin, std::int64_t n, const void* values) const {
    if (store_) store_(n, values, data_ + begin * size_, size_);
  }

 private:
  char* data_ = nullptr;
  std::int64_t size_ = 0;
  bool in_place_ = true;
  LoadKernel load_ = nullptr;
  StoreKernel store_ = nullptr;
};

/// What a thread needs for one block after the other.
struct BlockLists {
  std::vector<ChunkedArray> states;
  std::vector<void*> values;  // of the states
  std::vector<double> numbers;
  std::unique_ptr<Scratch[]> scratch;
  std::size_t num_scratch = 0;
};

/// The hyperparameters of a target: those of its set, then its own.
void set_numbers(std::vector<double>& numbers, const operations::UpdateParameters& op,
                 const operations::UpdateTarget& target) {
  numbers.clear();
  for (int k = 0; k < op.set_size; ++k) {
    numbers.push_back(
        op.hyperparameters[static_cast<std::size_t>(target.set * op.set_size + k)].real);
  }
  if (!target.numbers.present()) return;
  const auto* own = reinterpret_cast<const double*>(target.numbers.view.data);
  numbers.insert(numbers.end(), own, own + target.numbers.view.size());
}

void update_block(const operations::UpdateParameters& op, const Block& block, BlockLists& lists) {
  const operations::UpdateTarget& target = op.targets[block.index];
  ComputeType type = compute_type(target.parameter.view.dtype);
  bool to_gradient = row_of(op.rule).changes == UpdateChanges::gradient;
  ChunkedArray parameter(target.parameter, type, !to_gradient);
  ChunkedArray gradient(target.gradient, type, to_gradient);
  StoreKernel narrow =
      target.narrow.present() ? kernels().store_of(target.narrow.view.dtype, type) : nullptr;
  std::size_t num_states = target.states.size();
  std::vector<ChunkedArray>& states = lists.states;
  states.clear();
  for (const Operand& state : target.states) states.emplace_back(state, type, !to_gradient);
  std::vector<void*>& values = lists.values;
  values.resize(num_states);
  bool plain = parameter.in_place() && gradient.in_place() && !narrow;
  if (!plain && lists.num_scratch < 2 + num_states) {
    lists.num_scratch = 2 + num_states;
    lists.scratch = std::make_unique_for_overwrite<Scratch[]>(lists.num_scratch);
  }
  auto scratch = [&](std::size_t k) { return plain ? nullptr : &lists.scratch[k]; };
  set_numbers(lists.numbers, op, target);
  UpdateKernel kernel = update_kernels(type).rules[static_cast<int>(op.rule)];
  std::int64_t step = plain ? block.end - block.begin : kChunk;
  for (std::int64_t begin = block.begin; begin < block.end; begin += step) {
    std::int64_t n = std::min(step, block.end - begin);
    void* p = parameter.read(begin, n, scratch(0));
    void* g = gradient.read(begin, n, scratch(1));
    for (std::size_t k = 0; k < num_states; ++k) {
      values[k] = states[k].read(begin, n, scratch(2 + k));
    }
    kernel(n, p, g, values.data(), lists.numbers.data());
    parameter.write(begin, n, p);
    gradient.write(begin, n, g);
    for (std::size_t k = 0; k < num_states; ++k) states[k].write(begin, n, values[k]);
    if (narrow) {
      std::int64_t size = itemsize(target.narrow.view.dtype);
      narrow(n, p, target.narrow.view.data + begin * size, size);
    }
  }
}

double squares_of(const Operand& operand, std::int64_t begin, std::int64_t end) {
  ComputeType type = compute_type(operand.view.dtype);
  ChunkedArray array(operand, type, false);
  SquaresKernel squares = update_kernels(type).squares;
  double sum = 0;
  Scratch scratch;
  for (; begin < end; begin += kChunk) {
    std::int64_t n = std::min(kChunk, end - begin);
    sum += squares(n, array.read(begin, n, &scratch));
  }
  return sum;
}

}  // namespace

const UpdateKernels& update_kernels(ComputeType type) {
  struct Tables {
    UpdateKernels narrow, wide;
  };
  static const Tables tables = [] {
    Tables t;
    RENSA_IN_SET(best_instruction_set(), get_update_kernels)(t.narrow, t.wide);
    return t;
  }();
  return type == ComputeType::f64 ? tables.wide : tables.narrow;
}

}  // namespace rensa::host

namespace rensa::operations {

void UpdateParameters::run_cpu() {
  if (enabled.present() && *reinterpret_cast<const double*>(enabled.view.data) == 0) return;
  host::Blocks blocks;
  for (const UpdateTarget& target : targets) blocks.add(target.parameter.view.size());
  parallel_for(blocks.count(), host::kGrain, [&](std::int64_t begin, std::int64_t end) {
    host::BlockLists lists;
    for (std::int64_t block = begin; block < end; ++block) {
      host::update_block(*this, blocks[block], lists);
    }
  });
}

void SquaredSums::run_cpu() {
  host::Blocks blocks;
  for (const Operand& operand : in) blocks.add(operand.view.size());
  std::vector<double> parts(static_cast<std::size_t>(blocks.count()));
  parallel_for(blocks.count(), host::kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      host::Block b = blocks[block];
      parts[static_cast<std::size_t>(block)] = host::squares_of(in[b.index], b.begin, b.end);
    }
  });
  auto* sums = reinterpret_cast<double*>(out.view.data);
  std::fill_n(sums, in.size() + 1, 0.0);
  for (std::int64_t block = 0; block < blocks.count(); ++block) {
    sums[blocks[block].index] += parts[static_cast<std::size_t>(block)];
  }
  for (std::size_t k = 0; k < in.size(); ++k) sums[in.size()] += sums[k];
}

}  // namespace rensa::operations
