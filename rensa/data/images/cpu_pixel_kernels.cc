// The loops over pixels, for one instruction set. Sums are PIL's, term by term.
#include "rensa/data/images/cpu_pixel_kernels.h"

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
    for (int lane = 0; lane < lanes; ++lane) {
      const T* row = rows.in + (begin + lane) * rows.stride;
      for (std::int64_t x = 0; x < in_size; ++x) in[x * kLanes + lane] = row[x];
    }
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
    for (int lane = 0; lane < lanes; ++lane) {
      T* row = rows.out + (begin + lane) * rows.out_stride;
      for (std::int64_t i = 0; i < rows.out_size; ++i) row[i] = out[i * kLanes + lane];
    }
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
          normalize<std::uint8_t>,
          normalize<float>};
}

}  // namespace rensa::host::RENSA_SET
