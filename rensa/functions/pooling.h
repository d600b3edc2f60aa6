// Pooling over windows, with gradients of any order. x is (n, channels, spatial axes...), one to
// six of them; an output has the dtype and, dense or channels-last, the layout of its x.
#pragma once

#include <optional>

#include "rensa/array/axis_list.h"
#include "rensa/array/options.h"
#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

// `ksize`, `stride` and `pad` are one number for all spatial axes, or one for each; a stride left
// out is ksize. An axis of n elements has (n + 2 * pad - ksize) / stride + 1 windows, rounded up
// with `cover_all`, so that each element is in one, else rounded down. Throw ShapeError for an x of
// other axes and where a window is larger than the padded x, ValueError for a ksize or stride below
// 1, a negative pad, and lists of another length; DtypeError for what is not floating. By
// keywords: max_pooling_2d(x, 3, {.stride = 2, .pad = 1}).

/// The keywords of max poolings.
struct MaxPoolingOptions {
  rensa::detail::NamedOptions named = {};
  AxisList stride = {};             // ksize when left out
  AxisList pad = 0;                 // of -infinity
  bool cover_all = true;            // each element is in a window
  Array* return_indices = nullptr;  // gets where the greatest stand
};

/// The keywords of average poolings.
struct AveragePoolingOptions {
  rensa::detail::NamedOptions named = {};
  AxisList stride = {};                   // ksize when left out
  AxisList pad = 0;                       // of `pad_value`
  std::optional<double> pad_value = 0.0;  // std::nullopt: padding does not count
};

/// The keywords of unpoolings and of upsampling_2d.
struct UnpoolingOptions {
  rensa::detail::NamedOptions named = {};
  AxisList stride = {};   // ksize when left out
  AxisList pad = 0;       // around what was pooled
  AxisList outsize = {};  // the least when left out
  bool cover_all = true;  // as the pooling had it
};

/// The greatest element of each window; NaN where there is one. The first of equals has the
/// gradient. `return_indices` gets where it stands, int32, counted in C order within the window:
/// what upsampling_2d takes. Padding counts as -infinity.
[[nodiscard]] Variable max_pooling_1d(const Variable& x, const AxisList& ksize,
                                      const AxisList& stride = {}, const AxisList& pad = 0,
                                      bool cover_all = true, Array* return_indices = nullptr);
[[nodiscard]] inline Variable max_pooling_1d(const Variable& x, const AxisList& ksize,
                                             const MaxPoolingOptions& options) {
  return max_pooling_1d(x, ksize, options.stride, options.pad, options.cover_all,
                        options.return_indices);
}
[[nodiscard]] Variable max_pooling_2d(const Variable& x, const AxisList& ksize,
                                      const AxisList& stride = {}, const AxisList& pad = 0,
                                      bool cover_all = true, Array* return_indices = nullptr);
[[nodiscard]] inline Variable max_pooling_2d(const Variable& x, const AxisList& ksize,
                                             const MaxPoolingOptions& options) {
  return max_pooling_2d(x, ksize, options.stride, options.pad, options.cover_all,
                        options.return_indices);
}
[[nodiscard]] Variable max_pooling_3d(const Variable& x, const AxisList& ksize,
                                      const AxisList& stride = {}, const AxisList& pad = 0,
                                      bool cover_all = true, Array* return_indices = nullptr);
[[nodiscard]] inline Variable max_pooling_3d(const Variable& x, const AxisList& ksize,
                                             const MaxPoolingOptions& options) {
  return max_pooling_3d(x, ksize, options.stride, options.pad, options.cover_all,
                        options.return_indices);
}
[[nodiscard]] Variable max_pooling_nd(const Variable& x, const AxisList& ksize,
                                      const AxisList& stride = {}, const AxisList& pad = 0,
                                      bool cover_all = true, Array* return_indices = nullptr);
[[nodiscard]] inline Variable max_pooling_nd(const Variable& x, const AxisList& ksize,
                                             const MaxPoolingOptions& options) {
  return max_pooling_nd(x, ksize, options.stride, options.pad, options.cover_all,
                        options.return_indices);
}

/// The mean of each window, rounded down. Padding counts as elements of `pad_value`, which is 0, or
/// not at all, which std::nullopt says. Throws ValueError for another one, ShapeError where a
/// window would be the mean of no elements.
[[nodiscard]] Variable average_pooling_1d(const Variable& x, const AxisList& ksize,
                                          const AxisList& stride = {}, const AxisList& pad = 0,
                                          std::optional<double> pad_value = 0.0);
[[nodiscard]] inline Variable average_pooling_1d(const Variable& x, const AxisList& ksize,
                                                 const AveragePoolingOptions& options) {
  return average_pooling_1d(x, ksize, options.stride, options.pad, options.pad_value);
}
[[nodiscard]] Variable average_pooling_2d(const Variable& x, const AxisList& ksize,
                                          const AxisList& stride = {}, const AxisList& pad = 0,
                                          std::optional<double> pad_value = 0.0);
