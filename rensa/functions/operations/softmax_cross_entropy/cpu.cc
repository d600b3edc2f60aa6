// Softmax cross entropy and its gradient on the CPU.
#include "rensa/functions/operations/softmax_cross_entropy/softmax_cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "rensa/backend/cpu/kernels.h"
#include "rensa/backend/cpu/row_kernels.h"
#include "rensa/backend/cpu/rows.h"
#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/device/error_word.h"
#include "rensa/functions/operations/softmax_cross_entropy/cpu_labels.h"
#include "rensa/operations/reduce/cpu_kernels.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kGrain = 8 << 10;  // elements that are worth waking a thread for

// Calls f(row, rows) for blocks of rows of about a chunk of elements, on the threads of the pool;
// f is made for each piece of work by make(the most rows of a block).
template <class Make>
void for_each_block(std::int64_t rows, std::int64_t columns, const Make& make) {
  std::int64_t width = std::max<std::int64_t>(1, columns);
  std::int64_t block = std::max<std::int64_t>(1, kChunk / width);
  std::int64_t grain = std::max<std::int64_t>(1, kGrain / (block * width)) * block;
  parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    auto f = make(block);
    for (; begin < end; begin += block) f(begin, std::min(block, end - begin));
  });
}

/// Finds the shifts of rows, of up to `most` at once.
template <class V> class ShiftRows {
 public:
  ShiftRows(const ArrayView& x, const ArrayView& shift, std::int64_t most)
      : columns_(x.shape[1]),
        shift_(reinterpret_cast<V*>(shift.data)),
        x_(x, most * columns_),
        powers_(static_cast<std::size_t>(most * columns_)) {}

  void operator()(std::int64_t row, std::int64_t rows) {
    const V* x = x_.read(row * columns_, rows * columns_);
    V *found = shift_ + 2 * row, *powers = powers_.data();
    for (std::int64_t r = 0; r < rows; ++r) {
      reduce_kernels().of(reduction::max, kType).leaf(columns_, x + r * columns_, &found[2 * r]);
      row_kernels<V>().subtract(columns_, x + r * columns_, found[2 * r], powers + r * columns_);
    }
    const void* input[] = {powers};
    kernels().of(ufunc::exp, kType)(rows * columns_, input, powers, 0);
    for (std::int64_t r = 0; r < rows; ++r) {
      V sum;
      reduce_kernels().of(reduction::sum, kType).leaf(columns_, powers + r * columns_, &sum);
      found[2 * r + 1] = std::log(sum);
    }
  }

 private:
  static constexpr ComputeType kType = compute_type_of<V>;
  std::int64_t columns_;
  V* shift_;
  RowReader<V> x_;
  std::vector<V> powers_;
};

/// What the loss is divided by.
template <class Op> std::int64_t divisor(const Op& op, const std::vector<long long>& labels) {
  auto rows = static_cast<std::int64_t>(labels.size());
  if (!op.normalize) return rows;
  return std::max<std::int64_t>(1, rows - std::ranges::count(labels, op.ignore_label));
}

template <class V> void softmax_cross_entropy(const operations::SoftmaxCrossEntropy& op) {
  const ArrayView &x = op.x.view, &shift = op.shift.view;
  std::int64_t rows = x.shape[0], columns = x.shape[1];
  std::vector<long long> labels = read_labels(op.t.view);
  for (long long label : labels) {
    if (label == op.ignore_label) continue;
    if (label < 0 || label >= columns) {
      throw_reported({ReportedError::label, op.name(), label, columns}, cpu());
    }
  }
  for_each_block(rows, columns, [&](std::int64_t most) { return ShiftRows<V>(x, shift, most); });
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
  std::int64_t count = divisor(op, labels);
  write_number(op.loss.view, static_cast<V>(total / static_cast<double>(count)));
  write_number(op.count.view, static_cast<float>(count));
}

/// gx of a part of a row: exp(x - greatest - log of the sum), less 1 at the label if it has that,
/// * gy / count.
template <class V>
void weighted_softmax(const V* x, std::int64_t n, std::int64_t label, const V* shift, V gy, V count,
                      V* gx) {
  V greatest = shift[0], log_sum = shift[1];
  const RowKernels<V>& rows = row_kernels<V>();
  rows.subtract(n, x, greatest, gx);
  rows.subtract(n, gx, log_sum, gx);
  const void* input[] = {gx};
  kernels().of(ufunc::exp, compute_type_of<V>)(n, input, gx, 0);
  if (label >= 0 && label < n) gx[label] -= V(1);
  rows.scale(n, gx, gy, count, gx);
}

template <class V> void softmax_cross_entropy_grad(const operations::SoftmaxCrossEntropyGrad& op) {
  constexpr ComputeType kType = compute_type_of<V>;
  const ArrayView &x = op.x.view, &gx = op.gx.view;
  std::int64_t rows = x.shape[0], columns = x.shape[1], size = itemsize(x.dtype);
  V gy = read_number<V>(op.gy.view), count;
  std::vector<long long> labels = read_labels(op.t.view);
  std::vector<V> found;
  ArrayView shifts = op.shift.view;
  if (op.shift.present()) {
    count = read_number<V>(op.count.view);
  } else {
    count = static_cast<V>(divisor(op, labels));
    found.resize(static_cast<std::size_t>(2 * rows));
    shifts.data = reinterpret_cast<char*>(found.data());
    for_each_block(rows, columns, [&](std::int64_t most) { return ShiftRows<V>(x, shifts, most); });
  }
  const V* shift = reinterpret_cast<const V*>(shifts.data);
  bool as_stored = x.dtype == value_dtype(kType) && gx.dtype == x.dtype;
  LoadKernel load = kernels().load_of(x.dtype, kType);
  StoreKernel store = kernels().store_of(gx.dtype, kType);
  auto find = [&](std::int64_t row, std::int64_t block) {
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
  };
  for_each_block(rows, columns, [&](std::int64_t) { return find; });
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
