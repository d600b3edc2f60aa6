// The gradient of softmax on the CPU: the kernels of elementwise operations and reductions, row by
// row.
#include <algorithm>
#include <vector>

#include "rensa/backend/cpu/kernels.h"
#include "rensa/backend/cpu/row_kernels.h"
#include "rensa/backend/cpu/rows.h"
#include "rensa/core/thread_pool.h"
#include "rensa/functions/operations/softmax_grad/softmax_grad.h"
#include "rensa/operations/reduce/cpu_kernels.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kGrain = 8 << 10;  // elements that are worth waking a thread for

/// Rows of one thread, with room for what comes between.
template <class V> class GradientRows {
 public:
  GradientRows(const operations::SoftmaxGrad& op, std::int64_t columns)
      : log_(op.log),
        n_(columns),
        y_(op.y.view, columns),
        gy_(op.gy.view, columns),
        gx_(op.gx.view, columns) {
    if (log_) powers_.resize(static_cast<std::size_t>(columns));
  }

  void run(std::int64_t first) {
    const RowKernels<V>& rows = row_kernels<V>();
    const V *y = y_.read(first), *gy = gy_.read(first);
    V* gx = gx_.target(first);
    if (log_) {
      V total;
      reduce_kernels().of(reduction::sum, kType).leaf(n_, gy, &total);
      const void* input[] = {y};
      kernels().of(ufunc::exp, kType)(n_, input, powers_.data(), 0);
      rows.subtract_weighted(n_, gy, powers_.data(), total, gx);
    } else {
      rows.weigh(n_, y, gy, rows.dot(n_, gy, y), gx);
    }
    gx_.write(first);
  }

 private:
  static constexpr ComputeType kType = compute_type_of<V>;
  bool log_;
  std::int64_t n_;
  RowReader<V> y_, gy_;
  RowWriter<V> gx_;
  std::vector<V> powers_;
};

template <class V> void softmax_grad(const operations::SoftmaxGrad& op) {
  std::int64_t rows = op.y.view.shape[0], columns = op.y.view.shape[1];
  std::int64_t grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, columns));
  parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    GradientRows<V> gradient(op, columns);
    for (std::int64_t row = begin; row < end; ++row) gradient.run(row * columns);
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void SoftmaxGrad::run_cpu() {
  if (gx.view.size() == 0) return;
  y.view.dtype == float64 ? host::softmax_grad<double>(*this) : host::softmax_grad<float>(*this);
}

}  // namespace rensa::operations
