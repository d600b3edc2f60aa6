// Softmax cross entropy and its gradient on the CPU.
#include "rensa/functions/operations/softmax_cross_entropy/softmax_cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "rensa/backend/cpu/kernels.h"
#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/device/error_word.h"
#include "rensa/functions/operations/softmax_cross_entropy/cpu_labels.h"
#include "rensa/operations/reduce/cpu_kernels.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kGrain = 8 << 10;  // elements that are worth waking a thread for

// Calls f(row, rows) for blocks of rows of about a chunk of elements, on the threads of the pool.
template <class F> void for_each_block(std::int64_t rows, std::int64_t columns, const F& f) {
  std::int64_t width = std::max<std::int64_t>(1, columns);
  std::int64_t block = std::max<std::int64_t>(1, kChunk / width);
  std::int64_t grain = std::max<std::int64_t>(1, kGrain / (block * width)) * block;
  parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; begin += block) f(begin, std::min(block, end - begin));
  });
}

// The shift of the rows [row, row + rows) of x.
template <class V>
void find_shift(const ArrayView& x, const ArrayView& shift, std::int64_t row, std::int64_t rows) {
  constexpr ComputeType kType = compute_type_of<V>;
  const KernelTable& k = kernels();
  std::int64_t columns = x.shape[1], n = rows * columns, size = itemsize(x.dtype);
  std::vector<V> shifted(static_cast<std::size_t>(n)), powers(static_cast<std::size_t>(n));
  k.load_of(x.dtype, kType)(n, x.data + row * columns * size, size, shifted.data());
  V* found = reinterpret_cast<V*>(shift.data) + 2 * row;
  for (std::int64_t r = 0; r < rows; ++r) {
    V* values = shifted.data() + r * columns;
    V greatest;
    reduce_kernels().of(reduction::max, kType).leaf(columns, values, &greatest);
    for (std::int64_t j = 0; j < columns; ++j) values[j] -= greatest;
    found[2 * r] = greatest;
  }
  const void* input[] = {shifted.data()};
  k.of(ufunc::exp, kType)(n, input, powers.data(), 0);
  for (std::int64_t r = 0; r < rows; ++r) {
    V sum;
    reduce_kernels().of(reduction::sum, kType).leaf(columns, powers.data() + r * columns, &sum);
    found[2 * r + 1] = std::log(sum);
  }
}

template <class V> void softmax_cross_entropy(const operations::SoftmaxCrossEntropy& op) {
  const ArrayView &x = op.x.view, &shift = op.shift.view;
  std::int64_t rows = x.shape[0], columns = x.shape[1], counted = 0;
  std::vector<long long> labels = read_labels(op.t.view);
  for (long long label : labels) {
    if (label == op.ignore_label) continue;
    ++counted;
    if (label < 0 || label >= columns) {
      throw_reported({ReportedError::label, op.name(), label, columns}, cpu());
    }
  }
  for_each_block(rows, columns, [&](std::int64_t row, std::int64_t block) {
    find_shift<V>(x, shift, row, block);
  });
  double total = 0;
  const V* found = reinterpret_cast<const V*>(shift.data);
  LoadKernel load = kernels().load_of(x.dtype, compute_type_of<V>);
  for (std::int64_t i = 0; i < rows; ++i) {
    long long label = labels[static_cast<std::size_t>(i)];
    if (label == op.ignore_label) continue;
    V value;
    load(1, x.data + (i * columns + label) * itemsize(x.dtype), 0, &value);
    total -= static_cast<double>(value - found[2 * i] - found[2 * i + 1]);
  }
  std::int64_t count = op.normalize ? std::max<std::int64_t>(1, counted) : rows;
  write_number(op.loss.view, static_cast<V>(total / static_cast<double>(count)));
  write_number(op.count.view, static_cast<float>(count));
}

/// gx of a part of a row: exp(x - greatest - log of the sum), less 1 at the label if it has that,
/// * gy / count.
template <class V>
void weighted_softmax(const V* __restrict x, std::int64_t n, std::int64_t label, const V* shift,
                      V gy, V count, V* __restrict gx) {
  V greatest = shift[0], log_sum = shift[1];
  for (std::int64_t j = 0; j < n; ++j) gx[j] = x[j] - greatest - log_sum;
  const void* input[] = {gx};
  kernels().of(ufunc::exp, compute_type_of<V>)(n, input, gx, 0);
  if (label >= 0 && label < n) gx[label] -= V(1);
  for (std::int64_t j = 0; j < n; ++j) gx[j] = gx[j] * gy / count;
}

template <class V> void softmax_cross_entropy_grad(const operations::SoftmaxCrossEntropyGrad& op) {
  constexpr ComputeType kType = compute_type_of<V>;
  const ArrayView &x = op.x.view, &gx = op.gx.view;
  std::int64_t rows = x.shape[0], columns = x.shape[1], size = itemsize(x.dtype);
  const V* shift = reinterpret_cast<const V*>(op.shift.view.data);
  V gy = read_number<V>(op.gy.view), count = read_number<V>(op.count.view);
  std::vector<long long> labels = read_labels(op.t.view);
  bool as_stored = x.dtype == value_dtype(kType) && gx.dtype == x.dtype;
  LoadKernel load = kernels().load_of(x.dtype, kType);
  StoreKernel store = kernels().store_of(gx.dtype, kType);
  for_each_block(rows, columns, [&](std::int64_t row, std::int64_t block) {
    V loaded[kChunk], made[kChunk];
    for (std::int64_t i = row; i < row + block; ++i) {
      long long label = labels[static_cast<std::size_t>(i)];
      for (std::int64_t at = 0; at < columns; at += kChunk) {
        std::int64_t n = std::min(kChunk, columns - at), first = i * columns + at;
        const V* from = loaded;
        V* to = made;
        if (as_stored) from = x.as<V>() + first, to = gx.as<V>() + first;
        else load(n, x.data + first * size, size, loaded);
        if (label == op.ignore_label) std::fill_n(to, n, V(0));
        else weighted_softmax(from, n, label - at, shift + 2 * i, gy, count, to);
        if (!as_stored) store(n, to, gx.data + first * itemsize(gx.dtype), itemsize(gx.dtype));
      }
    }
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void SoftmaxCrossEntropy::run_cpu() {
  x.view.dtype == float64 ? host::softmax_cross_entropy<double>(*this)
                          : host::softmax_cross_entropy<float>(*this);
}

void SoftmaxCrossEntropyGrad::run_cpu() {
  x.view.dtype == float64 ? host::softmax_cross_entropy_grad<double>(*this)
                          : host::softmax_cross_entropy_grad<float>(*this);
}

}  // namespace rensa::operations
