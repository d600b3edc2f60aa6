// The gradient of softmax on the CPU: the kernels of elementwise operations and reductions, row by
// row.
#include <algorithm>
#include <vector>

#include "rensa/backend/cpu/kernels.h"
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
      : op_(op),
        n_(columns),
        y_(static_cast<std::size_t>(columns)),
        g_(y_.size()),
        product_(y_.size()) {}

  void run(std::int64_t offset) {
    const KernelTable& k = kernels();
    Dtype dtype = op_.y.view.dtype;
    k.load_of(dtype, kType)(n_, op_.y.view.data + offset, itemsize(dtype), y_.data());
    k.load_of(dtype, kType)(n_, op_.gy.view.data + offset, itemsize(dtype), g_.data());
    V total;
    if (op_.log) {
      reduce_kernels().of(reduction::sum, kType).leaf(n_, g_.data(), &total);
      const void* input[] = {y_.data()};
      k.of(ufunc::exp, kType)(n_, input, product_.data(), 0);
      for (std::size_t i = 0; i < y_.size(); ++i) g_[i] -= product_[i] * total;
    } else {
      for (std::size_t i = 0; i < y_.size(); ++i) product_[i] = g_[i] * y_[i];
      reduce_kernels().of(reduction::sum, kType).leaf(n_, product_.data(), &total);
      for (std::size_t i = 0; i < y_.size(); ++i) g_[i] = y_[i] * (g_[i] - total);
    }
    k.store_of(dtype, kType)(n_, g_.data(), op_.gx.view.data + offset, itemsize(dtype));
  }

 private:
  static constexpr ComputeType kType = compute_type_of<V>;
  const operations::SoftmaxGrad& op_;
  std::int64_t n_;
  std::vector<V> y_, g_, product_;
};

template <class V> void softmax_grad(const operations::SoftmaxGrad& op) {
  std::int64_t rows = op.y.view.shape[0], columns = op.y.view.shape[1];
  std::int64_t row_bytes = columns * itemsize(op.y.view.dtype);
  std::int64_t grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, columns));
  parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    GradientRows<V> gradient(op, columns);
    for (std::int64_t row = begin; row < end; ++row) gradient.run(row * row_bytes);
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