[[nodiscard]] inline Variable average_pooling_2d(const Variable& x, const AxisList& ksize,
                                                 const AveragePoolingOptions& options) {
  return average_pooling_2d(x, ksize, options.stride, options.pad, options.pad_value);
}
[[nodiscard]] Variable average_pooling_3d(const Variable& x, const AxisList& ksize,
                                          const AxisList& stride = {}, const AxisList& pad = 0,
                                          std::optional<double> pad_value = 0.0);
[[nodiscard]] inline Variable average_pooling_3d(const Variable& x, const AxisList& ksize,
                                                 const AveragePoolingOptions& options) {
  return average_pooling_3d(x, ksize, options.stride, options.pad, options.pad_value);
}
[[nodiscard]] Variable average_pooling_nd(const Variable& x, const AxisList& ksize,
                                          const AxisList& stride = {}, const AxisList& pad = 0,
                                          std::optional<double> pad_value = 0.0);
[[nodiscard]] inline Variable average_pooling_nd(const Variable& x, const AxisList& ksize,
                                                 const AveragePoolingOptions& options) {
  return average_pooling_nd(x, ksize, options.stride, options.pad, options.pad_value);
}

/// Windows that share an axis: of n elements and m windows, number i has those from i * n / m to
/// (i + 1) * n / m rounded up (PyTorch's adaptive pooling). `size` is one number or two. Throw
/// ValueError for a size below 1, ShapeError unless x has two spatial axes with elements.
[[nodiscard]] Variable adaptive_average_pooling_2d(const Variable& x, const AxisList& size);
[[nodiscard]] Variable adaptive_max_pooling_2d(const Variable& x, const AxisList& size);

/// The reverse of pooling sums: each element is added to all places of its window, of which there
/// are as many as pooling made x of. Those are `outsize`, or the least (with `cover_all` that
/// rounding up has, else rounding down). Throw ShapeError for an outsize whose windows are not
/// those of x.
[[nodiscard]] Variable unpooling_1d(const Variable& x, const AxisList& ksize,
                                    const AxisList& stride = {}, const AxisList& pad = 0,
                                    const AxisList& outsize = {}, bool cover_all = true);
[[nodiscard]] inline Variable unpooling_1d(const Variable& x, const AxisList& ksize,
                                           const UnpoolingOptions& options) {
  return unpooling_1d(x, ksize, options.stride, options.pad, options.outsize, options.cover_all);
}
[[nodiscard]] Variable unpooling_2d(const Variable& x, const AxisList& ksize,
                                    const AxisList& stride = {}, const AxisList& pad = 0,
                                    const AxisList& outsize = {}, bool cover_all = true);
[[nodiscard]] inline Variable unpooling_2d(const Variable& x, const AxisList& ksize,
                                           const UnpoolingOptions& options) {
  return unpooling_2d(x, ksize, options.stride, options.pad, options.outsize, options.cover_all);
}
[[nodiscard]] Variable unpooling_3d(const Variable& x, const AxisList& ksize,
                                    const AxisList& stride = {}, const AxisList& pad = 0,
                                    const AxisList& outsize = {}, bool cover_all = true);
[[nodiscard]] inline Variable unpooling_3d(const Variable& x, const AxisList& ksize,
                                           const UnpoolingOptions& options) {
  return unpooling_3d(x, ksize, options.stride, options.pad, options.outsize, options.cover_all);
}
[[nodiscard]] Variable unpooling_nd(const Variable& x, const AxisList& ksize,
                                    const AxisList& stride = {}, const AxisList& pad = 0,
                                    const AxisList& outsize = {}, bool cover_all = true);
[[nodiscard]] inline Variable unpooling_nd(const Variable& x, const AxisList& ksize,
                                           const UnpoolingOptions& options) {
  return unpooling_nd(x, ksize, options.stride, options.pad, options.outsize, options.cover_all);
}

/// The reverse of max_pooling_2d: each element is added at the place in its window that `indexes`
/// (integers, of x's shape, as return_indices gives them) says; the others are 0. An index that is
/// no place of the window counts for nothing.
[[nodiscard]] Variable upsampling_2d(const Variable& x, const Array& indexes, const AxisList& ksize,
                                     const AxisList& stride = {}, const AxisList& pad = 0,
                                     const AxisList& outsize = {}, bool cover_all = true);
[[nodiscard]] inline Variable upsampling_2d(const Variable& x, const Array& indexes,
                                            const AxisList& ksize,
                                            const UnpoolingOptions& options) {
  return upsampling_2d(x, indexes, ksize, options.stride, options.pad, options.outsize,
                       options.cover_all);
}

/// max_pooling_2d by 1, 2, 4, ..., 2^(pyramid_height - 1) windows along each axis, all of them
/// behind one another: (n, c, h, w) gives (n, c * (4^pyramid_height - 1) / 3, 1, 1) (He et al.,
/// "Spatial pyramid pooling in deep convolutional networks for visual recognition"). Throws
/// ValueError for a height below 1.
[[nodiscard]] Variable spatial_pyramid_pooling_2d(const Variable& x, int pyramid_height);

}  // namespace functions

namespace F = functions;

}  // namespace rensa
