// What tests of products by tiles share: products of random numbers in each precision, and the keys
// of their plans.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rensa/array.h"
#include "rensa/operations/matmul/cuda_tiles.h"
#include "rensa/portable/launch_plan.h"

namespace rensa::testing {

struct Product {
  std::int64_t m, n, k, batch = 1;
  std::int64_t pad = 0;  // elements after each line, and before the first
};

struct Precision {
  const char* name;
  Dtype dtype;
  UseTf32 tf32;
  double unit;  // of a product of numbers in [-1, 1)
};
inline constexpr Precision kPrecisions[] = {{"float32", Dtype::float32, false, 1e-6},
                                            {"tf32", Dtype::float32, true, 1e-3},
                                            {"float16", Dtype::float16, false, 1e-3},
                                            {"bfloat16", Dtype::bfloat16, false, 8e-3},
                                            {"tf32x3", Dtype::float32, UseTf32::x3(), 1e-6}};

/// `batch` matrices of random numbers that are stored as (lines, width), rows after each other.
inline Array stored(std::int64_t batch, std::int64_t lines, std::int64_t width, std::int64_t pad,
                    Dtype dtype) {
  Array all = xp::random::uniform(-1, 1, {batch, lines, width + pad}, float32, gpu());
  return all.astype(dtype)[{Slice(), Slice(), Slice(pad, pad + width)}];
}

struct Operands {
  Array a, b, bias, gate, c;
  cuda::PlanKey key;
};

inline Operands operands(const Product& p, const Precision& precision, bool a_transposed,
                         bool b_transposed) {
  Dtype dtype = precision.dtype;
  Array a = a_transposed ? stored(p.batch, p.k, p.m, p.pad, dtype)
                         : stored(p.batch, p.m, p.k, p.pad, dtype);
  Array b = b_transposed ? stored(p.batch, p.n, p.k, p.pad, dtype)
                         : stored(p.batch, p.k, p.n, p.pad, dtype);
  Operands o{a_transposed ? a.swapaxes(1, 2) : a,
             b_transposed ? b.swapaxes(1, 2) : b,
             xp::random::uniform(-1, 1, {p.n}, float32, gpu()).astype(dtype),
             xp::random::uniform(-1, 1, {p.batch, p.m, p.n}, float32, gpu()).astype(dtype),
             xp::empty({p.batch, p.m, p.n}, dtype, gpu()),
             {}};
  cuda::PlanKey& key = o.key;
  std::int64_t size = itemsize(dtype);
  key.m = p.m, key.n = p.n, key.k = p.k, key.batch = p.batch;
  key.a_ld = a.strides()[1] / size, key.b_ld = b.strides()[1] / size, key.c_ld = p.n;
  key.a_stride = a.strides()[0] / size, key.b_stride = b.strides()[0] / size;
  key.c_stride = p.m * p.n;
  key.dtype = dtype, key.tf32 = precision.tf32;
  key.a_transposed = a_transposed, key.b_transposed = b_transposed;
  key.bias = cuda::PlanKey::Bias::epilogue;
  auto is_aligned = [](const Array& x) { return cuda::is_aligned(x.data(), 16); };
  unsigned aligned = 0;
  if (is_aligned(a)) aligned |= cuda::PlanKey::aligned_a;
  if (is_aligned(b)) aligned |= cuda::PlanKey::aligned_b;
  if (is_aligned(o.c)) aligned |= cuda::PlanKey::aligned_c;
  key.aligned = static_cast<std::uint8_t>(aligned);
  return o;
}

/// Whether it has forms with boxes, but for that by fused multiply-adds in large tiles.
inline bool any_boxes(const cuda::PlanKey& key) {
  std::vector<cuda::TileForm> forms = cuda::tile_forms(key, gpu());
  return std::any_of(forms.begin(), forms.end(),
                     [](cuda::TileForm form) { return form.boxes && form != cuda::kFmaPanel; });
}

}  // namespace rensa::testing
