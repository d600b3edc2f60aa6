// Loops over pixels, compiled for each instruction set.
#pragma once

#include <cstdint>

namespace rensa::host {

/// How one pixel of a resized row or column is made: of `count` pixels from `begin` on, with
/// weights that stand at `weights + i * stride` of output i.
template <class Weight> struct ResizeWeights {
  const std::int64_t* begin;
  const std::int64_t* count;
  const Weight* weights;
  std::int64_t stride;  // of the weights
};

/// Rows of pixels, `stride` elements apart. The output's rows are `out_stride` apart.
template <class T> struct Rows {
  const T* in;
  std::int64_t stride, count;
  T* out;
  std::int64_t out_stride, out_size;
};

struct PixelKernels {
  /// n pixels of three channels side by side, as three rows.
  void (*split)(std::int64_t n, const std::uint8_t* in, std::uint8_t* a, std::uint8_t* b,
                std::uint8_t* c);
  /// Resizes `rows.count` rows to `out_size` pixels each. `in_size` is how many a row has;
  /// `scratch` has room for 32 (in_size + out_size) pixels. Weights of uint8 are in units of 2^-22.
  void (*rows_uint8)(const Rows<std::uint8_t>& rows, std::int64_t in_size,
                     const ResizeWeights<std::int32_t>& weights, std::uint8_t* scratch);
  void (*rows_float)(const Rows<float>& rows, std::int64_t in_size,
                     const ResizeWeights<double>& weights, float* scratch);
  /// Resizes columns: `rows.count` output rows of out_size pixels, made of the input's.
  void (*columns_uint8)(const Rows<std::uint8_t>& rows, const ResizeWeights<std::int32_t>& weights);
  void (*columns_float)(const Rows<float>& rows, const ResizeWeights<double>& weights);
  /// out = (in - mean) / std.
  void (*normalize_uint8)(std::int64_t n, const std::uint8_t* in, float mean, float std,
                          float* out);
  void (*normalize_float)(std::int64_t n, const float* in, float mean, float std, float* out);
};

/// Those of the best instruction set that the machine has.
const PixelKernels& pixel_kernels();

}  // namespace rensa::host
