// What the files of xp::linalg share.
#pragma once

#include "rensa/array/internal.h"
#include "rensa/array/linalg.h"

namespace rensa::detail {

/// Throws ShapeError naming `operation` unless `a` is a matrix or a batch of them.
void check_matrices(const char* operation, const Array& a);
/// As check_matrices; they have to be square too.
void check_square(const char* operation, const Array& a);

/// The dtype that a factorization computes `dtype` in. Throws DtypeError for the 16-bit floats.
Dtype linalg_dtype(const char* operation, const Array& a);
/// float32 of complex64 and so on.
Dtype real_dtype(Dtype dtype);
Dtype complex_dtype(Dtype dtype);
/// The distance from 1 to the next number.
double epsilon_of(Dtype dtype);

/// A new C-contiguous array of matrices, (batch, rows, columns), that a factorization may be given.
Array new_matrices(const Shape& shape, Dtype dtype, Device device);
/// A new C-contiguous (batch, rows, columns) array with the values of (..., rows, columns) `a`.
Array matrix_batch(const Array& a, Dtype dtype);
/// `batch`, (batch, ...), with the leading axes of `a` in place of its first one.
Array unbatch(const Array& batch, const Array& a);

/// Tells a recording of a step that `operation` on `a`, a GPU array, cannot be replayed.
void refuse_recording(const char* operation, const Array& a);

/// linalg::inv under another name; singular matrices give infinities and NaN unless `check`.
Array inverse(const char* operation, const Array& a, bool check);
Array solve(const char* operation, const Array& a, const Array& b);
/// linalg::svd under another name.
xp::linalg::SVDResult svd(const char* operation, const Array& a, bool full_matrices,
                          bool compute_uv);
xp::linalg::EigResult eigh(const char* operation, const Array& a, bool upper, bool vectors);

/// Complex numbers as pairs of real ones, along one more axis: a view.
Array real_pairs(const Array& a);

}  // namespace rensa::detail
