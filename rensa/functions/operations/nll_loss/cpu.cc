// The negative log-likelihood and its gradient on the CPU.
#include <algorithm>
#include <cstring>
#include <vector>

#include "rensa/core/thread_pool.h"
#include "rensa/device/error_word.h"
#include "rensa/functions/operations/nll_loss/nll_loss.h"
#include "rensa/functions/operations/softmax_cross_entropy/cpu_labels.h"

namespace rensa::host {

namespace {

template <class V> void nll_loss(const operations::NllLoss& op) {
  const ArrayView& x = op.x.view;
  std::int64_t rows = x.shape[0], classes = x.shape[1], counted = 0;
  std::vector<long long> labels = read_labels(op.t.view);
  LoadKernel load = kernels().load_of(x.dtype, compute_type_of<V>);
  double total = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    long long label = labels[static_cast<std::size_t>(i)];
    if (label == op.ignore_label) continue;
    if (label < 0 || label >= classes) {
      throw_reported({ReportedError::label, op.name(), label, classes}, cpu());
    }
    V value;
    load(1, x.data + (i * classes + label) * itemsize(x.dtype), 0, &value);
    total -= static_cast<double>(value);
    ++counted;
  }
  write_number(op.loss.view, static_cast<V>(total / static_cast<double>(counted)));
  write_number(op.count.view, static_cast<V>(counted));
}

template <class V> void nll_loss_grad(const operations::NllLossGrad& op) {
  constexpr std::int64_t kGrain = 8 << 10;  // elements that are worth waking a thread for
  const ArrayView& gx = op.gx.view;
  std::int64_t rows = gx.shape[0], classes = gx.shape[1], size = itemsize(gx.dtype);
  std::vector<long long> labels = read_labels(op.t.view);
  V value = -read_number<V>(op.gy.view) / read_number<V>(op.count.view);
  StoreKernel store = kernels().store_of(gx.dtype, compute_type_of<V>);
  std::int64_t grain = std::max<std::int64_t>(1, kGrain / classes);
  parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t row_bytes = classes * size;
    std::memset(gx.data + begin * row_bytes, 0,
                static_cast<std::size_t>((end - begin) * row_bytes));
    for (std::int64_t i = begin; i < end; ++i) {
      long long label = labels[static_cast<std::size_t>(i)];
      if (label == op.ignore_label || label < 0 || label >= classes) continue;
      store(1, &value, gx.data + i * row_bytes + label * size, size);
    }
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void NllLoss::run_cpu() {
  x.view.dtype == float64 ? host::nll_loss<double>(*this) : host::nll_loss<float>(*this);
}

void NllLossGrad::run_cpu() {
  gx.view.dtype == float64 ? host::nll_loss_grad<double>(*this) : host::nll_loss_grad<float>(*this);
}

}  // namespace rensa::operations
