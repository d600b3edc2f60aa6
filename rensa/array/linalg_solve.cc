// Equations and what comes from the LU factors, and the least squares that singular values solve.
#include <fmt/format.h>

#include <algorithm>

#include "rensa/array/linalg_internal.h"
#include "rensa/array/ufuncs/arithmetic.h"
#include "rensa/array/ufuncs/signs.h"
#include "rensa/core/error.h"
#include "rensa/device/error_word.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/linalg/linalg.h"

namespace rensa {

using detail::check_matrices;
using detail::check_square;
using detail::linalg_dtype;
using detail::matrix_batch;
using detail::new_array;
using detail::real_dtype;
using detail::unbatch;

namespace {

using operations::LuSolve;

constexpr std::int64_t kBatchedRows = 256;  // up to here a GPU factors the matrices side by side

// Where the row exchanges go; their dtype chooses the way (LuSolve).
Array pivots_for(const Array& work) {
  bool batched = work.shape(0) > 1 && work.shape(1) <= kBatchedRows;
  Dtype dtype = work.device().is_cpu() || batched ? int32 : int64;
  return new_array({work.shape(0), work.shape(1)}, dtype, work.device());
}

void launch_lu(LuSolve& op, const Array& work, const Array& pivots, const Array* b) {
  detail::refuse_recording(op.name(), work);
  op.a = work.operand();
  op.pivots = pivots.operand();
  if (b) op.b = b->operand();
  launch(op);
}

struct LuFactors {
  Array work, pivots;  // (batch, n, n), (batch, n)
};

LuFactors lu(const char* operation, const Array& a) {
  check_square(operation, a);
  Array work = matrix_batch(a, linalg_dtype(operation, a));
  Array pivots = pivots_for(work);
  if (a.size() == 0) return {work, pivots};
  LuSolve op(operation);
  op.singular_is_error = false;
  launch_lu(op, work, pivots, nullptr);
  return {work, pivots};
}

// 1 or -1 for each matrix: whether its exchanges are even in number.
Array exchange_sign(const LuFactors& factors) {
  Array own =
      xp::arange(1, factors.work.shape(1) + 1, 1, factors.pivots.dtype(), factors.work.device());
  Array odd = xp::remainder(xp::sum(xp::not_equal(factors.pivots, own), 1), 2);
  return xp::subtract(1, xp::multiply(odd, 2)).astype(real_dtype(factors.work.dtype()));
}

}  // namespace

Array detail::inverse(const char* operation, const Array& a, bool check) {
  check_square(operation, a);
  Array work = matrix_batch(a, linalg_dtype(operation, a));
  if (a.size() == 0) return unbatch(work, a);
  // The library is given a^T and gives a^-T, which in C order is a^-1.
  Array result = xp::eye(work.shape(1), work.dtype(), a.device()).broadcast_to(work.shape()).copy();
  LuSolve op(operation);
  op.singular_is_error = check;
  launch_lu(op, work, pivots_for(work), &result);
  return unbatch(result, a);
}

Array detail::solve(const char* operation, const Array& a, const Array& b) {
  check_square(operation, a);
  check_defined(operation, b);
  check_same_device(operation, a, b);
  bool vector = b.ndim() == 1;
  bool fits = b.ndim() > 0 && b.shape(vector ? 0 : -2) == a.shape(-1);
  if (!fits) {
    throw ShapeError(fmt::format("{}: {} has no right-hand sides for {}", operation,
                                 b.view().describe(), a.view().describe()));
  }
  Dtype dtype = promote_types(linalg_dtype(operation, a), linalg_dtype(operation, b));
  Array right = vector ? b.expand_dims(1) : b;
  Shape a_leading = a.shape(), b_leading = right.shape();
  for (int i = 0; i < 2; ++i) {
    a_leading.erase(a_leading.ndim() - 1);
    b_leading.erase(b_leading.ndim() - 1);
  }
  Shape a_shape = broadcast_shapes(operation, a_leading, b_leading), b_shape = a_shape;
  for (std::int64_t extent : {a.shape(-2), a.shape(-1)}) a_shape.push_back(extent);
  for (std::int64_t extent : {right.shape(-2), right.shape(-1)}) b_shape.push_back(extent);
  Array stretched = right.broadcast_to(b_shape);
  Array result = matrix_batch(stretched.swapaxes(-1, -2), dtype);
  if (result.size() != 0) {
    Array work = matrix_batch(a.broadcast_to(a_shape), dtype);
    LuSolve op(operation);
    op.transposed = true;  // C order
    launch_lu(op, work, pivots_for(work), &result);
  }
  result = unbatch(result.swapaxes(1, 2), stretched);
  return vector ? result.squeeze(-1) : result;
}

namespace xp::linalg {

Array solve(const Array& a, const Array& b) { return rensa::detail::solve("linalg.solve", a, b); }
Array inv(const Array& a) { return rensa::detail::inverse("linalg.inv", a, true); }

Array det(const Array& a) {
  LuFactors factors = lu("linalg.det", a);
  Array product = xp::prod(diagonal(factors.work), -1);
  return unbatch(xp::multiply(product, exchange_sign(factors)), a);
}

SlogdetResult slogdet(const Array& a) {
  LuFactors factors = lu("linalg.slogdet", a);
  Array values = diagonal(factors.work), sizes = xp::absolute(values);
  Array signs;
  if (dtype_kind(values.dtype()) == 'c') {
    // Where a value is 0 so is the sign.
    signs = xp::divide(values, xp::where(xp::equal(sizes, 0), xp::ones_like(sizes), sizes));
  } else {
    signs = xp::sign(values);
  }
  Array sign = xp::multiply(xp::prod(signs, -1), exchange_sign(factors));
  return {unbatch(sign, a), unbatch(xp::sum(xp::log(sizes), -1), a)};
}

LstsqResult lstsq(const Array& a, const Array& b, std::optional<double> rcond) {
  const char* name = "linalg.lstsq";
  check_matrices(name, a);
  rensa::detail::check_defined(name, b);
  check_same_device(name, a, b);
  bool vector = b.ndim() == 1;
  if (a.ndim() != 2 || b.ndim() > 2 || b.ndim() == 0 || b.shape(0) != a.shape(0)) {
    throw ShapeError(fmt::format("{}: {} and {} are no matrix with its right-hand sides", name,
                                 a.view().describe(), b.view().describe()));
  }
  Dtype dtype = promote_types(linalg_dtype(name, a), linalg_dtype(name, b));
  Array right = (vector ? b.expand_dims(1) : b).astype(dtype, false);
  std::int64_t m = a.shape(0), n = a.shape(1);
  SVDResult parts = rensa::detail::svd(name, a.astype(dtype, false), false, true);
  LstsqResult result;
  result.s = parts.S;
  Array x = xp::zeros({n, right.shape(1)}, dtype, a.device());
  if (parts.S.size() != 0) {
    double limit =
        rcond.value_or(rensa::detail::epsilon_of(dtype) * static_cast<double>(std::max(m, n)));
    // Negative: epsilon, as LAPACK has it.
    if (limit < 0) limit = rensa::detail::epsilon_of(dtype);
    Array large = xp::greater(parts.S, xp::multiply(xp::max(parts.S), limit));
    Array inverse = xp::where(large, xp::reciprocal(parts.S), 0);
    Array scaled =
        xp::multiply(xp::matmul(xp::conjugate(parts.U).transpose(), right), inverse.expand_dims(1));
    x = xp::matmul(xp::conjugate(parts.Vh).transpose(), scaled);
    // Infinities in `a` leave no singular values.
    Array rank = xp::where(xp::isnan(xp::max(parts.S)), -1, xp::sum(large));
    result.rank = rank.item<std::int64_t>();
    if (result.rank < 0) throw_reported({ReportedError::not_converged, name, 0, 1}, a.device());
  }
  result.x = vector ? x.squeeze(1) : x;
  if (result.rank == n && m > n) {
    Array miss = xp::absolute(xp::subtract(right, xp::matmul(a.astype(dtype, false), x)));
    result.residuals = xp::sum(xp::square(miss), 0);
  } else {
    result.residuals = new_array({0}, real_dtype(dtype), a.device());
  }
  return result;
}

Array Tolerance::values(const Array& like) const {
  if (array_) {
    rensa::detail::check_defined("linalg", *array_);
    check_same_device("linalg", like, *array_);
    return (*array_).astype(like.dtype(), false).expand_dims(-1);
  }
  return xp::full({}, *number_, like.dtype(), like.device());
}

Array Tolerance::times(const Array& scale) const {
  return array_ ? xp::multiply(scale, values(scale)) : xp::multiply(scale, *number_);
}

Array pinv(const Array& a, double rcond, bool hermitian) {
  return pinv(a, PinvOptions{.rcond = rcond, .hermitian = hermitian});
}

Array pinv(const Array& a, const PinvOptions& options) {
  const char* name = "linalg.pinv";
  if (options.rcond.given() && options.rtol.given()) {
    throw ValueError("linalg.pinv: rcond and rtol are one thing; give one of them");
  }
  Tolerance share = options.rtol.given()    ? options.rtol
                    : options.rcond.given() ? options.rcond
                                            : Tolerance(1e-15);
  check_matrices(name, a);
  Dtype dtype = linalg_dtype(name, a);
  if (a.size() == 0) return new_array(a.swapaxes(-1, -2).shape(), dtype, a.device());
  Array left, values, right;  // a = left diag(values) right^H
  if (options.hermitian) {
    EigResult parts = rensa::detail::eigh(name, a, false, true);
    left = right = parts.eigenvectors;
    values = parts.eigenvalues;
  } else {
    SVDResult parts = rensa::detail::svd(name, a, false, true);
    left = parts.U;
    right = xp::conjugate(parts.Vh).swapaxes(-1, -2);
    values = parts.S;
  }
  Array sizes = xp::absolute(values);
  Array large = xp::greater(sizes, share.times(xp::max(sizes, -1, true)));
  Array inverse = xp::where(large, xp::reciprocal(values), 0);
  return xp::matmul(xp::multiply(right, inverse.expand_dims(-2)),
                    xp::conjugate(left).swapaxes(-1, -2));
}

Array matrix_rank(const Array& a, double tol, bool hermitian) {
  return matrix_rank(a, MatrixRankOptions{.tol = tol, .hermitian = hermitian});
}
Array matrix_rank(const Array& a, const MatrixRankOptions& options) {
  const char* name = "linalg.matrix_rank";
  rensa::detail::check_defined(name, a);
  if (options.tol.given() && options.rtol.given()) {
    throw ValueError("linalg.matrix_rank: give tol or rtol, not both");
  }
  if (a.ndim() < 2) return xp::any(xp::not_equal(a, 0)).astype(int64);
  Array sizes = options.hermitian
                    ? xp::absolute(rensa::detail::eigh(name, a, false, false).eigenvalues)
                    : rensa::detail::svd(name, a, false, false).S;
  if (sizes.size() == 0) return xp::sum(xp::greater(sizes, 0), -1);
  if (options.tol.given()) return xp::sum(xp::greater(sizes, options.tol.values(sizes)), -1);
  double relative = static_cast<double>(std::max(a.shape(-1), a.shape(-2))) *
                    rensa::detail::epsilon_of(sizes.dtype());
  Tolerance share = options.rtol.given() ? options.rtol : Tolerance(relative);
  return xp::sum(xp::greater(sizes, share.times(xp::max(sizes, -1, true))), -1);
}

Array tensorsolve(const Array& a, const Array& b, AxisList axes) {
  const char* name = "linalg.tensorsolve";
  rensa::detail::check_defined(name, a);
  rensa::detail::check_defined(name, b);
  Shape order;
  for (int i = 0; i < a.ndim(); ++i) order.push_back(i);
  if (axes.given()) {
    for (std::int64_t axis : axes.values()) {
      std::int64_t moved = normalize_axis(name, axis, a.ndim());
      order.erase(static_cast<int>(std::find(order.begin(), order.end(), moved) - order.begin()));
      order.push_back(moved);
    }
  }
  Array arranged = a.transpose(order);
  Shape shape;
  for (int i = b.ndim(); i < a.ndim(); ++i) shape.push_back(arranged.shape()[i]);
  std::int64_t n = shape.total();
  if (b.ndim() > a.ndim() || n * n != a.size()) {
    throw ShapeError(
        fmt::format("{}: the last {} axes of {} have to hold as many elements as the "
                    "first {}",
                    name, a.ndim() - b.ndim(), a.view().describe(), b.ndim()));
  }
  return rensa::detail::solve(name, arranged.reshape({n, n}), b.ravel()).reshape(shape);
}

Array tensorinv(const Array& a, int ind) {
  const char* name = "linalg.tensorinv";
  rensa::detail::check_defined(name, a);
  if (ind <= 0 || ind > a.ndim()) {
    throw ValueError(fmt::format("{}: ind is {} for {}", name, ind, a.view().describe()));
  }
  Shape rows, columns;
  for (int i = 0; i < a.ndim(); ++i) (i < ind ? rows : columns).push_back(a.shape()[i]);
  Shape shape = columns;
  for (std::int64_t extent : rows) shape.push_back(extent);
  return rensa::detail::inverse(name, a.reshape({rows.total(), columns.total()}), true)
      .reshape(shape);
}

}  // namespace xp::linalg

}  // namespace rensa
