// Reductions on the CPU. The axes are split into those that are kept and those that are reduced.
// Where the reduced ones are the denser in memory, each output is reduced by itself, in leaves of
// values that are joined pairwise. Where the kept ones are, whole rows are added to rows of
// accumulators, blocks of rows being joined pairwise. Long reductions are cut into parts at fixed
// places for the threads.
#include "rensa/operations/reduce/cpu_reduce.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/reduce/cpu_argreduce.h"
#include "rensa/operations/reduce/cpu_kernels.h"
#include "rensa/operations/reduce/cpu_moments.h"
#include "rensa/operations/reduce/reduce.h"
#include "rensa/portable/launch_plan.h"

namespace rensa::host {

const ReduceTable& reduce_kernels() {
  static const ReduceTable table = [] {
    ReduceTable t;
    baseline::add_reductions(t);
    RENSA_IN_SET(best_instruction_set(), add_reductions)(t);
    return t;
  }();
  return table;
}

namespace {

struct Values {
  ReduceKernels kernels;
  StoreKernel store;
  std::int64_t size;  // bytes of a value
  ComputeType type;
  Dtype dtype;                   // whose elements are stored as values are
  TruthKernel truths = nullptr;  // for runs of bools
  bool has_last_word = false;    // any and all: a value that no other changes
  alignas(kMaxValueSize) char last_word[kMaxValueSize] = {};

  bool is_decided(const char* value) const {
    return has_last_word && std::memcmp(value, last_word, static_cast<std::size_t>(size)) == 0;
  }
};

// Joins `count` neighbouring rows of n accumulators pairwise into the first.
void join(const Values& v, std::int64_t count, std::int64_t n, char* rows) {
  join_pairwise(count, [&](long long others, long long from) {
    v.kernels.combine(others * n, rows + from * n * v.size, rows);
  });
}

// --- each output by itself ---

// Bools, the last axis of which lies side by side: they are counted as they are.
void reduce_bools(const Values& v, const ArrayView& in, std::int64_t begin, std::int64_t end,
                  char* result) {
  std::int64_t length = in.shape[in.ndim() - 1];
  v.kernels.identity(1, result);
  while (begin < end && !v.is_decided(result)) {
    std::int64_t run = std::min(end - begin, length - begin % length);
    long long found = v.truths(run, in.data + offset_of(in, begin));
    v.kernels.combine(1, &found, result);
    begin += run;
  }
}

// At most kReducePart values from `begin` on.
void reduce_part(const Values& v, const Reader& in, std::int64_t begin, std::int64_t end,
                 char* result) {
  if (v.truths) return reduce_bools(v, in.view(), begin, end, result);
  Scratch scratch;
  static_assert(kReduceLeaf == kChunk);
  alignas(64) char leaves[kReducePart / kChunk * kMaxValueSize];
  std::int64_t count = 0;
  for (bool decided = false; begin < end && !decided; begin += kChunk, ++count) {
    std::int64_t n = std::min(kChunk, end - begin);
    char* leaf = leaves + count * v.size;
    v.kernels.leaf(n, in.read(begin, n, scratch), leaf);
    decided = v.is_decided(leaf);
  }
  join(v, count, 1, leaves);
  std::copy_n(leaves, v.size, result);
}

// Which outputs are known before all of their parts are: those of any and all, from one value on.
class Decided {
 public:
  Decided(const Values& v, const SplitAxes& s, std::int64_t parts)
      : outputs_(static_cast<std::size_t>(v.has_last_word && parts > 1 ? s.kept_in.size() : 0)) {
    // A first look at few outputs, which often settles them, is not worth waking a thread.
    constexpr std::size_t kFew = 8;
    if (outputs_.empty() || outputs_.size() > kFew) return;
    Reader reader(s.reduced, v.type);
    for (std::int64_t i = 0; i < s.kept_in.size(); ++i) {
      reader.move_to(s.reduced.data + offset_of(s.kept_in, i));
      alignas(kMaxValueSize) char value[kMaxValueSize];
      reduce_part(v, reader, 0, kChunk, value);
      if (v.is_decided(value)) set(i);
    }
  }
  bool operator[](std::int64_t output) const {
    return !outputs_.empty() &&
           outputs_[static_cast<std::size_t>(output)].load(std::memory_order_relaxed);
  }
  void set(std::int64_t output) {
    if (!outputs_.empty()) {
      outputs_[static_cast<std::size_t>(output)].store(true, std::memory_order_relaxed);
    }
  }
  bool all() const {
    return !outputs_.empty() &&
           std::all_of(outputs_.begin(), outputs_.end(), [](const auto& is) { return is.load(); });
  }

