// Linear algebra: the products of namespace xp beside matmul and dot (routines.h), and xp::linalg.
//
// Factorizations work on the last two axes, all others being a batch. They compute in the dtype of
// their operand (bool and integers in float64); float16 and bfloat16 throw DtypeError, shapes that
// do not fit ShapeError. A matrix that cannot be factored (singular, not positive definite, no
// convergence) throws LinAlgError: on the CPU at once, on a GPU at the next wait. On the CPU they
// need a build with RENSA_BLAS. What waits for the device says so.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "rensa/array/axis_list.h"
#include "rensa/array/routines.h"

namespace rensa::xp {

// --- products ---
/// The sum of conj(a) * b over all elements, both flattened: 0-d.
[[nodiscard]] Array vdot(const Array& a, const Array& b);
/// Sums of products over the last axes of both.
[[nodiscard]] Array inner(const Array& a, const Array& b);
/// a[i] * b[j] of the flattened operands: (a.size(), b.size()).
Array outer(const Array& a, const Array& b, const ProductOptions& options = {});
/// Sums of products over the last `axes` axes of `a` and the first of `b`.
[[nodiscard]] Array tensordot(const Array& a, const Array& b, int axes = 2);
/// Sums of products over a_axes[i] of `a` and b_axes[i] of `b`, for all i.
[[nodiscard]] Array tensordot(const Array& a, const Array& b, const Shape& a_axes,
                              const Shape& b_axes);
/// Kronecker's product.
[[nodiscard]] Array kron(const Array& a, const Array& b);
/// The sum of conj(a) * b along one axis, the others broadcast.
[[nodiscard]] Array vecdot(const Array& a, const Array& b, int axis = -1);
Array vecdot(const Array& a, const Array& b, const MatmulOptions& options);
/// (..., m, n) times (..., n), and (..., n), conjugated, times (..., n, m).
Array matvec(const Array& a, const Array& x, const MatmulOptions& options = {});
/// (..., n), conjugated, times (..., n, m).
Array vecmat(const Array& x, const Array& a, const MatmulOptions& options = {});

// --- einsum ---
/// Einstein's sums in NumPy's notation: einsum("ij,jk->ik", {a, b}), with "..." for broadcast axes,
/// repeated labels for diagonals, and without "->" the labels that stand once, sorted. Several
/// operands are contracted in pairs, the pair with the smallest result first, as matrix products
/// where labels are summed over. One operand without sums gives a view. Throws ValueError for
/// subscripts that say nothing or do not fit the operands, ShapeError for extents that do not.
struct EinsumOptions {
  rensa::detail::NamedOptions named = {};
  ArrayOption out = {};               // of the result's shape; what the call returns
  std::optional<Dtype> dtype = {};    // what to compute in, and so the result's
  std::string_view casting = "safe";  // of the operands to `dtype`, of the result to `out`
};
Array einsum(std::string_view subscripts, const ArrayList& operands,
             const EinsumOptions& options = {});
template <class... Operands>
requires(sizeof...(Operands) > 0 && (std::convertible_to<const Operands&, Array> && ...)) Array
    einsum(std::string_view subscripts, const Operands&... operands) {
  return einsum(subscripts, ArrayList({Array(operands)...}));
}

}  // namespace rensa::xp

