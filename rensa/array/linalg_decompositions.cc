// Factorizations. LAPACK and cuSOLVER read matrices column by column, so that an array in C order
// is to them its transpose: where that will do, it is copied as it is, and the results read
// likewise.
#include <fmt/format.h>

#include <algorithm>

#include "rensa/array/linalg_internal.h"
#include "rensa/array/sorting.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/linalg/linalg.h"

namespace rensa {

using detail::check_matrices;
using detail::check_square;
using detail::linalg_dtype;
using detail::matrix_batch;
using detail::new_array;
using detail::new_matrices;
using detail::real_dtype;
using detail::unbatch;

namespace {

using operations::Svd;

bool is_upper(const char* operation, char uplo) {
  if (uplo == 'L' || uplo == 'l') return false;
  if (uplo == 'U' || uplo == 'u') return true;
  throw ValueError(fmt::format("{}: uplo has to be 'L' or 'U', not '{}'", operation, uplo));
}

Array conjugated(const Array& a) { return dtype_kind(a.dtype()) == 'c' ? xp::conjugate(a) : a; }

// The identity for each matrix of `a`, (..., n, n).
Array identities(const Array& a, std::int64_t n, Dtype dtype) {
  Shape shape = a.shape();
  shape[a.ndim() - 2] = shape[a.ndim() - 1] = n;
  return xp::eye(n, dtype, a.device()).broadcast_to(shape).copy();
}

// Singular values of nothing, with identities for what else is asked.
xp::linalg::SVDResult empty_svd(const Array& a, Dtype dtype, bool full_matrices, bool compute_uv) {
  std::int64_t m = a.shape(-2), n = a.shape(-1), k = std::min(m, n);
  Shape shape = a.shape();
  shape.erase(a.ndim() - 1);
  shape[a.ndim() - 2] = k;
  xp::linalg::SVDResult result;
  result.S = new_array(shape, real_dtype(dtype), a.device());
  if (!compute_uv) return result;
  auto part = [&](std::int64_t order, bool rows) {
    Array all = identities(a, order, dtype);
    if (full_matrices) return all;
    return rows ? Array(all[{ellipsis, Slice(k), Slice()}]) : Array(all[{ellipsis, Slice(k)}]);
  };
  result.U = part(m, false);
  result.Vh = part(n, true);
  return result;
}

}  // namespace

// With C order the library is given a^T = conj(v) s u^T: its u, read in C order, is v^H, and its vt
// is u. It wants no more columns than rows, so a tall matrix is given as what it is.
xp::linalg::SVDResult detail::svd(const char* operation, const Array& a, bool full_matrices,
                                  bool compute_uv) {
  check_matrices(operation, a);
  Dtype dtype = linalg_dtype(operation, a);
  if (a.size() == 0) return empty_svd(a, dtype, full_matrices, compute_uv);
  refuse_recording(operation, a);
  bool tall = a.shape(-2) > a.shape(-1);
  Array work = matrix_batch(tall ? a.swapaxes(-1, -2) : a, dtype);
  std::int64_t batch = work.shape(0), n = work.shape(1), m = work.shape(2);
  Array s = new_array({batch, n}, real_dtype(dtype), a.device()), u, vt;
  Svd op(operation);
  bool small = batch > 1 && m <= Svd::kJacobiRows;
  op.jacobi = a.device().is_cuda() && (small || (compute_uv && m >= Svd::kLargeJacobiRows));
  op.a = work.operand();
  op.s = s.operand();
  if (compute_uv || op.jacobi) {
    u = new_matrices({batch, full_matrices || (op.jacobi && small) ? m : n, m}, dtype, a.device());
    vt = new_matrices({batch, n, n}, dtype, a.device());
    op.u = u.operand();
    op.vt = vt.operand();
  }
  launch(op);
  xp::linalg::SVDResult result;
  result.S = unbatch(s, a);
  if (!compute_uv) return result;
  if (op.jacobi) {
    vt = conjugated(vt).swapaxes(1, 2);
    if (!full_matrices) u = u[{Slice(), Slice(n)}];
  }
  result.U = unbatch(tall ? u.swapaxes(1, 2) : vt, a);
  result.Vh = unbatch(tall ? vt.swapaxes(1, 2) : u, a);
  return result;
}

// With C order the library is given conj(a), whose triangles have changed places; its eigenvectors
// are the conjugates.
xp::linalg::EigResult detail::eigh(const char* operation, const Array& a, bool upper,
                                   bool vectors) {
  check_square(operation, a);
  Dtype dtype = linalg_dtype(operation, a);
  Array work = matrix_batch(a, dtype);
  Array w = new_array({work.shape(0), work.shape(1)}, real_dtype(dtype), a.device());
  if (a.size() != 0) {
    refuse_recording(operation, a);
    operations::Eigh op(operation);
    op.upper = !upper;
    op.vectors = vectors;
    op.a = work.operand();
    op.w = w.operand();
    launch(op);
  }
  xp::linalg::EigResult result;
  result.eigenvalues = unbatch(w, a);
  if (vectors) result.eigenvectors = unbatch(conjugated(work.swapaxes(1, 2)), a);
  return result;
}

namespace xp::linalg {

namespace {

EigResult general_eig(const char* operation, const Array& a, bool vectors) {
  check_square(operation, a);
  Dtype dtype = rensa::detail::complex_dtype(linalg_dtype(operation, a));
  Array work = matrix_batch(a.swapaxes(-1, -2), dtype);
  Array w = new_array({work.shape(0), work.shape(1)}, dtype, a.device()), v;
  if (vectors) v = new_matrices(work.shape(), dtype, a.device());
  if (a.size() != 0) {
    rensa::detail::refuse_recording(operation, a);
    operations::Eig op(operation);
    op.a = work.operand();
    op.w = w.operand();
    if (vectors) op.v = v.operand();
    launch(op);
  }
  EigResult result;
  result.eigenvalues = unbatch(w, a);
  if (vectors) result.eigenvectors = unbatch(v.swapaxes(1, 2), a);
  return result;
}

}  // namespace

Array cholesky(const Array& a, bool upper) {
  const char* name = "linalg.cholesky";
  check_square(name, a);
  // In C order the lower triangle is to the library the upper one, which cuSOLVER factors in twice
  // the time of a lower one.
  bool turned = a.device().is_cuda() && !upper;
  Array work = matrix_batch(turned ? a.swapaxes(-1, -2) : a, linalg_dtype(name, a));
  if (a.size() != 0) {
    rensa::detail::refuse_recording(name, a);
    operations::CholeskyFactor op(name);
    op.upper = !upper && !turned;
    op.a = work.operand();
    launch(op);
  }
  Array factor = turned ? work.swapaxes(1, 2) : work;
  return unbatch(upper ? xp::triu(factor) : xp::tril(factor), a);
}

QRResult qr(const Array& a, QrMode mode) {
  const char* name = "linalg.qr";
  check_matrices(name, a);
  Dtype dtype = linalg_dtype(name, a);
  Array work = matrix_batch(a.swapaxes(-1, -2), dtype);
  std::int64_t batch = work.shape(0), n = work.shape(1), m = work.shape(2), k = std::min(m, n);
  std::int64_t columns = mode == QrMode::complete ? m : k;
  QRResult result;
  if (a.size() == 0) {
    // Nothing to reflect: Q is the identity, R nothing.
    Shape shape = a.shape();
    shape[a.ndim() - 2] = columns;
    result.R = new_array(shape, dtype, a.device());
    if (mode != QrMode::r) result.Q = identities(a, m, dtype)[{ellipsis, Slice(columns)}];
    rensa::detail::fill_elements(name, result.R, 0);
    return result;
  }
  rensa::detail::refuse_recording(name, a);
  Array tau = new_array({batch, k}, dtype, a.device());
  operations::QrFactor factor(name);
  factor.a = work.operand();
  factor.tau = tau.operand();
  launch(factor);
  Array upper = work.swapaxes(1, 2)[{Slice(), Slice(columns)}];
  result.R = unbatch(xp::triu(upper), a);
  if (mode == QrMode::r) return result;
  Array q = new_matrices({batch, columns, m}, dtype, a.device());
  rensa::detail::copy_elements(name, work[{Slice(), Slice(k)}], q[{Slice(), Slice(k)}]);
  if (columns > k) rensa::detail::fill_elements(name, q[{Slice(), Slice(k, columns)}], 0);
  operations::QrForm form(name);
  form.q = q.operand();
  form.tau = tau.operand();
  launch(form);
  result.Q = unbatch(q.swapaxes(1, 2), a);
  return result;
}

QRResult qr(const Array& a, std::string_view mode) {
  if (mode == "reduced") return qr(a, QrMode::reduced);
  if (mode == "complete") return qr(a, QrMode::complete);
  if (mode == "r") return qr(a, QrMode::r);
  throw ValueError(fmt::format(
      "linalg.qr: mode \"{}\" is not one of \"reduced\", \"complete\" and \"r\"", mode));
}

SVDResult svd(const Array& a, bool full_matrices, bool compute_uv) {
  return rensa::detail::svd("linalg.svd", a, full_matrices, compute_uv);
}
SVDResult svd(const Array& a, const SVDOptions& options) {
  const char* name = "linalg.svd";
  if (!options.hermitian) {
    return rensa::detail::svd(name, a, options.full_matrices, options.compute_uv);
  }
  // a = V diag(w) V^H: the singular values are the |w|, falling, and w's signs go into U.
  EigResult parts = rensa::detail::eigh(name, a, false, options.compute_uv);
  Array order = xp::argsort(xp::negative(xp::absolute(parts.eigenvalues)));
  Array values = xp::take_along_axis(parts.eigenvalues, order, -1);
  SVDResult result;
  result.S = xp::absolute(values);
  if (!options.compute_uv) return result;
  Array vectors = xp::take_along_axis(parts.eigenvectors, order.expand_dims(-2), -1);
  result.U = vectors;
  Array signs = xp::where(xp::less(values, 0), -1, xp::ones_like(values));
  result.Vh = xp::conjugate(xp::multiply(vectors, signs.expand_dims(-2))).swapaxes(-1, -2);
  return result;
}
Array svdvals(const Array& a) { return rensa::detail::svd("linalg.svdvals", a, false, false).S; }

EigResult eigh(const Array& a, char uplo) {
  return rensa::detail::eigh("linalg.eigh", a, is_upper("linalg.eigh", uplo), true);
}
Array eigvalsh(const Array& a, char uplo) {
  bool upper = is_upper("linalg.eigvalsh", uplo);
  return rensa::detail::eigh("linalg.eigvalsh", a, upper, false).eigenvalues;
}

EigResult eig(const Array& a) { return general_eig("linalg.eig", a, true); }
Array eigvals(const Array& a) { return general_eig("linalg.eigvals", a, false).eigenvalues; }

}  // namespace xp::linalg

}  // namespace rensa