 private:
  std::vector<std::atomic<bool>> outputs_;
};

void reduce_outputs(const Values& v, const SplitAxes& s) {
  std::int64_t n = s.reduced.size(), outputs = s.kept_in.size();
  ReduceParts plan = plan_outputs(outputs, n);
  std::int64_t parts = plan.parts;
  auto finish = [&](std::int64_t output, char* value) {
    v.kernels.post(1, n, value);
    v.store(1, value, s.kept_out.data + offset_of(s.kept_out, output), 0);
  };
  Decided decided(v, s, parts);
  std::vector<char> partials(static_cast<std::size_t>(parts > 1 ? outputs * parts * v.size : 0));
  parallel_for(
      decided.all() ? 0 : plan.items, plan.grain, [&](std::int64_t begin, std::int64_t end) {
        Reader reader(s.reduced, v.type);
        for (std::int64_t item = begin; item < end; ++item) {
          std::int64_t output = item / parts, first = item % parts * kReducePart;
          if (decided[output]) continue;
          reader.move_to(s.reduced.data + offset_of(s.kept_in, output));
          alignas(kMaxValueSize) char value[kMaxValueSize];
          reduce_part(v, reader, first, std::min<std::int64_t>(n, first + kReducePart), value);
          if (v.is_decided(value)) decided.set(output);
          if (parts == 1) {
            finish(output, value);
          } else {
            std::copy_n(value, v.size, partials.data() + item * v.size);
          }
        }
      });
  if (parts == 1) return;
  for (std::int64_t output = 0; output < outputs; ++output) {
    char* first = partials.data() + output * parts * v.size;
    join(v, parts, 1, first);
    if (decided[output]) std::copy_n(v.last_word, v.size, first);
    finish(output, first);
  }
}

// --- rows of outputs together ---

// One tile of columns: where its rows lie and how to add some of them up.
class Tile {
 public:
  Tile(const Values& values, const ArrayView& reduced, Dtype dtype, char* data,
       std::int64_t columns, std::int64_t column_stride)
      : v_(values),
        reduced_(reduced),
        data_(data),
        columns_(columns),
        stride_(column_stride),
        load_(kernels().load_of(dtype, values.type)),
        in_place_(dtype == values.dtype && (column_stride == values.size || columns == 1)) {}

  // accumulators = rows [begin, end)
  void reduce(std::int64_t begin, std::int64_t end, char* accumulators) const {
    reduce_row_blocks<kReduceColumns * kMaxValueSize>(
        begin, end, accumulators,
        [this](std::int64_t first, std::int64_t last, char* sums) {
          v_.kernels.identity(columns_, sums);
          add_rows(first, last, sums);
        },
        [this](const char* others, char* sums) { v_.kernels.combine(columns_, others, sums); });
  }

 private:
  void add_rows(std::int64_t begin, std::int64_t end, char* accumulators) const {
    alignas(64) char values[kReduceColumns * kMaxValueSize];
    int last = reduced_.ndim() - 1;
    std::int64_t stride = last < 0 ? 0 : reduced_.strides[last];
    std::int64_t length = last < 0 ? 1 : reduced_.shape[last];
    while (begin < end) {
      const char* row = data_ + offset_of(reduced_, begin);
      std::int64_t run = std::min(end - begin, length - begin % length);
      if (in_place_ && stride % v_.size == 0) {
        v_.kernels.rows(run, columns_, row, stride / v_.size, accumulators);
      } else {
        for (std::int64_t i = 0; i < run; ++i, row += stride) {
          load_(columns_, row, stride_, values);
          v_.kernels.rows(1, columns_, values, 0, accumulators);
        }
      }
      begin += run;
    }
  }

  const Values& v_;
  const ArrayView& reduced_;
  char* data_;
  std::int64_t columns_, stride_;
  LoadKernel load_;
  bool in_place_;
};

void reduce_columns(const Values& v, const SplitAxes& s) {
  ArrayView outer_in = s.kept_in, outer_out = s.kept_out;
  int last = outer_in.ndim() - 1;
  std::int64_t width = last < 0 ? 1 : outer_in.shape[last];
  std::int64_t in_stride = last < 0 ? 0 : outer_in.strides[last];
  std::int64_t out_stride = last < 0 ? 0 : outer_out.strides[last];
  for (ArrayView* view : {&outer_in, &outer_out}) {
    if (last < 0) break;
    view->shape.erase(last);
    view->strides.erase(last);
  }
  std::int64_t n = s.reduced.size();
  ReduceParts plan = plan_tiles(outer_in.size(), width, n);
  std::int64_t tiles = plan.tiles_x, parts = plan.parts, part_size = plan.tile_width * v.size;

  auto finish = [&](std::int64_t item, char* accumulators) {
    std::int64_t first = item % tiles * kReduceColumns,
                 columns = std::min<std::int64_t>(kReduceColumns, width - first);
    v.kernels.post(columns, n, accumulators);
    v.store(columns, accumulators,
            outer_out.data + offset_of(outer_out, item / tiles) + first * out_stride, out_stride);
  };
  std::vector<char> partials(static_cast<std::size_t>(parts > 1 ? plan.items * part_size : 0));
  parallel_for(plan.items, plan.grain, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) char accumulators[kReduceColumns * kMaxValueSize];
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t item = i / parts, row = i % parts * plan.part_rows;
      std::int64_t first = item % tiles * kReduceColumns,
                   columns = std::min<std::int64_t>(kReduceColumns, width - first);
      char* data = outer_in.data + offset_of(outer_in, item / tiles) + first * in_stride;
      Tile tile(v, s.reduced, outer_in.dtype, data, columns, in_stride);
      char* target = parts == 1 ? accumulators : partials.data() + i * part_size;
      tile.reduce(row, std::min<std::int64_t>(n, row + plan.part_rows), target);
      if (parts == 1) finish(item, target);
    }
  });
  if (parts == 1) return;
  for (std::int64_t item = 0; item < plan.tiles; ++item) {
    char* first = partials.data() + item * parts * part_size;
    join(v, parts, plan.tile_width, first);
    finish(item, first);
  }
}

