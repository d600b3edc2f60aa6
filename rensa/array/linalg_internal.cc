// Checks, dtypes and layouts of linear algebra.
#include "rensa/array/linalg_internal.h"

#include <fmt/format.h>

#include <limits>

#include "rensa/core/checked.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/linalg/linalg.h"

namespace rensa::detail {

void check_matrices(const char* operation, const Array& a) {
  check_defined(operation, a);
  if (a.ndim() >= 2) return;
  throw ShapeError(fmt::format("{}: {} is no matrix: it has to have at least two axes", operation,
                               a.view().describe()));
}

void check_square(const char* operation, const Array& a) {
  check_matrices(operation, a);
  if (a.shape(-1) == a.shape(-2)) return;
  throw ShapeError(
      fmt::format("{}: the last two axes of {} have to be equal: the matrix has to be "
                  "square",
                  operation, a.view().describe()));
}

Dtype linalg_dtype(const char* operation, const Array& a) {
  Dtype dtype = a.dtype();
  if (itemsize(dtype) == 2 && dtype_kind(dtype) == 'f') {
    throw DtypeError(fmt::format("{}: {} is not taken; cast to float32 with astype", operation,
                                 a.view().describe()));
  }
  char kind = dtype_kind(dtype);
  return kind == 'f' || kind == 'c' ? dtype : float64;
}

Dtype real_dtype(Dtype dtype) {
  return dtype == complex64 ? float32 : dtype == complex128 ? float64 : dtype;
}

Dtype complex_dtype(Dtype dtype) {
  return dtype == complex64 || dtype == float32 ? complex64 : complex128;
}

double epsilon_of(Dtype dtype) {
  return real_dtype(dtype) == float32 ? std::numeric_limits<float>::epsilon()
                                      : std::numeric_limits<double>::epsilon();
}

Array new_matrices(const Shape& shape, Dtype dtype, Device device) {
  if (device.is_cuda() || dtype_kind(dtype) != 'c') return new_array(shape, dtype, device);
  std::int64_t behind = operations::readable_behind(shape[2]);
  Array memory = new_array({shape.total() + behind}, dtype, device);
  return new_view(memory, 0, shape, contiguous_strides(shape, itemsize(dtype)));
}

Array matrix_batch(const Array& a, Dtype dtype) {
  Shape leading;
  for (int i = 0; i + 2 < a.ndim(); ++i) leading.push_back(a.shape()[i]);
  Array out = new_matrices({leading.total(), a.shape(-2), a.shape(-1)}, dtype, a.device());
  Shape strides = contiguous_strides(a.shape(), itemsize(dtype));
  copy_elements("linalg", a, new_view(out, 0, a.shape(), strides));
  return out;
}

Array unbatch(const Array& batch, const Array& a) {
  Shape shape, strides;
  std::int64_t stride = batch.strides()[0];
  for (int i = a.ndim() - 2; i-- > 0;) {
    shape.insert(0, a.shape()[i]);
    strides.insert(0, stride);
    stride = wrapping_multiply(stride, a.shape()[i]);
  }
  for (int i = 1; i < batch.ndim(); ++i) {
    shape.push_back(batch.shape()[i]);
    strides.push_back(batch.strides()[i]);
  }
  return new_view(batch, 0, shape, strides);
}

void refuse_recording(const char* operation, const Array& a) {
  if (a.device().is_cpu()) return;
  if (Recorder* recorder = ThreadState::current().recorder) recorder->cannot_record(operation);
}

Array real_pairs(const Array& a) {
  ArrayView view = a.view();
  view.dtype = real_dtype(a.dtype());
  view.shape.push_back(2);
  view.strides.push_back(itemsize(view.dtype));
  return Array(a.storage(), view);
}

}  // namespace rensa::detail
