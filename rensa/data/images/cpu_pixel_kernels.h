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

/// Of n pixels. What becomes uint8 is cut off at 0 and 255 and rounded down.
template <class T> struct ColorKernels {
  /// out = factor * in + more.
  void (*shade)(std::int64_t n, const T* in, float factor, float more, T* out);
  /// out = factor * a + rest * b.
  void (*mix)(std::int64_t n, const T* a, float factor, const T* b, float rest, T* out);
  /// The grey of red, green and blue, as torchvision weighs them.
  void (*gray)(std::int64_t n, const T* r, const T* g, const T* b, T* out);
  /// out = (in - mean) / std.
  void (*normalize)(std::int64_t n, const T* in, float mean, float std, float* out);
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
  ColorKernels<std::uint8_t> of_uint8;
  ColorKernels<float> of_float;
  template <class T> const ColorKernels<T>& of() const {
    if constexpr (sizeof(T) == 1) {
      return of_uint8;
    } else {
      return of_float;
    }
  }
};

/// Those of the best instruction set that the machine has.
const PixelKernels& pixel_kernels();

}  // namespace rensa::host
