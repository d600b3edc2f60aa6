// The loops over pixels, for one instruction set. Sums are PIL's, term by term.
#include "rensa/data/images/cpu_pixel_kernels.h"

#include <cstring>

namespace rensa::host::RENSA_SET {

PixelKernels get_pixel_kernels();

namespace {

constexpr int kBits = 22;  // of a weight's fraction, for uint8

inline std::int32_t first_sum(std::uint8_t) { return 1 << (kBits - 1); }
inline double first_sum(float) { return 0; }
inline void finish(std::int32_t sum, std::uint8_t& out) {
  sum >>= kBits;
  out = static_cast<std::uint8_t>(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}
inline void finish(double sum, float& out) { out = static_cast<float>(sum); }

void split(std::int64_t n, const std::uint8_t* __restrict in, std::uint8_t* __restrict a,
           std::uint8_t* __restrict b, std::uint8_t* __restrict c) {
  for (std::int64_t i = 0; i < n; ++i) {
    a[i] = in[3 * i];
    b[i] = in[3 * i + 1];
    c[i] = in[3 * i + 2];
  }
}

typedef std::uint8_t Block16 __attribute__((vector_size(16)));

/// Transposes 16 x 16 bytes: four rounds, each of which brings the halves of a list together,
/// element by element.
inline void transpose_block(const std::uint8_t* in, std::int64_t stride, std::uint8_t* out,
                            std::int64_t out_stride) {
  Block16 list[16], next[16];
  for (int i = 0; i < 16; ++i) std::memcpy(&list[i], in + i * stride, 16);
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 8; ++i) {
      next[2 * i] = __builtin_shufflevector(list[i], list[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20,
                                            5, 21, 6, 22, 7, 23);
      next[2 * i + 1] = __builtin_shufflevector(list[i], list[i + 8], 8, 24, 9, 25, 10, 26, 11, 27,
                                                12, 28, 13, 29, 14, 30, 15, 31);
    }
    for (int i = 0; i < 16; ++i) list[i] = next[i];
  }
  for (int i = 0; i < 16; ++i) std::memcpy(out + i * out_stride, &list[i], 16);
}

/// out[j, i] = in[i, j] for i of [0, rows) and j of [0, columns).
template <class T>
inline void transpose(std::int64_t rows, std::int64_t columns, const T* in, std::int64_t stride,
                      T* out, std::int64_t out_stride) {
  std::int64_t whole = 0;  // columns
  if constexpr (sizeof(T) == 1) {
    if (rows % 16 == 0) whole = columns / 16 * 16;
    for (std::int64_t i = 0; i < rows; i += 16) {
      for (std::int64_t j = 0; j < whole; j += 16) {
        transpose_block(in + i * stride + j, stride, out + j * out_stride + i, out_stride);
      }
    }
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = whole; j < columns; ++j) out[j * out_stride + i] = in[i * stride + j];
  }
}

/// Rows kLanes at a time, which lie side by side meanwhile: one pixel's sums are one vector.
constexpr int kLanes = 32;

template <class T, class Weight>
void resize_rows(const Rows<T>& rows, std::int64_t in_size, const ResizeWeights<Weight>& weights,
                 T* scratch) {
  T* __restrict in = scratch;
  T* __restrict out = scratch + kLanes * in_size;
  for (std::int64_t begin = 0; begin < rows.count; begin += kLanes) {
    const std::int64_t left = rows.count - begin;
    const int lanes = left < kLanes ? static_cast<int>(left) : kLanes;
    transpose<T>(lanes, in_size, rows.in + begin * rows.stride, rows.stride, in, kLanes);
    for (std::int64_t i = 0; i < rows.out_size; ++i) {
      const Weight* weight = weights.weights + i * weights.stride;
      const T* pixels = in + weights.begin[i] * kLanes;
      Weight sums[kLanes];
      for (int lane = 0; lane < kLanes; ++lane) sums[lane] = first_sum(T{});
      for (std::int64_t k = 0; k < weights.count[i]; ++k) {
        const Weight w = weight[k];
        for (int lane = 0; lane < kLanes; ++lane) {
          sums[lane] += static_cast<Weight>(pixels[k * kLanes + lane]) * w;
        }
      }
      for (int lane = 0; lane < kLanes; ++lane) finish(sums[lane], out[i * kLanes + lane]);
    }
    const std::int64_t whole = lanes == kLanes ? rows.out_size / 16 * 16 : 0;
    T* result = rows.out + begin * rows.out_stride;
    transpose<T>(whole, lanes, out, kLanes, result, rows.out_stride);
    transpose<T>(rows.out_size - whole, lanes, out + whole * kLanes, kLanes, result + whole,
                 rows.out_stride);
  }
}

template <class T, class Weight>
void resize_columns(const Rows<T>& rows, const ResizeWeights<Weight>& weights) {
  constexpr int kBlock = 256;
  for (std::int64_t y = 0; y < rows.count; ++y) {
    const Weight* weight = weights.weights + y * weights.stride;
    for (std::int64_t begin = 0; begin < rows.out_size; begin += kBlock) {
      const std::int64_t left = rows.out_size - begin;
      const int n = left < kBlock ? static_cast<int>(left) : kBlock;
      Weight sums[kBlock];
      for (int x = 0; x < n; ++x) sums[x] = first_sum(T{});
      for (std::int64_t k = 0; k < weights.count[y]; ++k) {
        const T* __restrict pixels = rows.in + (weights.begin[y] + k) * rows.stride + begin;
        const Weight w = weight[k];
        for (int x = 0; x < n; ++x) sums[x] += static_cast<Weight>(pixels[x]) * w;
      }
      T* __restrict out = rows.out + y * rows.out_stride + begin;
      for (int x = 0; x < n; ++x) finish(sums[x], out[x]);
    }
  }
}

inline void cut_off(float value, std::uint8_t& out) {
  value = value < 0 ? 0 : value;
  out = static_cast<std::uint8_t>(static_cast<std::int32_t>(value > 255 ? 255 : value));
}
inline void cut_off(float value, float& out) { out = value; }

template <class T>
void shade(std::int64_t n, const T* __restrict in, float factor, float more, T* __restrict out) {
  for (std::int64_t i = 0; i < n; ++i) cut_off(factor * static_cast<float>(in[i]) + more, out[i]);
}

template <class T>
void mix(std::int64_t n, const T* __restrict a, float factor, const T* __restrict b, float rest,
         T* __restrict out) {
  for (std::int64_t i = 0; i < n; ++i) {
    cut_off(factor * static_cast<float>(a[i]) + rest * static_cast<float>(b[i]), out[i]);
  }
}

template <class T>
void gray(std::int64_t n, const T* __restrict r, const T* __restrict g, const T* __restrict b,
          T* __restrict out) {
  for (std::int64_t i = 0; i < n; ++i) {
    cut_off(0.2989f * static_cast<float>(r[i]) + 0.587f * static_cast<float>(g[i]) +
                0.114f * static_cast<float>(b[i]),
            out[i]);
  }
}

template <class T>
void normalize(std::int64_t n, const T* __restrict in, float mean, float std,
               float* __restrict out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = (static_cast<float>(in[i]) - mean) / std;
}

}  // namespace

PixelKernels get_pixel_kernels() {
  return {split,
          resize_rows<std::uint8_t, std::int32_t>,
          resize_rows<float, double>,
          resize_columns<std::uint8_t, std::int32_t>,
          resize_columns<float, double>,
          {shade<std::uint8_t>, mix<std::uint8_t>, gray<std::uint8_t>, normalize<std::uint8_t>},
          {shade<float>, mix<float>, gray<float>, normalize<float>}};
}

}  // namespace rensa::host::RENSA_SET
