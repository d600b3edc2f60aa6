// Products by CBLAS. The library computes each call in the calling thread, and the pool's threads
// share out the columns or rows of c: that is faster than the library's own threads at the sizes of
// a training step, and lets several threads of the program compute products at once.
#include "rensa/operations/matmul/cpu_blas.h"

#if RENSA_BLAS
#include <cblas.h>

#include <algorithm>
#include <complex>
#include <limits>
#include <type_traits>
#include <vector>

#include "rensa/core/thread_pool.h"

// Only OpenBLAS has them.
extern "C" void openblas_set_num_threads(int) __attribute__((weak));
extern "C" char* openblas_get_config() __attribute__((weak));

namespace rensa::host {

namespace {

constexpr double kParallelWork = 200e3;  // multiplications that are worth a second thread

/// Columns or rows of c, `extent` in all, of one call. The library's sums depend on where a call
/// begins, so that borders follow from the shape alone and not from the number of threads. Each
/// part packs what the others pack too, which takes some percent of parts of 128.
std::int64_t part_of(std::int64_t extent) {
  return std::clamp<std::int64_t>(extent / 8 / 16 * 16, 128, 1024);
}

// Other libraries keep their own threads, and are called once for the whole product.
bool is_single_threaded() {
  static const bool single = [] {
    if (&openblas_set_num_threads == nullptr) return false;
    openblas_set_num_threads(1);
    return true;
  }();
  return single;
}

// A row-major matrix, or the transpose of one.
struct Operand {
  char* data;
  int leading = 0;
  bool transposed = false;

  // Whether `m`, of these extents, is one, with numbers that the library's integers hold.
  bool assign(const Matrix& m, std::int64_t rows, std::int64_t columns, std::int64_t size) {
    auto fits = [size](std::int64_t stride, std::int64_t dense, std::int64_t count,
                       std::int64_t width) {
      return (dense == size || width <= 1) && (count <= 1 || stride >= width * size) &&
             stride % size == 0 && stride / size <= std::numeric_limits<int>::max();
    };
    data = m.data;
    bool plain = fits(m.row_stride, m.column_stride, rows, columns);
    transposed = !plain;
    if (!plain && !fits(m.column_stride, m.row_stride, columns, rows)) return false;
    std::int64_t stride = plain ? m.row_stride : m.column_stride;
    leading = static_cast<int>(std::max({stride / size, plain ? columns : rows, std::int64_t{1}}));
    return true;
  }
  CBLAS_TRANSPOSE order() const { return transposed ? CblasTrans : CblasNoTrans; }
};

void call(Dtype dtype, int m, int n, int k, const Operand& a, const Operand& b, const Operand& c) {
  auto run = [&](auto function, auto type, auto alpha, auto beta) {
    using T = decltype(type);
    function(CblasRowMajor, a.order(), b.order(), m, n, k, alpha,
             reinterpret_cast<const T*>(a.data), a.leading, reinterpret_cast<const T*>(b.data),
             b.leading, beta, reinterpret_cast<T*>(c.data), c.leading);
  };
  constexpr float one_c[2] = {1, 0}, zero_c[2] = {0, 0};
  constexpr double one_z[2] = {1, 0}, zero_z[2] = {0, 0};
  switch (dtype) {
    case Dtype::float32: return run(cblas_sgemm, 0.0f, 1.0f, 0.0f);
    case Dtype::float64: return run(cblas_dgemm, 0.0, 1.0, 0.0);
    case Dtype::complex64: return run(cblas_cgemm, 0.0f, &one_c[0], &zero_c[0]);
    default: return run(cblas_zgemm, 0.0, &one_z[0], &zero_z[0]);
  }
}

// One row or one column: c = matrix @ x, of which matrices' products would pack the matrix first,
// which takes longer than to read it once.
struct MatrixVector {
  const Operand& matrix;
  int rows, columns;  // of the matrix
  const char* x;
  int x_step;
  char* y;
  int y_step;