namespace rensa::xp::linalg {

using xp::matmul;
using xp::outer;
using xp::tensordot;
using xp::vecdot;

// --- products and views ---
/// a multiplied with itself n - 1 times; the inverse's power for n < 0, the identity for 0.
[[nodiscard]] Array matrix_power(const Array& a, std::int64_t n);
/// The product of all arrays, in the order that takes the fewest multiplications; the first and the
/// last may be vectors.
Array multi_dot(const ArrayList& arrays, const ProductOptions& options = {});
/// A view with the last two axes exchanged.
[[nodiscard]] Array matrix_transpose(const Array& a);
/// A view of the diagonals of the last two axes; `offset` > 0 lies above the main one.
[[nodiscard]] Array diagonal(const Array& a, std::int64_t offset = 0);
/// The array API's keywords of linalg.trace.
struct TraceOptions {
  rensa::detail::NamedOptions named = {};
  std::int64_t offset = 0;  // > 0 lies above the main diagonal
  std::optional<Dtype> dtype = {};
};
/// Their sums, in `dtype` or in what xp::sum gives.
[[nodiscard]] Array trace(const Array& a, std::int64_t offset = 0);
Array trace(const Array& a, const TraceOptions& options);

// --- factorizations ---
/// L with a = L @ L^H, of the lower triangle of `a`; `upper`: U with a = U^H @ U, of the upper one.
[[nodiscard]] Array cholesky(const Array& a, bool upper = false);

struct QRResult {
  Array Q, R;
};
enum class QrMode { reduced, complete, r };  // which factors qr gives, and of what size
/// a = Q @ R: (m, k) and (k, n) with k = min(m, n), or `complete` (m, m) and (m, n). With `r` there
/// is no Q.
[[nodiscard]] QRResult qr(const Array& a, QrMode mode = QrMode::reduced);
/// "reduced", "complete" or "r". Throws ValueError.
[[nodiscard]] QRResult qr(const Array& a, std::string_view mode);

struct SVDResult {
  Array U, S, Vh;
};
/// a = U @ diag(S) @ Vh with S falling; U (m, m) and Vh (n, n), or (m, k) and (k, n) without
/// `full_matrices`. Without `compute_uv` there is S alone.
[[nodiscard]] SVDResult svd(const Array& a, bool full_matrices = true, bool compute_uv = true);
struct SVDOptions {
  rensa::detail::NamedOptions named = {};
  bool full_matrices = true, compute_uv = true;
  bool hermitian = false;  // a is Hermitian: by its eigenvalues
};
[[nodiscard]] SVDResult svd(const Array& a, const SVDOptions& options);
[[nodiscard]] Array svdvals(const Array& a);  // the singular values alone, falling

struct EigResult {
  /// In the columns of eigenvectors are those of the values, in their order.
  Array eigenvalues, eigenvectors;
};
/// Eigenvalues (rising) and eigenvectors (columns) of a symmetric or Hermitian matrix, of which the
/// triangle `uplo` ('L' or 'U') is read.
[[nodiscard]] EigResult eigh(const Array& a, char uplo = 'L');
[[nodiscard]] Array eigvalsh(const Array& a, char uplo = 'L');
/// Of any square matrix. The results are always complex, as their dtype would else depend on the
/// values. On a GPU it needs cuSOLVER of CUDA 12.6 or newer; throws NotImplementedError.
[[nodiscard]] EigResult eig(const Array& a);
[[nodiscard]] Array eigvals(const Array& a);

// --- equations ---
/// x with a @ x = b; b is (n,) or (..., n, k).
[[nodiscard]] Array solve(const Array& a, const Array& b);
[[nodiscard]] Array inv(const Array& a);  // the inverse
[[nodiscard]] Array det(const Array& a);  // the determinant
struct SlogdetResult {
  Array sign, logabsdet;
};
/// det(a) = sign * exp(logabsdet); 0 and -inf for singular matrices.
[[nodiscard]] SlogdetResult slogdet(const Array& a);

struct LstsqResult {
  Array x, residuals;
  std::int64_t rank = 0;
  Array s;  // the singular values of `a`
};
/// x that makes |b - a @ x| least, of those the shortest, for a (m, n) and b (m,) or (m, k).
/// Singular values below rcond (default: epsilon * max(m, n)) times the greatest count as 0. The
/// residuals are there only for rank == n < m. Waits for the device.
[[nodiscard]] LstsqResult lstsq(const Array& a, const Array& b,
                                std::optional<double> rcond = std::nullopt);
/// A number or an array of them, one for each matrix of a batch; or nothing.
class Tolerance {
 public:
  Tolerance() = default;
  Tolerance(const std::optional<double>& number) : number_(number) {}
  template <class T>
  requires std::is_arithmetic_v<T> Tolerance(T number) : number_(static_cast<double>(number)) {}
  Tolerance(const Array& array) : array_(&array) {}
  bool given() const { return array_ || number_; }  // whether there is one
  /// `scale`, of the shape of the batch, times the tolerance.
  [[nodiscard]] Array times(const Array& scale) const;
  /// The tolerance, which broadcasts to the batch; `like` has the dtype and the device.
  [[nodiscard]] Array values(const Array& like) const;