// Whether all is bools that can be reduced a byte each: rows of them, of which each column is one.
bool are_rows_of_bools(const Values& v, Reduction reduction, const SplitAxes& s) {
  int last = s.kept_in.ndim() - 1;
  return s.kept_in.dtype == bool_ && s.kept_out.dtype == bool_ && v.type == ComputeType::i64 &&
         last >= 0 && s.kept_in.strides[last] == 1 && reduce_kernels().of(reduction).bools.rows;
}

void store_bools(std::int64_t n, const void* src, char* dst, std::int64_t stride) {
  for (std::int64_t i = 0; i < n; ++i) dst[i * stride] = static_cast<const char*>(src)[i];
}

void reduce_nothing(const Values& v, const SplitAxes& s) {
  alignas(kMaxValueSize) char value[kMaxValueSize];
  v.kernels.identity(1, value);
  v.kernels.post(1, 0, value);
  for (std::int64_t i = 0; i < s.kept_out.size(); ++i) {
    v.store(1, value, s.kept_out.data + offset_of(s.kept_out, i), 0);
  }
}

}  // namespace

SplitAxes::SplitAxes(const ArrayView& in, unsigned axes, const ArrayView& out, bool positions)
    : kept_in(part_of_axes(in, axes, false)),
      kept_out(part_of_axes(out, axes, false)),
      reduced(part_of_axes(in, axes, true)) {
  ArrayView* kept[] = {&kept_in, &kept_out};
  ArrayView* gone[] = {&reduced};
  normalize_axes(kept, 2);
  if (!positions) normalize_axes(gone, 1);
}

void run_reduce(Reduction reduction, unsigned axes, Dtype compute, const ArrayView& in,
                const ArrayView& out) {
  if (out.size() == 0) return;
  bool positions = reduction_info(reduction).rule == ReductionRule::position;
  SplitAxes split(in, axes, out, positions);
  ComputeType type = compute_type(compute);
  if (positions) return run_argreduce(reduction, type, split);
  if (!reduction_info(reduction).is_row) return run_moments(reduction, type, split);
  Values values = {reduce_kernels().of(reduction, type), kernels().store_of(out.dtype, type),
                   itemsize(value_dtype(type)), type, value_dtype(type)};
  std::int64_t n = split.reduced.size();
  if (n == 0) return reduce_nothing(values, split);
  constexpr std::int64_t kLongRun = 64;  // bools that are worth a call of their own
  if (reduces_columns(split.kept_in, split.reduced)) {
    if (are_rows_of_bools(values, reduction, split)) {
      values.kernels = reduce_kernels().of(reduction).bools;
      values.store = store_bools;
      values.size = 1;
      values.dtype = bool_;
    }
    return reduce_columns(values, split);
  }
  if (reduction == reduction::any || reduction == reduction::all) {
    Reduction other = reduction == reduction::any ? reduction::all : reduction::any;
    reduce_kernels().of(other, type).identity(1, values.last_word);
    values.has_last_word = true;
  }
  const ArrayView& reduced = split.reduced;
  if (in.dtype == bool_ && type == ComputeType::i64 && reduced.ndim() > 0 &&
      reduced.strides[reduced.ndim() - 1] == 1 && reduced.shape[reduced.ndim() - 1] >= kLongRun) {
    values.truths = reduce_kernels().of(reduction).truths;
  }
  reduce_outputs(values, split);
}

}  // namespace rensa::host

namespace rensa::operations {

void Reduce::run_cpu() { host::run_reduce(reduction, axes, compute, in.view, out.view); }

}  // namespace rensa::operations
