// The factorizations of matrices. Their operands are C-contiguous and of one float or complex dtype
// (s and w are real where values are); a matrix is stored column by column, as LAPACK and cuSOLVER
// have it: an operand of shape (batch, n, m) holds `batch` matrices of m rows and n columns.
//
// A matrix that cannot be factored throws LinAlgError, on the GPU at the next wait.
#pragma once

#include <cstdint>

#include "rensa/device/operation.h"

namespace rensa {

/// What there is in a matrix, better to worse. The iterations for eigenvalues and singular values
/// take none but finite numbers: of others some releases of LAPACK never return, or write where
/// they must not. So the operations look first.
enum class MatrixContent { finite, infinite, nan };

/// Throws the LinAlgError of `operation` for matrix `index` of `batch` on `device`; the name says
/// what a failure of the operation means.
[[noreturn]] void throw_linalg_error(const char* operation, std::int64_t index, std::int64_t batch,
                                     Device device);

/// The Cholesky factor of `a` (batch, n, n) in place, in the triangle that was read; the other one
/// stays as it is.
struct CholeskyFactor final : OperationOf<CholeskyFactor> {
  using OperationOf::OperationOf;
  bool upper = false;
  Operand a;

  void visit(OperandVisitor& v) override;
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// The LU factors of `a` (batch, n, n) in place with the row exchanges `pivots` (batch, n), counted
/// from 1; then, with `b` (batch, k, n), b = a^-1 b, or a^-T b when `transposed`. `pivots` is int32
/// on the CPU; on a GPU int32 factors the batch in one call (good for small matrices), int64 one
/// matrix after the other.
struct LuSolve final : OperationOf<LuSolve> {
  using OperationOf::OperationOf;
  bool transposed = false;
  bool singular_is_error = true;
  Operand a, pivots, b;

  void visit(OperandVisitor& v) override;
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// Householder's factors of `a` (batch, n, m): R in the upper triangle, the reflectors below, with
/// their factors in `tau` (batch, min(m, n)).
struct QrFactor final : OperationOf<QrFactor> {
  using OperationOf::OperationOf;
  Operand a, tau;

  void visit(OperandVisitor& v) override;
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// Makes Q's first k columns of the reflectors that `q` (batch, k, m), k <= m, holds in its first
/// columns, one for each of `tau` (batch, at most k).
struct QrForm final : OperationOf<QrForm> {
  using OperationOf::OperationOf;
  Operand q, tau;

  void visit(OperandVisitor& v) override;
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// The eigenvalues `w` (batch, n), rising, of symmetric or Hermitian `a` (batch, n, n), of which
/// one triangle is read; `a` becomes the eigenvectors, or is lost without `vectors`. Where the
/// triangle holds an infinity all results are NaN; NaN is an error.
struct Eigh final : OperationOf<Eigh> {
  using OperationOf::OperationOf;
  bool upper = false;
  bool vectors = true;
  Operand a, w;

  void visit(OperandVisitor& v) override;
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// a = u s vt for `a` (batch, n, m) with m >= n, which is lost: s (batch, n) falling, u
/// (batch, n or m, m), vt (batch, n, n); u and vt both present or both absent. With `jacobi`, on a
/// GPU, they are present and vt holds v instead; many matrices of at most kJacobiRows rows are then
/// factored side by side, for which u is (batch, m, m). Of a matrix with an infinity all results
/// are NaN; NaN is an error.
struct Svd final : OperationOf<Svd> {
  using OperationOf::OperationOf;
  static constexpr std::int64_t kJacobiRows = 32;
  static constexpr std::int64_t kLargeJacobiRows = 64;  // from here on Jacobi's way is the faster
  bool jacobi = false;
  Operand a, s, u, vt;

  void visit(OperandVisitor& v) override;
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// The eigenvalues `w` (batch, n) of complex `a` (batch, n, n), which is lost, and where `v`
/// (batch, n, n) is present the eigenvectors as its columns. What is not finite is an error.
struct Eig final : OperationOf<Eig> {
  using OperationOf::OperationOf;
  Operand a, w, v;

  void visit(OperandVisitor& visitor) override;
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

}  // namespace rensa
