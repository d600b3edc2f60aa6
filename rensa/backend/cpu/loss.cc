// Softmax cross entropy, accuracy and the gradient of bias and relu on the CPU.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "rensa/backend/cpu/convert.h"
#include "rensa/backend/cpu/elementwise.h"
#include "rensa/backend/cpu/kernel_sources.h"
#include "rensa/backend/cpu/reduce.h"
#include "rensa/backend/cpu/strided.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_pool.h"
#include "rensa/device/operations.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kGrain = 8 << 10;  // elements that are worth waking a thread for

std::vector<long long> read_labels(const ArrayView& t) {
  std::vector<long long> labels(static_cast<std::size_t>(t.size()));
  kernels().load_of(t.dtype, ComputeType::i64)(t.size(), t.data, itemsize(t.dtype), labels.data());
  return labels;
}

template <class V> V read_number(const ArrayView& view) {
  V value;
  kernels().load_of(view.dtype, compute_type_of<V>)(1, view.data, 0, &value);
  return value;
}

template <class V> void write_number(const ArrayView& view, V value) {
  kernels().store_of(view.dtype, compute_type_of<V>)(1, &value, view.data, 0);
}

// Calls f(row, rows) for blocks of rows of about a chunk of elements, on the threads of the pool.
template <class F> void for_each_block(std::int64_t rows, std::int64_t columns, const F& f) {
  std::int64_t width = std::max<std::int64_t>(1, columns);
  std::int64_t block = std::max<std::int64_t>(1, kChunk / width);
  std::int64_t grain = std::max<std::int64_t>(1, kGrain / (block * width)) * block;
  parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; begin += block) f(begin, std::min(block, end - begin));
  });
}

// y = log softmax of the rows [row, row + rows) of x.
template <class V>
void log_softmax(const ArrayView& x, const ArrayView& y, std::int64_t row, std::int64_t rows) {
  constexpr ComputeType kType = compute_type_of<V>;
  const KernelTable& k = kernels();
  std::int64_t columns = x.shape[1], n = rows * columns, size = itemsize(x.dtype);
  std::vector<V> shifted(static_cast<std::size_t>(n)), powers(static_cast<std::size_t>(n));
  k.load_of(x.dtype, kType)(n, x.data + row * columns * size, size, shifted.data());
  for (std::int64_t r = 0; r < rows; ++r) {
    V* values = shifted.data() + r * columns;
    V greatest;
    k.of(Reduction::max, kType).leaf(columns, values, &greatest);
    for (std::int64_t j = 0; j < columns; ++j) values[j] -= greatest;
  }
  const void* input[] = {shifted.data()};
  k.of(Ufunc::exp, kType)(n, input, powers.data());
  for (std::int64_t r = 0; r < rows; ++r) {
    V* values = shifted.data() + r * columns;
    V sum;
    k.of(Reduction::sum, kType).leaf(columns, powers.data() + r * columns, &sum);
    V log_sum = std::log(sum);
    for (std::int64_t j = 0; j < columns; ++j) values[j] -= log_sum;
  }
  k.store_of(y.dtype, kType)(n, shifted.data(), y.data + row * columns * size, size);
}

template <class V> void softmax_cross_entropy(const SoftmaxCrossEntropy& op) {
  const ArrayView &x = op.x.view, &y = op.y.view;
  std::int64_t rows = x.shape[0], columns = x.shape[1], counted = 0;
  std::vector<long long> labels = read_labels(op.t.view);
  for (long long label : labels) {
    if (label == op.ignore_label) continue;
    ++counted;
    if (label < 0 || label >= columns) {
      throw IndexError(
          fmt::format("{}: label {} is out of bounds for {} classes", op.name(), label, columns));
    }
  }
  for_each_block(rows, columns,
                 [&](std::int64_t row, std::int64_t block) { log_softmax<V>(x, y, row, block); });
  double total = 0;
  LoadKernel load = kernels().load_of(y.dtype, compute_type_of<V>);
  for (std::int64_t i = 0; i < rows; ++i) {
    long long label = labels[static_cast<std::size_t>(i)];
    if (label == op.ignore_label) continue;
    V value;
    load(1, y.data + (i * columns + label) * itemsize(y.dtype), 0, &value);
    total -= static_cast<double>(value);
  }
  std::int64_t count = op.normalize ? std::max<std::int64_t>(1, counted) : rows;
  write_number(op.loss.view, static_cast<V>(total / static_cast<double>(count)));
  write_number(op.count.view, static_cast<float>(count));
}

