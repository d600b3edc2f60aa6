// Correlation and interpolation on the CPU.
#include <algorithm>
#include <vector>

#include "rensa/backend/cpu/kernels.h"
#include "rensa/backend/cpu/strided.h"
#include "rensa/core/functors.h"
#include "rensa/core/interpolation.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/elementwise/cpu_elementwise.h"
#include "rensa/operations/signal/signal.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kBlock = 1024;         // outputs that are summed side by side
constexpr std::int64_t kProducts = 64 << 10;  // products that are worth waking a thread for
constexpr std::int64_t kPoints = 4 << 10;     // interpolated points, likewise

// The elements of `in` as values at `values`.
template <class V> void read_values(const ArrayView& in, ComputeType type, V* values) {
  ArrayView out = in;
  out.data = reinterpret_cast<char*>(values);
  out.dtype = value_dtype(type);
  out.strides = contiguous_strides(in.shape, itemsize(out.dtype));
  Input input = in;
  run_elementwise(ufunc::copy, in.dtype, &input, 1, out);
}

template <class V> void correlate(const operations::Correlate& op, ComputeType type) {
  std::int64_t n = op.out.view.size(), count = op.taps.view.size(), size = op.in.view.size();
  std::vector<V> in(static_cast<std::size_t>(size)), taps(static_cast<std::size_t>(count));
  read_values(op.in.view, type, in.data());
  read_values(op.taps.view, type, taps.data());
  StoreKernel store = kernels().store_of(op.out.view.dtype, type);
  std::int64_t stride = op.out.view.strides[0];
  std::int64_t grain = std::max<std::int64_t>(kProducts / count, 64);
  parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
    V sums[kBlock];
    for (; begin < end; begin += kBlock) {
      std::int64_t block = std::min(kBlock, end - begin);
      std::fill_n(sums, block, V(0));
      for (std::int64_t j = 0; j < count; ++j) {
        // Only outputs that meet an element with this tap: 0 beside `in`, times NaN, would be NaN.
        std::int64_t shift = begin + j - op.offset;
        std::int64_t first = std::max<std::int64_t>(0, -shift),
                     last = std::min(block, size - shift);
        if (first >= last) continue;
        const V* shifted = in.data() + (shift + first);
        V tap = taps[static_cast<std::size_t>(j)], *into = sums + first;
        for (std::int64_t i = 0; i < last - first; ++i) into[i] = into[i] + shifted[i] * tap;
      }
      store(block, sums, op.out.view.data + begin * stride, stride);
    }
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Correlate::run_cpu() {
  ComputeType type = compute_type(compute);
  switch (type) {
    case ComputeType::i64: return host::correlate<long long>(*this, type);
    case ComputeType::u64: return host::correlate<unsigned long long>(*this, type);
    case ComputeType::f32: return host::correlate<float>(*this, type);
    case ComputeType::f64: return host::correlate<double>(*this, type);
    case ComputeType::c64: return host::correlate<complex_t<float>>(*this, type);
    case ComputeType::c128: return host::correlate<complex_t<double>>(*this, type);
  }
}

void Interpolate::run_cpu() {
  std::int64_t n = points.view.size(), width = dtype_kind(out.view.dtype) == 'c' ? 2 : 1;
  const auto* at = points.view.as<const double>();
  const auto* y = values.view.as<const double>();
  const auto* in = x.view.as<const double>();
  auto* to = out.view.as<double>();
  double first[] = {has_before ? before.real() : y[0], has_before ? before.imag() : y[width - 1]};
  const double* end = y + (n - 1) * width;
  double last[] = {has_after ? after.real() : end[0], has_after ? after.imag() : end[width - 1]};
  parallel_for(x.view.size(), host::kPoints, [&](std::int64_t begin, std::int64_t stop) {
    for (std::int64_t i = begin; i < stop; ++i) {
      bool nan = in[i] != in[i] && n > 1;  // one point has one value
      std::int64_t k = nan ? 0 : find_interval(at, n, in[i]);
      for (std::int64_t c = 0; c < width; ++c) {
        double value = nan ? in[i] : k < 0 ? first[c] : last[c];
        if (nan && c == 1) value = 0;
        if (!nan && k >= 0 && k < n) value = interpolate(at, y + c, n, width, k, in[i]);
        to[i * width + c] = value;
      }
    }
  });
}

}  // namespace rensa::operations
