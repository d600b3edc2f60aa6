// Products of tensors, factorizations of matrices and Fourier transforms, with gradients of any
// order. Factorizations work on the last two axes, all others being a batch; they take float32 and
// float64 (DtypeError else), on the CPU they need a build with RENSA_BLAS, and a matrix that cannot
// be factored throws LinAlgError: on the CPU at once, on a GPU at the next wait.
#pragma once

#include <string_view>
#include <utility>

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// matmul of the matrices of two batches; of (n, k) each row is a column (k, 1).
[[nodiscard]] Variable batch_matmul(const Variable& a, const Variable& b, bool transa = false,
                                    bool transb = false);
/// Sums of products over the last `axes` axes of `a` and the first of `b`, or over a_axes[i] of `a`
/// and b_axes[i] of `b`. Throws ShapeError where extents differ.
[[nodiscard]] Variable tensordot(const Variable& a, const Variable& b, int axes = 2);
[[nodiscard]] Variable tensordot(const Variable& a, const Variable& b, const Shape& a_axes,
                                 const Shape& b_axes);
/// Einstein's sums in NumPy's notation, einsum("ij,jk->ik", {a, b}), with "..." for broadcast axes
/// and repeated labels for diagonals; an extent of 1 stands for any other of its label. Throws
/// ValueError for subscripts that say nothing or do not fit, ShapeError for extents that do not.
[[nodiscard]] Variable einsum(std::string_view subscripts, const Variables& operands);

/// The inverse. Chainer's batch_inv is the same of a batch.
[[nodiscard]] Variable inv(const Variable& a);
[[nodiscard]] Variable batch_inv(const Variable& a);
/// The determinant; its gradient needs a matrix that has an inverse.
[[nodiscard]] Variable det(const Variable& a);
[[nodiscard]] Variable batch_det(const Variable& a);
/// L with a = L @ L^T, of the lower triangle of the symmetric a; the gradient is symmetric.
[[nodiscard]] Variable cholesky(const Variable& a);

/// The Fourier transform along the last axis of real + i * imag, and the inverse one: its real and
/// its imaginary part. Throws ShapeError, DtypeError where the two differ.
[[nodiscard]] std::pair<Variable, Variable> fft(const Variable& real, const Variable& imag);
[[nodiscard]] std::pair<Variable, Variable> ifft(const Variable& real, const Variable& imag);

}  // namespace functions

namespace F = functions;

}  // namespace rensa
