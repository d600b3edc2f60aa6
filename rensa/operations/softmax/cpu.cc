// Softmax over rows on the CPU: the kernels of elementwise operations and reductions, row by row.
#include <algorithm>
#include <cmath>
#include <vector>

#include "rensa/backend/cpu/kernels.h"
#include "rensa/backend/cpu/row_kernels.h"
#include "rensa/backend/cpu/rows.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/reduce/cpu_kernels.h"
#include "rensa/operations/softmax/softmax.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kGrain = 8 << 10;  // elements that are worth waking a thread for

/// Rows of one thread, with room for what comes between.
template <class V> class SoftmaxRows {
 public:
  SoftmaxRows(const operations::Softmax& op, std::int64_t columns)
      : log_(op.log), n_(columns), in_(op.in.view, columns), out_(op.out.view, columns) {
    if (log_) powers_.resize(static_cast<std::size_t>(columns));
  }

  void run(std::int64_t first) {
    const RowKernels<V>& rows = row_kernels<V>();
    const V* in = in_.read(first);
    V *out = out_.target(first), *powers = log_ ? powers_.data() : out, greatest, sum;
    reduce_kernels().of(reduction::max, kType).leaf(n_, in, &greatest);
    rows.subtract(n_, in, greatest, out);
    const void* input[] = {out};
    kernels().of(ufunc::exp, kType)(n_, input, powers, 0);
    reduce_kernels().of(reduction::sum, kType).leaf(n_, powers, &sum);
    if (log_) rows.subtract(n_, out, std::log(sum), out);
    else rows.multiply(n_, out, V(1) / sum, out);
    out_.write(first);
  }

 private:
  static constexpr ComputeType kType = compute_type_of<V>;
  bool log_;
  std::int64_t n_;
  RowReader<V> in_;
  RowWriter<V> out_;
  std::vector<V> powers_;
};

template <class V> void softmax(const operations::Softmax& op) {
  std::int64_t rows = op.in.view.shape[0], columns = op.in.view.shape[1];
  std::int64_t grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, columns));
  parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    SoftmaxRows<V> softmax(op, columns);
    for (std::int64_t row = begin; row < end; ++row) softmax.run(row * columns);
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Softmax::run_cpu() {
  if (out.view.size() == 0) return;
  in.view.dtype == float64 ? host::softmax<double>(*this) : host::softmax<float>(*this);
}

}  // namespace rensa::operations
