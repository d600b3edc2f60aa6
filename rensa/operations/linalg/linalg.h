// The factorizations of matrices. Their operands are C-contiguous and of one float or complex dtype
// (s and w are real where values are); a matrix is stored column by column, as LAPACK and cuSOLVER
// have it: an operand of shape (batch, n, m) holds `batch` matrices of m rows and n columns.
//
// A matrix that cannot be factored throws LinAlgError, on the GPU at the next wait.
#pragma once

#include <cstdint>

#include "rensa/device/kind.h"

namespace rensa::operations {

/// What there is in a matrix, better to worse. The iterations for eigenvalues and singular values
/// take none but finite numbers: of others some releases of LAPACK never return, or write where
/// they must not. So the operations look first.
enum class MatrixContent { finite, infinite, nan };

/// Elements that have to be readable behind a complex operand of matrices of `rows` rows on the
/// CPU: gemv of OpenBLAS 0.3.21 (Debian 12) reads one element behind a vector, its issue 4013, and
/// that of a matrix's row is a column's length away.
constexpr std::int64_t readable_behind(std::int64_t rows) { return rows; }

/// The Cholesky factor of `a` (batch, n, n) in place, in the triangle that was read; the other one
/// stays as it is.
struct CholeskyFactor final : KindOf<CholeskyFactor> {
  using KindOf::KindOf;
  bool upper = false;
  Operand a;

  template <class V> void fields(V& v) { v.write(a), v.number(upper); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// The LU factors of `a` (batch, n, n) in place with the row exchanges `pivots` (batch, n), counted
/// from 1; then, with `b` (batch, k, n), b = a^-1 b, or a^-T b when `transposed`. `pivots` is int32
/// on the CPU; on a GPU int32 factors the batch in one call (good for small matrices), int64 one
/// matrix after the other.
struct LuSolve final : KindOf<LuSolve> {
  using KindOf::KindOf;
  bool transposed = false;
  bool singular_is_error = true;
  Operand a, pivots, b;

  template <class V> void fields(V& v) {
    v.write(a, pivots, b), v.number(transposed, singular_is_error);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// Householder's factors of `a` (batch, n, m): R in the upper triangle, the reflectors below, with
/// their factors in `tau` (batch, min(m, n)).
struct QrFactor final : KindOf<QrFactor> {
  using KindOf::KindOf;
  Operand a, tau;

  template <class V> void fields(V& v) { v.write(a, tau); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// Makes Q's first k columns of the reflectors that `q` (batch, k, m), k <= m, holds in its first
/// columns, one for each of `tau` (batch, at most k).
struct QrForm final : KindOf<QrForm> {
  using KindOf::KindOf;
  Operand q, tau;

  template <class V> void fields(V& v) { v.read(tau), v.write(q); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// The eigenvalues `w` (batch, n), rising, of symmetric or Hermitian `a` (batch, n, n), of which
/// one triangle is read; `a` becomes the eigenvectors, or is lost without `vectors`. Where the
/// triangle holds an infinity all results are NaN; NaN is an error.
struct Eigh final : KindOf<Eigh> {
  using KindOf::KindOf;
  bool upper = false;
  bool vectors = true;
  Operand a, w;

  template <class V> void fields(V& v) { v.write(a, w), v.number(upper, vectors); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// a = u s vt for `a` (batch, n, m) with m >= n, which is lost: s (batch, n) falling, u
/// (batch, n or m, m), vt (batch, n, n); u and vt both present or both absent. With `jacobi`, on a
/// GPU, they are present and vt holds v instead; many matrices of at most kJacobiRows rows are then
/// factored side by side, for which u is (batch, m, m). Of a matrix with an infinity all results
/// are NaN; NaN is an error.
struct Svd final : KindOf<Svd> {
  using KindOf::KindOf;
  static constexpr std::int64_t kJacobiRows = 32;
  static constexpr std::int64_t kLargeJacobiRows = 64;  // Jacobi's method is faster from here on
  bool jacobi = false;
  Operand a, s, u, vt;

  template <class V> void fields(V& v) { v.write(a, s, u, vt), v.number(jacobi); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// The eigenvalues `w` (batch, n) of complex `a` (batch, n, n), which is lost, and where `v`
/// (batch, n, n) is present the eigenvectors as its columns. What is not finite is an error.
struct Eig final : KindOf<Eig> {
  using KindOf::KindOf;
  Operand a, w, v;

  template <class V> void fields(V& visitor) { visitor.write(a, w, v); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

}  // namespace rensa::operations
