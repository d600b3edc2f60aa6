// Softmax over rows on the CPU: the kernels of elementwise operations and reductions, row by row.
#include <algorithm>
#include <cmath>
#include <vector>

#include "rensa/backend/cpu/kernels.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/reduce/cpu_kernels.h"
#include "rensa/operations/softmax/softmax.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kGrain = 8 << 10;  // elements that are worth waking a thread for

// One row: `values` and `powers` have room for it.
template <class V>
void softmax_row(const operations::Softmax& op, const char* in, char* out, std::vector<V>& values,
                 std::vector<V>& powers) {
  constexpr ComputeType kType = compute_type_of<V>;
  const KernelTable& k = kernels();
  Dtype dtype = op.in.view.dtype;
  auto n = static_cast<std::int64_t>(values.size());
  k.load_of(dtype, kType)(n, in, itemsize(dtype), values.data());
  V greatest, sum;
  reduce_kernels().of(reduction::max, kType).leaf(n, values.data(), &greatest);
  for (V& value : values) value -= greatest;
  const void* input[] = {values.data()};
  k.of(ufunc::exp, kType)(n, input, powers.data(), 0);
  reduce_kernels().of(reduction::sum, kType).leaf(n, powers.data(), &sum);
  if (op.log) {
    V log_sum = std::log(sum);
    for (V& value : values) value -= log_sum;
  } else {
    V scale = V(1) / sum;
    for (V& power : powers) power *= scale;
  }
  k.store_of(dtype, kType)(n, op.log ? values.data() : powers.data(), out, itemsize(dtype));
}

template <class V> void softmax(const operations::Softmax& op) {
  std::int64_t rows = op.in.view.shape[0], columns = op.in.view.shape[1];
  std::int64_t row_bytes = columns * itemsize(op.in.view.dtype);
  std::int64_t grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, columns));
  parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<V> values(static_cast<std::size_t>(columns)), powers(values.size());
    for (std::int64_t row = begin; row < end; ++row) {
      softmax_row(op, op.in.view.data + row * row_bytes, op.out.view.data + row * row_bytes, values,
                  powers);
    }
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
