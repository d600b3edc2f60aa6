// The loops over rows, for one instruction set.
#include "rensa/backend/cpu/row_kernels.h"

#include "rensa/backend/cpu/kernel_sources.h"

namespace rensa::host::RENSA_SET {

namespace {

using Int = std::int64_t;

/// The sums of what f(k, terms) gives for k = 0 to n - 1, in the order of reduce_lanes.
template <int N, class V, class F> RENSA_FN void sum_lanes(Int n, const F& f, V (&sums)[N]) {
  constexpr int L = kLanes<V>;
  V lanes[N][L] = {};
  auto take = [&](Int k, int l) {
    V terms[N];
    f(k, terms);
    for (int t = 0; t < N; ++t) lanes[t][l] += terms[t];
  };
  Int k = 0;
  for (; k + L <= n; k += L) {
    for (int l = 0; l < L; ++l) take(k + l, l);
  }
  for (int l = 0; k + l < n; ++l) take(k + l, l);
  for (int t = 0; t < N; ++t) {
    for (int width = L / 2; width > 0; width /= 2) {
      for (int l = 0; l < width; ++l) lanes[t][l] += lanes[t][l + width];
    }
    sums[t] = lanes[t][0];
  }
}

template <class V> void subtract(Int n, const V* x, V by, V* out) {
  RENSA_IVDEP
  for (Int k = 0; k < n; ++k) out[k] = x[k] - by;
}
template <class V> void multiply(Int n, const V* x, V by, V* out) {
  RENSA_IVDEP
  for (Int k = 0; k < n; ++k) out[k] = x[k] * by;
}
template <class V> void scale(Int n, const V* x, V by, V divisor, V* out) {
  RENSA_IVDEP
  for (Int k = 0; k < n; ++k) out[k] = x[k] * by / divisor;
}
template <class V> void add(Int n, const V* x, V* out) {
  RENSA_IVDEP
  for (Int k = 0; k < n; ++k) out[k] += x[k];
}
template <class V> V dot(Int n, const V* a, const V* b) {
  V sum[1];
  sum_lanes(
      n, [=](Int k, V* term) { *term = a[k] * b[k]; }, sum);
  return sum[0];
}
template <class V> void weigh(Int n, const V* weights, const V* x, V by, V* out) {
  RENSA_IVDEP
  for (Int k = 0; k < n; ++k) out[k] = weights[k] * (x[k] - by);
}
template <class V> void subtract_weighted(Int n, const V* x, const V* weights, V by, V* out) {
  RENSA_IVDEP
  for (Int k = 0; k < n; ++k) out[k] = x[k] - weights[k] * by;
}

template <class V> V squares(Int n, const V* x, V mean) {
  V sum[1];
  sum_lanes(
      n, [=](Int k, V* term) { *term = (x[k] - mean) * (x[k] - mean); }, sum);
  return sum[0];
}
template <class V>
void normalize(Int n, const V* x, V mean, V scale, const V* gamma, const V* beta, V* out) {
  RENSA_IVDEP
  for (Int k = 0; k < n; ++k) out[k] = (x[k] - mean) * scale * gamma[k] + beta[k];
}
template <class V>
void normalize_grad(Int n, const V* x, const V* gy, V mean, V scale, const V* gamma, bool centered,
                    V* out) {
  V sums[2];
  auto terms_of = [=](Int k, V* terms) {
    terms[0] = gy[k] * gamma[k];
    terms[1] = terms[0] * ((x[k] - mean) * scale);
  };
  sum_lanes(n, terms_of, sums);
  V share = centered ? sums[0] / V(n) : V(0), along = sums[1] / V(n);
  RENSA_IVDEP
  for (Int k = 0; k < n; ++k) {
    out[k] = scale * (gy[k] * gamma[k] - (share + (x[k] - mean) * scale * along));
  }
}
template <class V>
void add_normalized(Int n, const V* x, const V* gy, V mean, V scale, V* sums, V* products) {
  RENSA_IVDEP
  for (Int k = 0; k < n; ++k) {
    sums[k] += gy[k];
    products[k] += gy[k] * ((x[k] - mean) * scale);
  }
}

template <class V> RowKernels<V> make_row_kernels() {
  return {subtract<V>,      multiply<V>,          scale<V>,   add<V>,       dot<V>,
          weigh<V>,         subtract_weighted<V>, squares<V>, normalize<V>, normalize_grad<V>,
          add_normalized<V>};
}

}  // namespace

void get_row_kernels(RowKernels<float>& f, RowKernels<double>& d) {
  f = make_row_kernels<float>();
  d = make_row_kernels<double>();
}

}  // namespace rensa::host::RENSA_SET
