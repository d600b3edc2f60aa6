// Layer and RMS normalization on the CPU, row by row.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "rensa/backend/cpu/kernels.h"
#include "rensa/backend/cpu/row_kernels.h"
#include "rensa/backend/cpu/rows.h"
#include "rensa/core/thread_pool.h"
#include "rensa/functions/operations/row_normalization/row_normalization.h"
#include "rensa/operations/reduce/cpu_kernels.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

namespace {

using operations::RowNormalization;
using operations::RowNormalizationGrad;

constexpr std::int64_t kGrain = 8 << 10;  // elements that are worth waking a thread for

/// All of an operand; n times `absent` where there is none.
template <class V> std::vector<V> weights(const Operand& from, std::int64_t n, V absent) {
  std::vector<V> values(static_cast<std::size_t>(n), absent);
  if (from.present()) {
    Dtype dtype = from.view.dtype;
    kernels().load_of(dtype, compute_type_of<V>)(n, from.view.data, itemsize(dtype), values.data());
  }
  return values;
}

/// Calls f(row, the row's first element) for each row; f is made on each thread by make().
template <class Make> void each_row(std::int64_t rows, std::int64_t columns, const Make& make) {
  parallel_for(rows, std::max<std::int64_t>(1, kGrain / columns),
               [&](std::int64_t begin, std::int64_t end) {
                 auto f = make();
                 for (std::int64_t row = begin; row < end; ++row) f(row, row * columns);
               });
}

/// The rows of x, or of x + addend, which are written to `sum` first.
template <class V> class RowsToNormalize {
 public:
  RowsToNormalize(const RowNormalization& op, std::int64_t n) : n_(n), x_(op.x.view, n) {
    if (op.addend.present()) sum_.emplace(op, n);
  }
  const V* read(std::int64_t first) {
    const V* x = x_.read(first);
    if (!sum_) return x;
    V* sum = sum_->writer.target(first);
    std::copy_n(x, n_, sum);
    row_kernels<V>().add(n_, sum_->addend.read(first), sum);
    sum_->writer.write(first);
    return sum_->reader.read(first);
  }

 private:
  struct Sum {
    RowReader<V> addend, reader;
    RowWriter<V> writer;
    Sum(const RowNormalization& op, std::int64_t n)
        : addend(op.addend.view, n), reader(op.sum.view, n), writer(op.sum.view, n) {}
  };
  std::int64_t n_;
  RowReader<V> x_;
  std::optional<Sum> sum_;
};

template <class V> void normalize_rows(const RowNormalization& op) {
  std::int64_t rows = op.x.view.shape[0], n = op.x.view.shape[1];
  std::vector<V> gamma = weights(op.gamma, n, V(1)), beta = weights(op.beta, n, V(0));
  const RowKernels<V>& k = row_kernels<V>();
  each_row(rows, n, [&] {
    return [&, reader = RowsToNormalize<V>(op, n), writer = RowWriter<V>(op.y.view, n)](
               std::int64_t row, std::int64_t first) mutable {
      const V* x = reader.read(first);
      V mean = V(0);
      if (op.mean.present()) {
        reduce_kernels().of(reduction::sum, compute_type_of<V>).leaf(n, x, &mean);
        op.mean.view.as<V>()[row] = mean = mean / V(n);
      }
      V scale = V(1) / std::sqrt(k.squares(n, x, mean) / V(n) + V(op.eps));
      op.inv_std.view.as<V>()[row] = scale;
      k.normalize(n, x, mean, scale, gamma.data(), beta.data(), writer.target(first));
      writer.write(first);
    };
  });
}

template <class V> void normalize_rows_grad(const RowNormalizationGrad& op) {
  std::int64_t rows = op.x.view.shape[0], n = op.x.view.shape[1];
  std::vector<V> gamma = weights(op.gamma, n, V(1));
  const RowKernels<V>& k = row_kernels<V>();
  each_row(rows, n, [&] {
    return [&, x = RowReader<V>(op.x.view, n), gy = RowReader<V>(op.gy.view, n),
            gx = RowWriter<V>(op.gx.view, n), written = RowReader<V>(op.gx.view, n),
            addend = RowReader<V>(op.addend.present() ? op.addend.view : op.gx.view, n)](
               std::int64_t row, std::int64_t first) mutable {
      bool centered = op.mean.present();
      V mean = centered ? op.mean.view.as<V>()[row] : V(0);
      k.normalize_grad(n, x.read(first), gy.read(first), mean, op.inv_std.view.as<V>()[row],
                       gamma.data(), centered, gx.target(first));
      gx.write(first);
      if (!op.addend.present()) return;
      // To what is rounded now.
      V* sum = gx.target(first);
      const V* rounded = written.read(first);
      if (rounded != sum) std::copy_n(rounded, n, sum);
      k.add(n, addend.read(first), sum);
      gx.write(first);
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
