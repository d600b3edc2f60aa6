// Layer and RMS normalization on the CPU, row by row.
#include <algorithm>
#include <cmath>
#include <vector>

#include "rensa/backend/cpu/kernels.h"
#include "rensa/core/thread_pool.h"
#include "rensa/functions/operations/row_normalization/row_normalization.h"
#include "rensa/operations/reduce/cpu_kernels.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

namespace {

using operations::RowNormalization;
using operations::RowNormalizationGrad;

constexpr std::int64_t kGrain = 8 << 10;  // elements that are worth waking a thread for

template <class V> using Values = std::vector<V>;

template <class V> void load(const Operand& from, std::int64_t first, Values<V>& to) {
  Dtype dtype = from.view.dtype;
  kernels().load_of(dtype, compute_type_of<V>)(static_cast<std::int64_t>(to.size()),
                                               from.view.data + first * itemsize(dtype),
                                               itemsize(dtype), to.data());
}
template <class V> void store(const Values<V>& from, const Operand& to, std::int64_t first) {
  Dtype dtype = to.view.dtype;
  kernels().store_of(dtype, compute_type_of<V>)(static_cast<std::int64_t>(from.size()), from.data(),
                                                to.view.data + first * itemsize(dtype),
                                                itemsize(dtype));
}
template <class V> Values<V> weights(const Operand& from, std::size_t n, V absent) {
  Values<V> values(n, absent);
  if (from.present()) load(from, 0, values);
  return values;
}
template <class V> V sum(Reduction reduction, const Values<V>& values) {
  V result;
  reduce_kernels()
      .of(reduction, compute_type_of<V>)
      .leaf(static_cast<std::int64_t>(values.size()), values.data(), &result);
  return result;
}

/// Calls f(row, the row's first element) for each row; f is made on each thread by make().
template <class Make> void each_row(std::int64_t rows, std::int64_t columns, const Make& make) {
  parallel_for(rows, std::max<std::int64_t>(1, kGrain / columns),
               [&](std::int64_t begin, std::int64_t end) {
                 auto f = make();
                 for (std::int64_t row = begin; row < end; ++row) f(row, row * columns);
               });
}

template <class V> void normalize_rows(const RowNormalization& op) {
  std::int64_t rows = op.x.view.shape[0], columns = op.x.view.shape[1];
  auto n = static_cast<std::size_t>(columns);
  Values<V> gamma = weights(op.gamma, n, V(1)), beta = weights(op.beta, n, V(0));
  each_row(rows, columns, [&] {
    return [&, x = Values<V>(n)](std::int64_t row, std::int64_t first) mutable {
      load(op.x, first, x);
      if (op.mean.present()) {
        V mean = sum(reduction::sum, x) / V(columns);
        for (V& value : x) value -= mean;
        op.mean.view.as<V>()[row] = mean;
      }
      V scale = V(1) / std::sqrt(sum(reduction::sum_of_squares, x) / V(columns) + V(op.eps));
      op.inv_std.view.as<V>()[row] = scale;
      for (std::size_t k = 0; k < n; ++k) x[k] = x[k] * scale * gamma[k] + beta[k];
      store(x, op.y, first);
    };
  });
}

template <class V> void normalize_rows_grad(const RowNormalizationGrad& op) {
  std::int64_t rows = op.x.view.shape[0], columns = op.x.view.shape[1];
  auto n = static_cast<std::size_t>(columns);
  Values<V> gamma = weights(op.gamma, n, V(1));
  each_row(rows, columns, [&] {
    return [&, x = Values<V>(n), g = Values<V>(n), product = Values<V>(n)](
               std::int64_t row, std::int64_t first) mutable {
      load(op.x, first, x), load(op.gy, first, g);
      V mean = op.mean.present() ? op.mean.view.as<V>()[row] : V(0);
      V inv_std = op.inv_std.view.as<V>()[row];
      for (std::size_t k = 0; k < n; ++k) {
        g[k] *= gamma[k];
        x[k] = (x[k] - mean) * inv_std;
        product[k] = g[k] * x[k];
      }
      V share = op.mean.present() ? sum(reduction::sum, g) / V(columns) : V(0);
      V along = sum(reduction::sum, product) / V(columns);
      for (std::size_t k = 0; k < n; ++k) g[k] = inv_std * (g[k] - (share + x[k] * along));
      store(g, op.gx, first);
    };
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void RowNormalization::run_cpu() {
  if (x.view.size() == 0) return;
  inv_std.view.dtype == float64 ? host::normalize_rows<double>(*this)
                                : host::normalize_rows<float>(*this);
}

void RowNormalizationGrad::run_cpu() {
  if (x.view.size() == 0) return;
  inv_std.view.dtype == float64 ? host::normalize_rows_grad<double>(*this)
                                : host::normalize_rows_grad<float>(*this);
}

}  // namespace rensa::operations