template <class V> void softmax_cross_entropy_grad(const SoftmaxCrossEntropyGrad& op) {
  constexpr ComputeType kType = compute_type_of<V>;
  const ArrayView &y = op.y.view, &gx = op.gx.view;
  std::int64_t rows = y.shape[0], columns = y.shape[1], size = itemsize(y.dtype);
  V gy = read_number<V>(op.gy.view), count = read_number<V>(op.count.view);
  std::vector<long long> labels = read_labels(op.t.view);
  for_each_block(rows, columns, [&](std::int64_t row, std::int64_t block) {
    std::int64_t n = block * columns;
    std::vector<V> g(static_cast<std::size_t>(n));
    kernels().load_of(y.dtype, kType)(n, y.data + row * columns * size, size, g.data());
    const void* input[] = {g.data()};
    kernels().of(Ufunc::exp, kType)(n, input, g.data());
    for (std::int64_t i = 0; i < block; ++i) {
      V* values = g.data() + i * columns;
      long long label = labels[static_cast<std::size_t>(row + i)];
      bool ignored = label == op.ignore_label;
      if (!ignored) values[label] -= V(1);
      for (std::int64_t j = 0; j < columns; ++j) {
        values[j] = ignored ? V(0) : values[j] * gy / count;
      }
    }
    kernels().store_of(gx.dtype, kType)(n, g.data(), gx.data + row * columns * itemsize(gx.dtype),
                                        itemsize(gx.dtype));
  });
}

void accuracy(const Accuracy& op) {
  std::vector<long long> labels = read_labels(op.t.view);
  std::vector<long long> found(labels.size());
  auto n = static_cast<std::int64_t>(found.size());
  ArrayView positions = {reinterpret_cast<char*>(found.data()),
                         int64,
                         op.y.view.device,
                         {n, 1},
                         {sizeof(long long), sizeof(long long)}};
  run_reduce(Reduction::argmax, 1u << 1, op.y.view.dtype, op.y.view, positions);
  std::int64_t right = 0, counted = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (op.has_ignore_label && labels[i] == op.ignore_label) continue;
    ++counted;
    right += labels[i] == found[i];
  }
  double share = counted ? static_cast<double>(right) / static_cast<double>(counted) : 0;
  write_number(op.accuracy.view, share);
}

}  // namespace

}  // namespace rensa::host

namespace rensa {

void SoftmaxCrossEntropy::run_cpu() {
  x.view.dtype == float64 ? host::softmax_cross_entropy<double>(*this)
                          : host::softmax_cross_entropy<float>(*this);
}

void SoftmaxCrossEntropyGrad::run_cpu() {
  y.view.dtype == float64 ? host::softmax_cross_entropy_grad<double>(*this)
                          : host::softmax_cross_entropy_grad<float>(*this);
}

void Accuracy::run_cpu() { host::accuracy(*this); }

void ReluBiasGrad::run_cpu() {
  host::Input inputs[] = {gy.view, y.view};
  host::run_elementwise(Ufunc::relu_grad, gz.view.dtype, inputs, 2, gz.view);
  ArrayView sums = gb.view;
  sums.shape.insert(0, 1);
  sums.strides.insert(0, 0);
  host::run_reduce(Reduction::sum, 1u << 0, gz.view.dtype, gz.view, sums);
}

}  // namespace rensa
