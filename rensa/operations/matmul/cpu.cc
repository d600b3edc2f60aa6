// Matmul on the CPU: batches of products, and what follows them (scale, bias, activation) while the
// result is still in the cache.
#include <algorithm>
#include <complex>
#include <numeric>
#include <vector>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/elementwise/cpu_elementwise.h"
#include "rensa/operations/matmul/cpu_blas.h"
#include "rensa/operations/matmul/cpu_gemm.h"
#include "rensa/operations/matmul/matmul.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kSmallProduct = 1 << 20;  // multiplications of one thread's share of a batch
constexpr std::int64_t kElementCost = 8;         // of reading an element, in multiplications
constexpr std::int64_t kPart = 64 << 10;         // products of one sum that are worth a thread

struct Extents {
  std::int64_t m, n, k;
};

Matrix matrix_at(const ArrayView& view, const ArrayView& leading, std::int64_t index) {
  int n = view.ndim();
  return {view.data + offset_of(leading, index), view.strides[n - 2], view.strides[n - 1]};
}

// The axes before the last two.
ArrayView leading_axes(ArrayView view) {
  for (int i = 0; i < 2; ++i) {
    view.shape.erase(view.ndim() - 1);
    view.strides.erase(view.strides.ndim() - 1);
  }
  return view;
}

// A long sum: the threads sum parts of it, whose sums are added in their order.
template <class T>
void dot_in_parts(Dtype dtype, std::int64_t k, const Matrix& a, const Matrix& b, T* c) {
  std::int64_t parts = (k + kPart - 1) / kPart;
  std::vector<T> sums(static_cast<std::size_t>(parts));
  parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t first = i * kPart;
      Matrix left = a, right = b;
      left.data += first * a.column_stride;
      right.data += first * b.row_stride;
      multiply(dtype, 1, 1, std::min(kPart, k - first), left, right,
               {reinterpret_cast<char*>(&sums[static_cast<std::size_t>(i)]), sizeof(T), sizeof(T)});
    }
  });
  *c = std::accumulate(sums.begin(), sums.end(), T(0));
}

void multiply_one(Dtype dtype, const Extents& e, const Matrix& a, const Matrix& b,
                  const Matrix& c) {
  auto dot = [&](auto zero) {
    dot_in_parts(dtype, e.k, a, b, reinterpret_cast<decltype(zero)*>(c.data));
  };
  bool is_long = e.m == 1 && e.n == 1 && e.k >= 2 * kPart;
  if (is_long && dtype == float32) return dot(float());
  if (is_long && dtype == float64) return dot(double());
  if (is_long && dtype == complex64) return dot(std::complex<float>());
  if (is_long && dtype == complex128) return dot(std::complex<double>());
  multiply(dtype, e.m, e.n, e.k, a, b, c);
}

void multiply_batch(const operations::Matmul& op, const Extents& e) {
  const ArrayView &a = op.a.view, &b = op.b.view, &c = op.c.view;
  ArrayView outer_a = leading_axes(a), outer_b = leading_axes(b), outer_c = leading_axes(c);
  std::int64_t batch = outer_c.size();
  // Small products are shared out whole; of large ones each is shared out.
  std::int64_t work = e.m * e.n * e.k, cost = work + kElementCost * e.k * (e.m + e.n);
  bool small = work < kSmallProduct && batch > 1;
  std::int64_t grain = small ? std::max<std::int64_t>(1, kSmallProduct / cost) : batch;
  parallel_for(batch, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      multiply_one(c.dtype, e, matrix_at(a, outer_a, i), matrix_at(b, outer_b, i),
                   matrix_at(c, outer_c, i));
    }
  });
}

void scale(const ArrayView& c, double alpha) {
  Input inputs[] = {c, Scalar(alpha)};
  run_elementwise(ufunc::multiply, c.dtype, inputs, 2, c);
}

// c = activation(c + bias), either of them left out where it is not asked for.
void finish(const ArrayView& c, const ArrayView* bias, operations::Activation activation) {
  bool has_activation = activation != operations::Activation::none;
  Ufunc function = activation == operations::Activation::tanh ? ufunc::tanh : ufunc::relu;
  ComputeType type = compute_type(c.dtype);
  int last = c.ndim() - 1;
  bool plain = c.dtype == value_dtype(type) && (!bias || bias->is_c_contiguous()) &&
               (c.strides[last] == itemsize(c.dtype) || c.shape[last] == 1);
  if (!plain) {
    if (bias) {
      ArrayView row = broadcast_view(*bias, c.shape);
      Input inputs[] = {c, row};
      run_elementwise(ufunc::add, c.dtype, inputs, 2, c);
    }
    Input input = c;
    if (has_activation) run_elementwise(function, c.dtype, &input, 1, c);
    return;
  }
  std::int64_t columns = c.shape[last], rows = c.size() / columns;
  ArrayView first_column = c;
  first_column.shape[last] = 1;
  ElementwiseKernel add = kernels().of(ufunc::add, type), activate = kernels().of(function, type);
  std::int64_t grain = std::max<std::int64_t>(1, (32 << 10) / columns);
  parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; ++begin) {
      char* row = c.data + offset_of(first_column, begin);
      const void* inputs[] = {row, bias ? bias->data : nullptr};
      if (bias) add(columns, inputs, row, 0);
      if (has_activation) activate(columns, inputs, row, 0);
    }
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Matmul::run_cpu() {
  const ArrayView& out = c.view;
  if (out.size() == 0) return;
  int last = out.ndim() - 1;
  host::Extents extents = {out.shape[last - 1], out.shape[last], a.view.shape[last]};
  if (extents.k == 0) {
    host::Input zero = Scalar(0);
    host::run_elementwise(ufunc::copy, out.dtype, &zero, 1, out);
  } else {
    host::multiply_batch(*this, extents);
    if (alpha != 1) host::scale(out, alpha);
  }
  if (bias.present() || activation != Activation::none) {
    host::finish(out, bias.present() ? &bias.view : nullptr, activation);
  }
  if (gate.present()) {
    host::Input inputs[] = {out, gate.view};
    host::run_elementwise(ufunc::relu_grad, out.dtype, inputs, 2, out);
  }
}

}  // namespace rensa::operations