  void call(Dtype dtype) const {
    auto run = [&](auto function, auto type, auto one) {
      using T = decltype(type);
      auto* out = reinterpret_cast<T*>(y);
      // Added to zeros: times 0, what the memory held before could be NaN.
      for (std::int64_t i = 0; i < rows; ++i) out[i * y_step] = T();
      bool turned = matrix.transposed;  // what lies in memory
      const auto* in = reinterpret_cast<const T*>(x);
      int step = x_step;
      std::vector<T> padded;
      if constexpr (!std::is_floating_point_v<T>) {
        // OpenBLAS 0.3.21 (Debian 12) reads one element behind them, its issue 4013.
        padded.resize(static_cast<std::size_t>(columns) + 1);
        for (std::int64_t i = 0; i < columns; ++i) {
          padded[static_cast<std::size_t>(i)] = in[i * x_step];
        }
        in = padded.data(), step = 1;
      }
      function(CblasRowMajor, matrix.order(), turned ? columns : rows, turned ? rows : columns, one,
               reinterpret_cast<const T*>(matrix.data), matrix.leading, in, step, one, out, y_step);
    };
    constexpr float one_c[2] = {1, 0};
    constexpr double one_z[2] = {1, 0};
    switch (dtype) {
      case Dtype::float32: return run(cblas_sgemv, 0.0f, 1.0f);
      case Dtype::float64: return run(cblas_dgemv, 0.0, 1.0);
      case Dtype::complex64: return run(cblas_cgemv, std::complex<float>(), &one_c[0]);
      default: return run(cblas_zgemv, std::complex<double>(), &one_z[0]);
    }
  }
};

}  // namespace

bool blas_gemm(Dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a,
               const Matrix& b, const Matrix& c) {
  char kind = dtype_kind(dtype);
  if ((kind != 'f' && kind != 'c') || itemsize(dtype) == 2) return false;
  std::int64_t size = itemsize(dtype);
  Operand left, right, result;
  bool fits = left.assign(a, m, k, size) && right.assign(b, k, n, size) &&
              result.assign(c, m, n, size) && !result.transposed &&
              std::max({m, n, k}) <= std::numeric_limits<int>::max();
  if (!fits) return false;
  double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  bool by_columns = n >= m;
  std::int64_t extent = by_columns ? n : m;
  bool cut = is_single_threaded() && work >= kParallelWork;
  std::int64_t part = cut ? part_of(extent) : std::max<std::int64_t>(extent, 1);
  auto compute = [&](std::int64_t begin, std::int64_t end) {
    auto count = static_cast<int>(end - begin);
    Operand p = left, q = right, r = result;
    (by_columns ? q : p).data += begin * (by_columns ? b.column_stride : a.row_stride);
    r.data += begin * (by_columns ? c.column_stride : c.row_stride);
    auto steps = [size](std::int64_t stride) {  // of one element any will do
      return static_cast<int>(std::max<std::int64_t>(stride / size, 1));
    };
    auto vector = [&](const Operand& matrix, const char* x, std::int64_t x_stride,
                      std::int64_t y_stride) {
      MatrixVector{matrix, count, static_cast<int>(k), x, steps(x_stride), r.data, steps(y_stride)}
          .call(dtype);
    };
    if (m == 1) {
      q.transposed = !q.transposed;  // c's row is b's transpose @ a's
      return vector(q, p.data, a.column_stride, c.column_stride);
    }
    if (n == 1) return vector(p, q.data, b.row_stride, c.row_stride);
    call(dtype, by_columns ? static_cast<int>(m) : count, by_columns ? count : static_cast<int>(n),
         static_cast<int>(k), p, q, r);
  };
  parallel_for((extent + part - 1) / part, 1, [&](std::int64_t first, std::int64_t last) {
    for (; first < last; ++first) compute(first * part, std::min(extent, (first + 1) * part));
  });
  return true;
}

std::string blas_description() {
  if (&openblas_get_config == nullptr) return "a CBLAS that does not tell its name";
  return openblas_get_config();
}

}  // namespace rensa::host

#else

namespace rensa::host {
bool blas_gemm(Dtype, std::int64_t, std::int64_t, std::int64_t, const Matrix&, const Matrix&,
               const Matrix&) {
  return false;
}
std::string blas_description() {
  return "none in this build (configure with RENSA_BLAS=ON); products are the project's own";
}
}  // namespace rensa::host

#endif

namespace rensa::host {

void multiply(Dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a,
              const Matrix& b, const Matrix& c) {
  std::int64_t size = itemsize(dtype);
  if (c.column_stride != size && c.row_stride == size) {  // the transpose of it is row-major
    auto turned = [](const Matrix& x) { return Matrix{x.data, x.column_stride, x.row_stride}; };
    return multiply(dtype, n, m, k, turned(b), turned(a), turned(c));
  }
  bool own = gemm_is_fast() && (dtype == float32 || dtype == float64);
  if (own || !blas_gemm(dtype, m, n, k, a, b, c)) gemm(dtype, m, n, k, a, b, c);
}

}  // namespace rensa::host