 private:
  const Array* array_ = nullptr;
  std::optional<double> number_;
};
struct PinvOptions {
  rensa::detail::NamedOptions named = {};
  Tolerance rcond = {};    // NumPy's, 1e-15 when left out
  bool hermitian = false;  // a is Hermitian: by its eigenvalues
  Tolerance rtol = {};     // the array API's name of rcond; give one of the two
};
/// The inverse of Moore and Penrose; singular values up to rcond times the greatest count as 0.
[[nodiscard]] Array pinv(const Array& a, const PinvOptions& options = {});
[[nodiscard]] Array pinv(const Array& a, double rcond, bool hermitian = false);
struct MatrixRankOptions {
  rensa::detail::NamedOptions named = {};
  Tolerance tol = {};
  bool hermitian = false;  // a is Hermitian: by its eigenvalues
  Tolerance rtol = {};     // times the greatest singular value: max(m, n) * epsilon when left out
};
/// Singular values above `tol`, or above `rtol` times the greatest, counted: int64. Throws
/// ValueError where both are given.
[[nodiscard]] Array matrix_rank(const Array& a, const MatrixRankOptions& options = {});
[[nodiscard]] Array matrix_rank(const Array& a, double tol, bool hermitian = false);
/// x with tensordot(a, x, x.ndim()) = b, the axes of `a` in `axes` moved to its end first.
[[nodiscard]] Array tensorsolve(const Array& a, const Array& b, AxisList axes = {});
/// The inverse of a as a map of tensors: tensordot(tensorinv(a, ind), b, ind) is tensorsolve(a, b).
[[nodiscard]] Array tensorinv(const Array& a, int ind = 2);

// --- norms ---
/// The order of a norm: a number (infinity too), "fro" or "nuc"; none is the 2-norm of vectors and
/// Frobenius' of matrices.
class Ord {
 public:
  /// What an order is: a number, a name, or none.
  enum class Kind : unsigned char { none, number, fro, nuc };
  Ord() = default;
  Ord(None) {}
  template <class T>
  requires std::is_arithmetic_v<T> Ord(T value)
      : kind_(Kind::number), value_(static_cast<double>(value)) {}
  Ord(const char* name);                   // throws ValueError for others
  Kind kind() const { return kind_; }      // what it is
  double value() const { return value_; }  // of a number
  /// Whether it is this number.
  bool is(double number) const { return kind_ == Kind::number && value_ == number; }

 private:
  Kind kind_ = Kind::none;
  double value_ = 0;
};

/// The norm of vectors (one axis) or matrices (two axes); without `axis` that of the whole array:
/// of its elements for no `ord`, else of a vector or a matrix. Orders 2, -2 and "nuc" of matrices
/// take singular values. float16 and bfloat16 are fine elsewhere.
[[nodiscard]] Array norm(const Array& x, Ord ord = {}, AxisList axis = {}, bool keepdims = false);
struct NormOptions {
  rensa::detail::NamedOptions named = {};
  Ord ord = {};
  AxisList axis = {};
  bool keepdims = false;  // the reduced axes stay, of extent 1
};
[[nodiscard]] Array norm(const Array& x, const NormOptions& options);
/// Of the elements along any axes (all by default).
struct VectorNormOptions {
  rensa::detail::NamedOptions named = {};
  AxisList axis = {};     // several are one vector; all when left out
  bool keepdims = false;  // the reduced axes stay, of extent 1
  Ord ord = 2;            // as of norm; a number
};
[[nodiscard]] Array vector_norm(const Array& x, const VectorNormOptions& options = {});
/// Of the last two axes.
struct MatrixNormOptions {
  rensa::detail::NamedOptions named = {};
  bool keepdims = false;  // the reduced axes stay, of extent 1
  Ord ord = "fro";        // as of norm
};
[[nodiscard]] Array matrix_norm(const Array& x, const MatrixNormOptions& options = {});
/// norm(x) * norm(inv(x)) for p != 2, infinity for singular x; for 2 (default) and -2 the quotient
/// of the singular values.
[[nodiscard]] Array cond(const Array& x, Ord p = {});

}  // namespace rensa::xp::linalg
